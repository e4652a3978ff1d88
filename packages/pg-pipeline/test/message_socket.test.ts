import { expect, it } from 'vitest'
import { WholeMessages } from '../src/index.ts'

/** A message of the protocol: type, length, payload. */
function message(type: string, payload: string): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32BE(4 + payload.length)
  return Buffer.concat([Buffer.from(type), length, Buffer.from(payload)])
}

/** What is given of bytes that arrive in pieces of some size, all in the same buffer, as a socket reads them. */
function given(bytes: Buffer, size: number): string[] {
  const pieces: string[] = []
  const messages = new WholeMessages((whole) => pieces.push(whole.toString('latin1')))
  const buffer = Buffer.alloc(size)
  for (let at = 0; at < bytes.length; at += size)
    messages.add(buffer.subarray(0, bytes.copy(buffer, 0, at, at + size)))
  return pieces
}

const sent = ['1', '2', 'D'.repeat(100), '', 'C'.repeat(7), 'Z'.repeat(300)].map((payload, index) =>
  message('12DnCZ'[index]!, payload),
)
const all = Buffer.concat(sent)

it('messages arrive whole and in order, wherever the network cuts them', () => {
  for (let size = 1; size <= all.length; size++) {
    const pieces = given(all, size)
    expect(pieces.join('')).toBe(all.toString('latin1'))
    const ends = new Set(sent.map((_, index) => Buffer.concat(sent.slice(0, index + 1)).length))
    let end = 0
    for (const piece of pieces) {
      end += piece.length
      expect(ends).toContain(end)
    }
  }
})

it('messages that arrive together are given together', () => {
  expect(given(all, all.length)).toEqual([all.toString('latin1')])
})

it('what only looks like a message of gigabytes is passed on as it arrives', () => {
  const answer = 'HTTP/1.1 400 Bad Request\r\n\r\n'
  for (const size of [3, 7, 100]) expect(given(Buffer.from(answer), size).join('')).toBe(answer)
})
