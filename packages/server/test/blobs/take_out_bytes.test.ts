import { createHash } from 'node:crypto'
import { encoded } from '@annals/kits/http/request/find_base64.js'
import { takeOutBytes } from '@annals/kits/http/request/take_out_bytes.js'
import fc from 'fast-check'
import { expect, it } from 'vitest'

const LONG = 32 * 1024
const bytesOf = (length: number) => Buffer.alloc(length, createHash('sha256').update(String(length)).digest())

/** Base64, or nearly. */
const base64 = fc
  .tuple(
    fc.oneof(
      fc.integer({ min: LONG - 9_000, max: LONG + 9_000 }),
      fc.constantFrom(0, 1, 786_431, 786_432, 786_433, 900_000),
    ),
    fc.constantFrom(
      (text: string) => text,
      (text: string) => text,
      (text: string) => text.replace(/.{76}/g, '$&\n'),
      (text: string) => text.replace(/.{64}(?=.)/g, '$&\r\n'),
      (text: string) => text.replace(/=+$/, '').replace(/.{75}/g, '$&\n'),
      (text: string) => JSON.stringify(text.replace(/.{76}/g, '$&\r\n')),
      (text: string) => `-----BEGIN\n${text.replace(/.{64}/g, '$&\n')}\n-----END`,
      (text: string) => text.replace(/.{60}/g, '$&\n').replace(/\n(?=.{600}$)/s, '\n\n'),
      (text: string) => text.replaceAll('+', '-').replaceAll('/', '_'),
      (text: string) => text.replace(/=+$/, ''),
      (text: string) => `${text}==`,
      (text: string) => text.replace(/.$/, 'B'),
      (text: string) => `"${text}`,
      (text: string) => text.replace(/^..../, 'AA=='),
    ),
  )
  .map(([length, write]) => write(bytesOf(length).toString('base64')))
const prefix = fc.constantFrom(
  '',
  '',
  'data:image/png;base64,',
  'DATA:image/PNG;Base64,',
  'data:;base64,',
  'data:a/b;c="d";base64,',
)
const text = fc.tuple(prefix, base64).map((parts) => parts.join(''))

const part = fc.oneof(
  text.map((url) => ({ type: 'image_url', image_url: { url, [url]: url } })),
  text.map((data) => ({ type: 'input_audio', input_audio: { data, format: 'wav' } })),
  text.map((file_data) => ({ type: 'file', file: { file_data, filename: 'a.pdf' } })),
  text.map((said) => ({ type: 'text', text: said })),
)
const body = fc
  .tuple(fc.array(part, { maxLength: 4 }), text, fc.boolean(), fc.boolean())
  .map(([content, extra, isBatch, isEscaped]) => {
    const message = { blob: { role: 'user', content, extra }, meta: { extra } }
    const json = JSON.stringify(
      isBatch ? { entries: [{ kind: 'event', data: { extra } }, message] } : message,
    )
    return isEscaped ? json.replaceAll('/', '\\/') : json
  })

it('What is taken out of a body can be put back to the character, and only what is long, canonical in either alphabet, and in its place', () => {
  fc.assert(
    fc.property(body, (json) => {
      const { body: rest, taken } = takeOutBytes(Buffer.from(json), 64_000_000, 25_000_000)
      const bytes = new Map(taken.map((one) => [one.sha256, Buffer.from(one.bytes)]))
      const restored = JSON.parse(rest.toString(), (_key, value) =>
        value?.annals_blob === undefined
          ? value
          : value.annals_inline + encoded(bytes.get(value.annals_blob)!, value.encoding),
      )
      const sent = JSON.parse(json)
      expect(JSON.stringify(restored) === JSON.stringify(sent)).toBe(true)
      const content: Array<Record<string, Record<string, string>>> = (sent.blob ?? sent.entries[1].blob)
        .content
      const held = content.flatMap(({ image_url, input_audio, file }) => [
        /^data:/i.test(image_url?.url ?? '') ? image_url!.url : '',
        /^data:/i.test(input_audio?.data ?? '') ? '' : input_audio?.data,
        file?.file_data,
      ])
      const expected = held.filter((value = '') => {
        const data = value.replace(/^data:[^,"]*?;base64,/i, '')
        const decoded = Buffer.from(data, 'base64')
        const unpadded = decoded.toString('base64url')
        const safe = /[-_]/.test(data)
          ? [unpadded, unpadded.padEnd(Math.ceil(unpadded.length / 4) * 4, '=')]
          : []
        return data.length > LONG && [decoded.toString('base64'), ...safe].includes(data)
      })
      expect(taken.length).toBe(expected.length)
    }),
    { numRuns: 25 },
  )
})

/** Base64 between other things, in a text and in JSON in it. */
const between = fc
  .array(
    fc.oneof(
      text,
      fc.constantFrom(
        ' a ',
        '"',
        '\\',
        '\\"',
        '/',
        '\n',
        'é',
        '😀',
        '{"b":"',
        'abc',
        '==',
        '-',
        '+',
        '\u2028',
      ),
    ),
    { maxLength: 4 },
  )
  .map((parts) => parts.join(''))
const texts = fc.tuple(between, between, fc.boolean()).map(([one, other, isEscaped]) => {
  const calls = [{ function: { name: 'save', arguments: JSON.stringify({ [one]: [other] }) } }]
  const json = JSON.stringify({
    blob: { role: 'assistant', content: one, tool_calls: calls, [other]: 1 },
    meta: { one },
  })
  return isEscaped ? json.replaceAll('/', '\\/') : json
})

const IN_LINES = JSON.stringify({
  blob: { content: `See: ${bytesOf(LONG).toString('base64').replaceAll(/.{76}/g, '$&\n')}` },
})

it('What is taken out of texts can be put back to the character, and only if the rest of the body is too long', () => {
  let times = 0
  let times_in_lines = 0
  fc.assert(
    fc.property(texts, (json) => {
      const body = Buffer.from(json)
      expect(takeOutBytes(body, body.length, 25_000_000).taken).toEqual([])
      for (const rest_bytes_max of [body.length - 1, Math.ceil(body.length / 2), 4_000]) {
        const { body: rest, taken } = takeOutBytes(body, rest_bytes_max, 25_000_000)
        if (taken.length === 0) {
          expect(rest.equals(body)).toBe(true)
          continue
        }
        times++
        const bytes = new Map(taken.map((one) => [one.sha256, Buffer.from(one.bytes)]))
        const inLines = (text: string, { break: between, width }: Record<string, string>) =>
          width ? text.match(new RegExp(`.{1,${width}}`, 'g'))!.join(between) : text
        const whole = (piece: Record<string, string>) => {
          if (piece.width) times_in_lines++
          const text = encoded(bytes.get(piece.annals_blob!)!, piece.encoding as undefined)
          return piece.annals_inline + inLines(text, piece)
        }
        const restored = JSON.parse(
          rest.toString(),
          (_key, value) =>
            value?.annals_text
              ?.map((piece: unknown) => (typeof piece === 'object' ? whole(piece as never) : piece))
              .join('') ?? value,
        )
        expect(JSON.stringify(restored) === JSON.stringify(JSON.parse(json))).toBe(true)
      }
    }),
    { numRuns: 15, interruptAfterTimeLimit: 60_000, examples: [[IN_LINES]] },
  )
  // A busy machine does not come to all runs.
  expect(times).toBeGreaterThan(0)
  expect(times_in_lines).toBeGreaterThan(0)
})

it('A body that would be too long without them, and bytes that are more than a blob may have, are left alone', () => {
  const data = bytesOf(60_000).toString('base64')
  const json = Buffer.from(JSON.stringify({ blob: { content: [{ input_audio: { data } }] } }))
  expect(takeOutBytes(json, 40, 60_000).taken.length).toBe(0)
  expect(takeOutBytes(json, 500, 59_999).taken.length).toBe(0)
  expect(takeOutBytes(json, 500, 60_000).taken.length).toBe(1)
})

it('What is taken out of a body as a picture has the type that it is, and is put back by the name that it had', () => {
  const jpeg = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), bytesOf(LONG)])
  for (const [bytes, type] of [
    [jpeg, 'image/jpeg'],
    [bytesOf(LONG), 'image/png'],
  ] as const) {
    const url = `data:image/png;base64,${bytes.toString('base64')}`
    const blob = { role: 'user', content: [{ type: 'image_url', image_url: { url } }] }
    const { body: rest } = takeOutBytes(Buffer.from(JSON.stringify({ blob })), 64_000_000, 25_000_000)
    expect(JSON.parse(rest.toString()).blob.content[0].image_url.url).toMatchObject({
      media_type: type,
      annals_inline: 'data:image/png;base64,',
    })
  }
})
