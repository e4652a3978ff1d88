import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isRefusal, readStorable } from '../../src/json/index.ts'
import {
  badNumber,
  badString,
  goodLeaf,
  jsonTree,
  leavesOf,
  pointerTo,
  replaceAt,
  space,
  write,
} from './json_texts.ts'

const NUMBERS_OUT_OF_RANGE = 'the number there is out of range'

function refusalOf(source: string | Buffer) {
  const result = readStorable(source)
  return isRefusal(result) ? result : undefined
}

function nested(depth: number, inside = '1'): string {
  return `${'['.repeat(depth)}${inside}${']'.repeat(depth)}`
}

describe('what is JSON and can be stored', () => {
  it('leaves the text untouched, and the value that JavaScript reads in it', () => {
    fc.assert(
      fc.property(jsonTree(goodLeaf), space, (tree, gap) => {
        const text = write(tree, gap)
        expect(readStorable(Buffer.from(text))).toMatchObject({ text, value: JSON.parse(text) })
      }),
      { numRuns: 300 },
    )
  })

  it('may have keys that JavaScript treats specially, which pollute nothing', () => {
    const text = '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'
    const result = readStorable(text) as { value: Record<string, unknown> }
    expect(Object.keys(result.value)).toEqual(['__proto__', 'constructor'])
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  it('may repeat a key, of which the last counts', () => {
    expect(readStorable('{"a":1,"a":2}')).toMatchObject({ value: { a: 2 } })
  })
})

describe('what is not JSON', () => {
  it.each([
    ['nothing at all', ''],
    ['space', ' \n'],
    ['half an object', '{"a":'],
    ['a number with a leading zero', '01'],
    ['a comment', '{} // done'],
    ['single quotes', "{'a':1}"],
    ['a raw line break in a string', '"a\nb"'],
    ['two values', '1 2'],
    ['NaN', 'NaN'],
  ])('%s is refused, with a reason in one line', (_what, text) => {
    const refusal = refusalOf(Buffer.from(text))
    expect(refusal).toMatchObject({ refused: 'not_json' })
    expect(refusal!.reason).not.toMatch(/[\r\n]/)
  })

  it('a byte order mark in front is refused by its name', () => {
    const expected = { refused: 'not_json', reason: expect.stringContaining('byte order mark') }
    expect(refusalOf(Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]))).toEqual(expected)
    expect(refusalOf('\ufeff{}')).toEqual(expected)
    expect(refusalOf('"\ufeff"')).toBeUndefined()
  })

  it.each([
    ['a byte that never occurs', [0xff]],
    ['a sequence that is cut short', [0xe2, 0x82]],
    ['an overlong zero', [0xc0, 0x80]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['a character beyond the last', [0xf4, 0x90, 0x80, 0x80]],
  ])('bytes that are no UTF-8 are refused: %s', (_what, bytes) => {
    const source = Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bytes), Buffer.from('"}')])
    expect(refusalOf(source)).toEqual({ refused: 'not_json', reason: expect.stringContaining('UTF-8') })
  })
})

describe('a pointer to what cannot be stored', () => {
  it('is the path to the first such value, escaped as RFC 6901 says', () => {
    const treeAndPath = jsonTree(goodLeaf)
      .filter((tree) => leavesOf(tree).length > 0)
      .chain((tree) => fc.tuple(fc.constant(tree), fc.constantFrom(...leavesOf(tree))))
    fc.assert(
      fc.property(treeAndPath, fc.oneof(badString, badNumber), space, ([tree, path], bad, gap) => {
        const refusal = refusalOf(write(replaceAt(tree, path, bad), gap))
        expect(refusal).toMatchObject({ refused: 'unstorable', pointer: pointerTo(path) })
      }),
      { numRuns: 300 },
    )
  })

  it.each([
    ['at the top', '"\\u0000"', ''],
    ['behind repeated keys', '{"a":[1,2],"a":[1,"\\u0000"]}', '/a/1'],
    ['under an empty key', '{"":{"":"\\ud800"}}', '//'],
    ['under keys with slashes and tildes', '{"a/b":{"~1":["\\u0000"]}}', '/a~1b/~01/0'],
    ['under a key that is written with escapes', '{"\\u0061\\/\\u007e":"\\u0000"}', '/a~1~0'],
    [
      'behind strings with brackets, commas and quotes',
      '{"a":"]},{[\\"","b":[",",{"c":1e999999}]}',
      '/b/1/c',
    ],
    ['behind an escaped backslash before a quote', '["\\\\","\\u0000"]', '/1'],
  ])('%s', (_where, text, pointer) => {
    expect(refusalOf(text)).toMatchObject({ refused: 'unstorable', pointer })
  })

  it('names the object around a key that cannot be stored', () => {
    expect(refusalOf('{"a":{"x\\u0000":1}}')).toMatchObject({ pointer: expect.stringMatching(/^\/a\b/) })
    expect(refusalOf('{"a":{"x\\u0000":1}}')!.reason).toContain('a key there')
  })

  it('stays short, however long the keys are', () => {
    const long = 'k'.repeat(100_000)
    for (const text of [`{"${long}":1e999999}`, `{"${long}":{"a":1e999999}}`])
      expect((refusalOf(text) as { pointer: string }).pointer.length).toBeLessThan(300)
  })

  it('is not needed for an escaped backslash in front of what looks like an escape', () => {
    expect(refusalOf('{"a":"\\\\u0000","b":"\\\\ud800"}')).toBeUndefined()
  })
})

describe('the range of numbers', () => {
  it.each([
    ['131,072 digits before the point', '9'.repeat(131_072)],
    ['the same with an exponent', '1e131071'],
    ['the same from a fraction', '0.001e131074'],
    ['16,383 digits behind the point', `0.${'1'.repeat(16_383)}`],
    ['the same with an exponent', '1e-16383'],
    ['the same from a larger number', '12345e-16383'],
    ['both at once', `${'9'.repeat(131_072)}.${'1'.repeat(16_383)}`],
    ['a zero with a large exponent', '0e999999'],
    ['a zero with a long fraction and an exponent that takes it back', `0.${'0'.repeat(20_000)}e20000`],
    ['a negative zero', '-0.0'],
    ['a one-digit exponent behind a long number', `${'1'.repeat(15_999)}e9`],
  ])('takes %s', (_what, literal) => {
    expect(refusalOf(`[${literal}]`)).toBeUndefined()
  })

  it.each([
    ['131,073 digits before the point', '9'.repeat(131_073)],
    ['the same with an exponent', '1e131072'],
    ['the same with two digits', '10e131071'],
    ['16,384 digits behind the point', `0.${'1'.repeat(16_384)}`],
    ['the same with an exponent', '1e-16384'],
    ['the same from a fraction', '0.1e-16383'],
    ['a zero with too many digits behind the point', '0e-16384'],
    ['an exponent beyond any number', `1e${'9'.repeat(400)}`],
    ['a negative exponent beyond any number', `1e-${'9'.repeat(400)}`],
    ['a zero with an exponent that PostgreSQL does not read', '0e99999999999'],
    ['a zero with an exponent beyond any number', `0e${'9'.repeat(400)}`],
  ])('refuses %s', (_what, literal) => {
    expect(refusalOf(`{"n":[${literal}]}`)).toEqual({
      refused: 'unstorable',
      pointer: '/n/0',
      reason: NUMBERS_OUT_OF_RANGE,
    })
  })

  it('is kept wherever in the text the number stands', () => {
    for (const before of [0, 1, 2, 3, 100, 8_190, 8_191, 8_192, 16_380, 50_000]) {
      for (const [digits, exponent] of [
        [16_384, ''],
        [16_380, 'e-4'],
        [16_375, 'e-9'],
      ] as const) {
        const text = `${' '.repeat(before)}0.${'1'.repeat(digits)}${exponent}`
        expect(refusalOf(text)).toMatchObject({ reason: NUMBERS_OUT_OF_RANGE })
        expect(refusalOf(text.replace('1', ''))).toBeUndefined()
      }
    }
  })

  it('is refused after whatever may stand ahead of a number', () => {
    for (const ahead of ['', ' ', '\n', '\t', '[', '[ ', '[0,', '[0,\r\n', '{"n":', '{"n": ', '{"n":\t-'])
      for (const number of ['1e131072', '1.5E+131073', '12.25e131072']) {
        const ends = { '[': ']', '{': '}' }[ahead.charAt(0)] ?? ''
        expect(refusalOf(`${ahead}${number}${ends}`)).toMatchObject({ reason: NUMBERS_OUT_OF_RANGE })
      }
  })

  it('bounds what all numbers of a text take together when they are written out', () => {
    const numbers = (count: number) => `[${Array(count).fill('1e131071').join(',')}]`
    expect(refusalOf(numbers(8))).toBeUndefined()
    expect(refusalOf(numbers(9))).toEqual({
      refused: 'unstorable',
      pointer: '/8',
      reason: expect.stringContaining('too many digits'),
    })
  })
})

describe('the depth of nesting', () => {
  it('may be 1,000 levels', () => {
    expect(refusalOf(nested(1_000))).toBeUndefined()
    expect(refusalOf(`${'{"a":'.repeat(1_000)}1${'}'.repeat(1_000)}`)).toBeUndefined()
  })

  it('may not be 1,001', () => {
    expect(refusalOf(nested(1_001))).toMatchObject({
      refused: 'unstorable',
      reason: expect.stringContaining('1000 levels'),
    })
    expect(refusalOf(nested(1_001, ''))).toMatchObject({ refused: 'unstorable' })
  })

  it('does not count brackets in strings, nor a quote after a backslash as a string’s end', () => {
    for (const inside of ['"[[[{{{"', '"\\"[["', '"\\\\"', '"]]]"', '"\\u005b["'])
      expect(refusalOf(nested(999, `[${inside},${inside}]`))).toBeUndefined()
    expect(refusalOf(`["${'['.repeat(5_000)}"]`)).toBeUndefined()
  })

  it('does not count what was closed', () => {
    expect(refusalOf(`[${Array(5_000).fill('[{}]').join(',')}]`)).toBeUndefined()
  })

  it('tells broken JSON from deep JSON', () => {
    expect(refusalOf('['.repeat(100_000))).toMatchObject({ refused: 'not_json' })
    expect(refusalOf(nested(100_000))).toMatchObject({ refused: 'unstorable' })
  })
})

describe('the time it takes', () => {
  it.each([
    ['numbers of very many digits', `[${Array(8).fill('9'.repeat(15_999)).join(',')}]`],
    ['one number', '9'.repeat(130_000)],
    ['strings of digits', `["${'9'.repeat(15_999)}a${'9'.repeat(500_000)}"]`],
    ['backslashes', `["${'\\\\'.repeat(250_000)}"]`],
    ['exponents', `[${Array(70_000).fill('1e-10').join(',')}]`],
    ['keys', `{${Array.from({ length: 40_000 }, (_, index) => `"\\ud83d\\ude00${index}":1`).join(',')}}`],
  ])('grows with the length of the text and not faster: %s', (_what, text) => {
    // Quadratic work takes minutes, and so ends with the timeout.
    expect(() => readStorable(Buffer.from(text))).not.toThrow()
  })
})
