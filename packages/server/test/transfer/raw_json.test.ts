import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { rawItems, rawMembers } from '../../src/transfer/raw_json.js'

const spaced = fc
  .tuple(fc.jsonValue(), fc.constantFrom(0, 1, '\t'))
  .map(([value, space]) => JSON.stringify(value, null, space))

describe('the parts of a JSON text', () => {
  it('of an array are its elements as they are written', () => {
    fc.assert(
      fc.property(fc.array(spaced), fc.constantFrom('', ' ', '\n '), (texts, space) => {
        const array = `${space}[${space}${texts.join(`${space},${space}`)}${space}]${space}`
        expect(rawItems(array)).toEqual(texts)
      }),
    )
  })

  it('of an object are its members as they are written', () => {
    const members = fc.uniqueArray(fc.tuple(fc.string({ unit: 'binary' }), spaced), {
      maxLength: 5,
      selector: ([key]) => key,
    })
    fc.assert(
      fc.property(members, fc.constantFrom('', ' ', '\n '), (pairs, space) => {
        const text = pairs.map(([key, value]) => `${JSON.stringify(key)}${space}:${space}${value}`)
        expect([...rawMembers(`{${text.join(`${space},${space}`)}}`)]).toEqual(pairs)
      }),
    )
  })

  it('keep digits that no float holds', () => {
    expect(rawMembers('{"a":12345678901234567890.10,"b":[1e400]}').get('a')).toBe('12345678901234567890.10')
  })
})
