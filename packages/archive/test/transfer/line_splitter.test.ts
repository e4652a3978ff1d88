import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LineSplitter } from '../../src/transfer/line_splitter.js'

it('returns the same lines however the bytes are cut', () => {
  const texts = fc.array(fc.string({ unit: fc.constantFrom('a', '\n', 'é', '\r') }))
  fc.assert(
    fc.property(texts, (pieces) => {
      const splitter = new LineSplitter()
      const lines = pieces.flatMap((piece) => splitter.push(Buffer.from(piece)))
      const all = [...lines, splitter.rest()].map((line) => line.toString())
      expect(all).toEqual(pieces.join('').split('\n'))
    }),
  )
})
