import Type, { type TSchema } from 'typebox'
import { describe, expect, it } from 'vitest'
import { AnnalsError } from '../../src/errors.ts'
import type { AppServer } from '../../src/http/app_parts.ts'
import { validateRequests } from '../../src/http/validate.ts'

type Outcome = { value?: unknown; error?: AnnalsError }
type Compiler = (route: { schema: TSchema; httpPart: string }) => (input: unknown) => Outcome

/** The validator of one part of a request, as an app would be given it. */
function validatorOf(schema: TSchema, httpPart: string): (input: unknown) => Outcome {
  let compile: Compiler | undefined
  const app = { setValidatorCompiler: (compiler: Compiler) => (compile = compiler) }
  validateRequests(app as unknown as AppServer)
  return compile!({ schema, httpPart })
}

const strict = (properties: Record<string, TSchema>) =>
  Type.Object(properties, { additionalProperties: false })

function messageFor(schema: TSchema, input: unknown, httpPart = 'body'): string | undefined {
  const { error } = validatorOf(schema, httpPart)(input)
  if (error === undefined) return undefined
  expect(error).toBeInstanceOf(AnnalsError)
  expect(error.error).toBe('invalid_request')
  return error.message
}

describe('a body that does not fit', () => {
  const Nested = strict({
    list: Type.Array(strict({ 'a/b': Type.Optional(Type.String({ minLength: 1 })), n: Type.Integer() }), {
      maxItems: 2,
    }),
  })

  it.each<[string, TSchema, unknown, RegExp]>([
    ['type', strict({ a: Type.String() }), { a: 1 }, /^\/a must be a string/],
    ['type of the whole', strict({}), [], /^The body must be a JSON object, not an array/],
    ['type of the whole, a text', strict({}), 'x', /^The body must be a JSON object, not a string/],
    ['required', strict({ a: Type.String(), b: Type.String() }), { a: '' }, /^\/b is required: a string/],
    ['required, inside', Nested, { list: [{ n: 1 }, {}] }, /^\/list\/1\/n is required: an integer/],
    [
      'additionalProperties',
      strict({ a: Type.Optional(Type.String()) }),
      { b: 1 },
      /^\/b is not a field here; it takes a\./,
    ],
    [
      'additionalProperties, inside',
      Nested,
      { list: [{ n: 1, x: 1 }] },
      /^\/list\/0\/x is not a field here; it takes a\/b, n\./,
    ],
    ['additionalProperties, none known', strict({}), { b: 1 }, /^\/b is not a field here; it takes none\./],
    [
      'minLength',
      strict({ a: Type.String({ minLength: 1, maxLength: 9 }) }),
      { a: '' },
      /^\/a must be a string of 1 to 9 char/,
    ],
    [
      'maxLength',
      strict({ a: Type.String({ maxLength: 2 }) }),
      { a: 'abc' },
      /^\/a must be a string of 0 to 2 characters/,
    ],
    [
      'minimum',
      strict({ a: Type.Integer({ minimum: 1 }) }),
      { a: 0 },
      /^\/a must be an integer of at least 1/,
    ],
    [
      'maximum',
      strict({ a: Type.Integer({ minimum: 1, maximum: 3 }) }),
      { a: 4 },
      /^\/a must be an integer from 1 to 3/,
    ],
    ['integer', strict({ a: Type.Integer() }), { a: 1.5 }, /^\/a must be an integer/],
    ['boolean', strict({ a: Type.Boolean() }), { a: 'true' }, /^\/a must be true or false/],
    ['null', strict({ a: Type.Null() }), { a: 0 }, /^\/a must be null/],
    [
      'minItems',
      strict({ a: Type.Array(Type.String(), { minItems: 1 }) }),
      { a: [] },
      /^\/a must be an array .*of at least 1 items/,
    ],
    [
      'maxItems',
      Nested,
      { list: [{ n: 1 }, { n: 1 }, { n: 1 }] },
      /^\/list must be an array .*of 0 to 2 items/,
    ],
    [
      'uniqueItems',
      strict({ a: Type.Array(Type.String(), { uniqueItems: true }) }),
      { a: ['x', 'x'] },
      /^\/a must be an array/,
    ],
    [
      'format uuid',
      strict({ a: Type.String({ format: 'uuid' }) }),
      { a: 'x' },
      /^\/a must be a UUID such as/,
    ],
    [
      'format date-time',
      strict({ a: Type.String({ format: 'date-time' }) }),
      { a: 'now' },
      /^\/a must be a time such as/,
    ],
    ['const', strict({ a: Type.Literal('x') }), { a: 'y' }, /^\/a must be "x"/],
    [
      'a union of literals',
      strict({ a: Type.Union([Type.Literal('x'), Type.Literal('y')]) }),
      { a: 'z' },
      /^\/a must be one of x, y/,
    ],
    [
      'anyOf with null',
      strict({ a: Type.Union([Type.Integer(), Type.Null()]) }),
      { a: 'z' },
      /^\/a must be an integer or null/,
    ],
    [
      'an object',
      strict({ a: Type.Object({}, { additionalProperties: true }) }),
      { a: [] },
      /^\/a must be a JSON object/,
    ],
  ])('is refused with the place and what it takes: %s', (_keyword, schema, input, message) => {
    expect(messageFor(schema, input)).toMatch(message)
  })

  it('is described as if it were {} when there is none', () => {
    const schema = strict({ a: Type.Optional(Type.String()) })
    expect(validatorOf(schema, 'body')(undefined)).toEqual({ value: {} })
    expect(messageFor(strict({ a: Type.String() }), undefined)).toMatch(/^\/a is required/)
  })

  it('has keys of every name looked at, those that JavaScript treats specially included', () => {
    for (const name of ['__proto__', 'constructor', 'toString'])
      expect(messageFor(strict({ a: Type.Optional(Type.Null()) }), JSON.parse(`{"${name}":1}`))).toMatch(
        new RegExp(`^/${name} is not a field here`),
      )
  })

  it('does not make a message long by having a long key', () => {
    expect(messageFor(strict({}), { ['k'.repeat(10_000)]: 1 })!.length).toBeLessThan(400)
  })
})

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
    expect(refuse({ user: ['a', 'a'] })).toMatch(/^Query parameter user is given more than once/)
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

  it('take a UUID in either case and give it in lower case', () => {
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
    expect(validatorOf(schema, 'headers')(input)).toEqual({ value: input })
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
