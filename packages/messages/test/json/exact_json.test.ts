import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson, ExactNumber, parseAnswer, parseJson, writeJson } from '../../src/json/index.js'

describe('exact JSON', () => {
  it.each([
    '{"id":1234567890123456789}',
    '[0.12345678901234567890123,{"a":[-9007199254740993]}]',
    '{"a\\"1234567890123456789":[true,false,null,"é 1234567890123456789"],"__proto__":{"b":1e400}}',
    '12345678901234567890',
    '-12345678901234567890',
    '[1,9007199254740993]',
    '[true,-0.12345678901234567890]',
    '{"a":1e400}',
    '[-12e-400]',
    '{"a":{"b":[9007199254740993]},"c":"1764149400000000000"}',
    '{}',
  ])('keeps every digit of %s', (text) => {
    expect(writeJson(parseJson(text))).toBe(text)
  })

  it('keeps every digit after any space', () => {
    for (const space of [' ', '\t', '\n', '\r'])
      expect(writeJson(parseJson(`[1,${space}9007199254740993${space}]`))).toBe('[1,9007199254740993]')
  })

  it('looks at the digits of every number that needs it, wherever it stands', () => {
    const number = fc.stringMatching(/^-?(?:0|[1-9]\d{0,20})(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?$/)
    fc.assert(
      fc.property(number, fc.constantFrom('', ' ', '\n'), (token, space) => {
        const value = `{"a":${space}${token}${space},"b":[${space}${token}]}`
        // Another number of many digits makes sure that all are looked at.
        const [looked_at] = parseJson(`[${value},12345678901234567891]`) as unknown[]
        expect(parseJson(value)).toEqual(looked_at)
      }),
      { numRuns: 1_000 },
    )
  })

  it('has a plain number for each that a double holds', () => {
    expect(parseJson('[1.0, 1e2, 100000000000000000000, 0.1, -0, 9007199254740992]')).toEqual([
      1, 100, 100000000000000000000, 0.1, -0, 9007199254740992,
    ])
    expect(parseJson('9007199254740993')).toEqual(new ExactNumber('9007199254740993'))
  })

  it('is written by JSON.stringify as it was where that can be told so, else to the nearest double', () => {
    const written = 'rawJSON' in JSON ? '{"id":1234567890123456789}' : '{"id":1234567890123456800}'
    expect(JSON.stringify({ id: parseJson('1234567890123456789') })).toBe(written)
  })

  it('is read from an answer though what is stored in it is nested as deeply as it may be', () => {
    const stored = `${'['.repeat(1_000)}1234567890123456789${']'.repeat(1_000)}`
    const answer = `{"data":{"items":[{"data":${stored}}]}}`
    expect(writeJson(parseAnswer(answer))).toBe(answer)
    expect(() => parseJson(answer)).toThrow(RangeError)
  })

  it('reads and writes what JSON.parse and JSON.stringify do', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom('', ' ', '\n\t'), (text, space) => {
        // A number of many digits sends the text the slow way.
        const spaced = `[${space}${text}${space},${space}1234567890123456789${space}]`
        expect((parseJson(spaced) as unknown[])[0]).toEqual(JSON.parse(text))
        expect(JSON.parse(writeJson(parseJson(text)))).toEqual(JSON.parse(text))
      }),
    )
  })

  it('refuses what is no JSON, or is nested too deep to be written again', () => {
    expect(() => parseJson('{"a":')).toThrow(SyntaxError)
    expect(() => parseJson('['.repeat(100_000) + ']'.repeat(100_000))).toThrow(RangeError)
  })
})

describe('canonical JSON', () => {
  it('is what RFC 8785 shows, with members in the order of UTF-16', () => {
    const sorted = '{"\\u20ac":1,"\\r":2,"\\ufb33":3,"1":4,"\\ud83d\\ude00":5,"\\u0080":6,"\\u00f6":7}'
    expect(canonicalJson(JSON.parse(sorted))).toBe(
      '{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\u{1f600}":5,"\ufb33":3}',
    )
    expect(
      canonicalJson(parseJson('[333333333.3333333, 1E30, 4.50, 2e-3, [], {"b":{},"a":"\\u000f"}]')),
    ).toBe('[333333333.3333333,1e+30,4.5,0.002,[],{"a":"\\u000f","b":{}}]')
    expect(canonicalJson(parseJson('{"b":[1152921504606846977],"a":0.5}'))).toEqual(
      new ExactNumber('1152921504606846977'),
    )
  })
})
