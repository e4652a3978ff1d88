import fc from 'fast-check'
import { expect, it } from 'vitest'
import { base64OfText, textOfBase64 } from '../src/base64.js'

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  // Lone surrogates and byte order marks, and more than one piece.
  fc
    .array(fc.constantFrom('\ud800', '\udc00', '\ufeff', 'é', '😀', 'a'), { maxLength: 20 })
    .map((all) => all.join('')),
  fc
    .tuple(fc.constantFrom('é', '😀', 'abc', '\ufeff'), fc.integer({ min: 4_000, max: 9_000 }))
    .map(([unit, times]) => unit.repeat(times)),
)

it('writes the base64 of a text as Node does', () => {
  fc.assert(fc.property(anyText, (text) => base64OfText(text) === Buffer.from(text).toString('base64')))
})

it('reads base64 as Node does: both alphabets, bytes that are no UTF-8, spaces, garbage and padding anywhere', () => {
  const sent = fc.oneof(
    fc.base64String(),
    fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('base64url')),
    fc.string({ unit: fc.constantFrom(...'ABCXYZabcxyz01289+/-_= \n\t.*é'), maxLength: 40 }),
  )
  fc.assert(
    fc.property(sent, (data) => {
      expect(textOfBase64(data)).toBe(Buffer.from(data, 'base64').toString('utf8'))
    }),
    { numRuns: 2_000 },
  )
})
