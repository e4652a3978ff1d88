import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EventStreamParser, type StreamEvent } from '../src/event_stream.ts'

const encoder = new TextEncoder()

/** The events of a text, given to the parser in pieces that end at these bytes. */
function parse(text: string, ends: number[] = []): StreamEvent[] {
  const bytes = encoder.encode(text)
  const parser = new EventStreamParser()
  const bounds = [0, ...ends.toSorted((a, b) => a - b), bytes.length]
  return bounds.slice(1).flatMap((end, n) => parser.read(bytes.slice(bounds[n]!, end)))
}

describe('a stream of events', () => {
  it.each<[string, string, StreamEvent[]]>([
    ['an event', 'id: 7\nevent: note\ndata: {"a":1}\n\n', [{ id: '7', type: 'note', data: '{"a":1}' }]],
    ['data of several lines', 'data: a\ndata:\ndata:  b\n\n', [{ id: '', type: 'message', data: 'a\n\n b' }]],
    ['lines that end in CRLF', 'id:1\r\ndata:x\r\n\r\n', [{ id: '1', type: 'message', data: 'x' }]],
    ['lines that end in CR', 'id:1\rdata:x\r\r', [{ id: '1', type: 'message', data: 'x' }]],
    ['comments', ': heartbeat\n\n:\ndata: x\n: y\n\n', [{ id: '', type: 'message', data: 'x' }]],
    ['a field without a colon', 'data\n\n', [{ id: '', type: 'message', data: '' }]],
    ['unknown fields', 'nonsense: 1\nDATA: 2\n data: 3\n\n', []],
    ['a byte order mark', '\ufeffdata: x\n\n', [{ id: '', type: 'message', data: 'x' }]],
    ['a colon in the data', 'data: a: b\n\n', [{ id: '', type: 'message', data: 'a: b' }]],
    ['an id with U+0000', 'id: 1\nid: 2\0\ndata: x\n\n', [{ id: '1', type: 'message', data: 'x' }]],
    ['a type without data', 'event: a\n\ndata: x\n\n', [{ id: '', type: 'message', data: 'x' }]],
    ['an event that does not end', 'data: x\n\ndata: y\n', [{ id: '', type: 'message', data: 'x' }]],
    [
      'an id that stays until the next',
      'id: 1\ndata: x\n\ndata: y\n\nid\ndata: z\n\n',
      [
        { id: '1', type: 'message', data: 'x' },
        { id: '1', type: 'message', data: 'y' },
        { id: '', type: 'message', data: 'z' },
      ],
    ],
  ])('may have %s', (_case, text, events) => {
    expect(parse(text)).toEqual(events)
  })

  it('may say how long to wait before the next connection', () => {
    const parser = new EventStreamParser()
    parser.read(encoder.encode('retry: 1500\n\nretry: soon\n\n'))
    expect(parser.retry_ms).toBe(1_500)
  })

  it('may come with empty pieces', () => {
    const text = 'event: a\r\ndata: x\r\n\r\n'
    const afterCr = text.indexOf('\r') + 1
    expect(parse(text, [afterCr, afterCr])).toEqual([{ id: '', type: 'a', data: 'x' }])
  })

  it('is the same however its bytes are cut', () => {
    const line = fc
      .string({ unit: 'binary', maxLength: 12 })
      .map((text) => text.replace(/[\r\n]/g, ''))
      .chain((text) =>
        fc.constantFrom(`data: ${text}`, `data:${text}`, `id: ${text}`, `event: ${text}`, `: ${text}`, ''),
      )
    const end = fc.constantFrom('\n', '\r', '\r\n')
    const text = fc.array(fc.tuple(line, end), { maxLength: 20 }).map((lines) => `${lines.flat().join('')}\n`)
    const cuts = fc.array(fc.nat(2_000), { maxLength: 20 })
    fc.assert(
      fc.property(text, cuts, (whole, places) => {
        const length = encoder.encode(whole).length
        const ends = places.map((place) => place % (length + 1))
        expect(parse(whole, ends)).toEqual(parse(whole))
        const everyByte = Array.from({ length }, (_, n) => n)
        expect(parse(whole, everyByte)).toEqual(parse(whole))
      }),
      { numRuns: 200 },
    )
  })

  it('returns what was sent', () => {
    const event = fc.record({
      seq: fc.integer({ min: 1 }),
      data: fc.json({ stringUnit: 'grapheme' }),
      end: fc.constantFrom('\n', '\r\n', '\r'),
    })
    fc.assert(
      fc.property(fc.array(event), fc.array(fc.nat(5_000)), (events, places) => {
        const text = events
          .map(({ seq, data, end }) => [`id: ${seq}`, 'event: event', `data: ${data}`, '', ''].join(end))
          .join(': heartbeat\n\n')
        const ends = places.map((place) => place % (encoder.encode(text).length + 1))
        const expected = events.map(({ seq, data }) => ({ id: String(seq), type: 'event', data }))
        expect(parse(text, ends)).toEqual(expected)
      }),
    )
  })
})
