import { ExactNumber, parseJson } from '@annals/messages/json'
import { describe, expect, it } from 'vitest'
import {
  conditionsOf,
  type Filter,
  filterOf,
  pathText,
  readFilter,
  readPath,
  readValue,
  withCondition,
  withoutCondition,
} from '../src/sessions/conditions.ts'

describe('a filter taken apart into conditions', () => {
  it.each<[Filter]>([
    [{}],
    [{ agent: 'gpt-4o', reward: 0 }],
    [{ run: { env: { zone: 'eu' }, number: 7 }, done: false, parent: null }],
    [{ tags: ['a', 'b'], empty: {}, 'a.b': { 'c\\d': 'e' } }],
    [JSON.parse('{"__proto__":{"polluted":true}}')],
  ])('is put together again the same: %j', (filter) => {
    const again = filterOf(conditionsOf(filter))
    expect(JSON.stringify(again)).toBe(JSON.stringify(filter))
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  it('takes the later of two conditions on one key, and loses one that is removed', () => {
    const filter = withCondition({ run: { n: 1 } }, { path: ['run', 'n'], value: 2 })
    expect(filter).toEqual({ run: { n: 2 } })
    expect(withoutCondition(filter, ['run', 'n'])).toEqual({})
  })

  it.each([[['a', 'b']], [['a.b', 'c']], [['back\\slash', '.']], [['']]])(
    'names the path %j so that it is read back',
    (path) => {
      expect(readPath(pathText(path))).toEqual(path)
    },
  )

  it('is none where the address has no JSON object', () => {
    for (const text of [null, '', '[1]', '{', '"x"', '7']) expect(readFilter(text)).toEqual({})
  })
})

describe('a value that was typed', () => {
  it('has the type that was chosen', () => {
    expect(readValue('text', '7')).toBe('7')
    expect(readValue('number', '-0.5')).toBe(-0.5)
    expect(readValue('true / false', 'false')).toBe(false)
    expect(readValue('null', 'anything')).toBeNull()
    expect(readValue('JSON', '{"a":[1]}')).toEqual({ a: [1] })
  })

  it.each(['seven', '', '0x7', '1,5', 'NaN'])('is refused as a number when it is %j', (text) => {
    expect(() => readValue('number', text)).toThrow('not a number')
  })
})

describe('a number of more digits than JavaScript keeps', () => {
  const has_source = 'rawJSON' in JSON

  it.skipIf(!has_source)('is shown and written as it was read', () => {
    const text = '{"id":12345678901234567890,"rate":0.12345678901234567891,"n":0.50}'
    const value = parseJson(text) as Record<string, unknown>
    expect(value.id).toBeInstanceOf(ExactNumber)
    expect(value.n).toBe(0.5)
    expect(JSON.stringify(value)).toBe('{"id":12345678901234567890,"rate":0.12345678901234567891,"n":0.5}')
  })

  it('does not keep others from being plain numbers', () => {
    expect(parseJson('{"a":1.5,"b":[9007199254740991,-3e2]}')).toEqual({
      a: 1.5,
      b: [9007199254740991, -300],
    })
  })
})
