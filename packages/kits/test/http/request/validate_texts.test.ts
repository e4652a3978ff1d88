import { readFileSync } from 'node:fs'
import Type from 'typebox'
import { describe, expect, it } from 'vitest'
import { messageFor, strict, validatorOf } from './validators.ts'

describe('query parameters', () => {
  const schema = strict({
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })),
    time_desc: Type.Optional(Type.Boolean()),
    user: Type.Optional(Type.String({ minLength: 1, maxLength: 5 })),
  })
  const read = (input: Record<string, unknown>) => validatorOf(schema, 'querystring')(input).value
  const refuse = (input: Record<string, unknown>) => messageFor(schema, input, 'querystring')

  it('are read by the type that they have', () => {
    expect(read({ limit: '20', time_desc: 'true', user: '7' })).toEqual({
      limit: 20,
      time_desc: true,
      user: '7',
    })
    expect(read({ time_desc: 'false' })).toEqual({ time_desc: false })
    expect(read({})).toEqual({})
  })

  it.each(['', '0', '201', '-1', '1.5', '1e1', '0x10', ' 1', '1 ', 'ten', '9'.repeat(40)])(
    'that are no integer in range are refused by name: limit=%s',
    (limit) => {
      expect(refuse({ limit })).toBe('Query parameter limit must be an integer from 1 to 200.')
    },
  )

  it.each(['', '1', '0', 'True', 'TRUE', 'yes'])(
    'that are no boolean are refused by name: time_desc=%s',
    (time_desc) => {
      expect(refuse({ time_desc })).toBe('Query parameter time_desc must be true or false.')
    },
  )

  it('that are too short or too long are refused by name', () => {
    for (const user of ['', 'abcdef'])
      expect(refuse({ user })).toBe('Query parameter user must be a string of 1 to 5 characters.')
  })

  it('given twice are refused by name', () => {
    expect(refuse({ user: ['a', 'a'] })).toMatch(/^Query parameter user was sent more than once/)
  })

  it('with names that nobody could read are written out', () => {
    for (const [name, shown] of [
      ['', '""'],
      ['\r\nX-Injected: 1', '\\u000d\\u000aX-Injected: 1'],
      ['a\u202eb', 'a\\u202eb'],
      ['\u200b', '\\u200b'],
      [' ', '\\u0020'],
      ['limit ', 'limit\\u0020'],
    ] as const)
      expect(refuse({ [name]: 'x' })).toContain(`Query parameter ${shown} is not a parameter here`)
  })

  it('with names of any length are refused in a sentence, and in no time', () => {
    const message = refuse({ [`a${' '.repeat(300_000)}b`]: 'x' })
    expect(message).toBe(
      `Query parameter a${' '.repeat(198)}\\u0020… is not a parameter here; it takes limit, time_desc, user.`,
    )
  })

  it('with the character U+0000 are refused by name', () => {
    expect(refuse({ user: 'a\0' })).toMatch(/^Query parameter user contains the character U\+0000/)
  })

  it.each(['users', 'Limit', 'constructor', 'toString', '__proto__'])(
    'that the operation does not know are refused by name, with those that it takes: %s',
    (name) => {
      const input = Object.defineProperty(Object.create(null), name, { value: 'x', enumerable: true })
      const message = refuse(input)
      expect(message).toContain(name)
      expect(message).toContain('it takes limit, time_desc, user')
    },
  )
})

describe('path parameters', () => {
  const schema = strict({ session_id: Type.String({ format: 'uuid' }) })

  it('take a UUID in either case and return it in lower case', () => {
    const session_id = '01931B0E-7D3C-7A52-9D3F-8A4C1F0E2B6D'
    expect(validatorOf(schema, 'params')({ session_id })).toEqual({
      value: { session_id: session_id.toLowerCase() },
    })
  })

  it.each(['', 'x', '01931b0e7d3c7a529d3f8a4c1f0e2b6d', '{01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d}'])(
    'that are no UUID are refused by name: %s',
    (session_id) => {
      expect(messageFor(schema, { session_id }, 'params')).toMatch(/session_id must be a UUID such as/)
    },
  )
})

describe('headers', () => {
  const schema = Type.Object({
    'idempotency-key': Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    'if-match': Type.Optional(Type.String({ pattern: '^"(0|[1-9][0-9]{0,15})"$' })),
  })

  it('that the operation does not know stay as they are', () => {
    const input = { host: 'x', 'set-cookie': ['a', 'b'], constructor: 'x', 'if-match': '"7"' }
    // It gives nothing back that would take their place.
    expect(validatorOf(schema, 'headers')(input)).toBe(true)
  })

  it.each(['', '7', '"07"', '"-1"', '*', 'W/"7"', '"1", "2"', '"1.5"', `"${'9'.repeat(17)}"`])(
    'of the wrong form are refused by name: If-Match %s',
    (value) => {
      expect(messageFor(schema, { 'if-match': value }, 'headers')).toMatch(
        /^Header if-match must be a seq in double quotes/,
      )
    },
  )

  it('of the wrong length are refused by name', () => {
    for (const value of ['', 'k'.repeat(256)])
      expect(messageFor(schema, { 'idempotency-key': value }, 'headers')).toBe(
        'Header idempotency-key must be a string of 1 to 255 characters.',
      )
  })
})

describe('strings of a form', () => {
  const openapi = readFileSync(new URL('../../../../../openapi.json', import.meta.url), 'utf8')
  const patterns = new Set(
    [...openapi.matchAll(/"pattern": ("(?:[^"\\]|\\.)*")/g)].map(([, text]) => JSON.parse(text!)),
  )

  it.each([...patterns])('are described in words where one is refused: %s', (pattern) => {
    const message = messageFor(strict({ it: Type.String({ pattern, maxLength: 9 }) }), { it: ' ' }, 'body')
    expect(message).toMatch(/^\/it must be .*, at most 9 characters\.$/)
    expect(message).not.toContain(pattern)
  })
})
