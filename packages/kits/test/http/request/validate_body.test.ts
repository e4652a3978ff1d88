import Type, { type TSchema } from 'typebox'
import { describe, expect, it } from 'vitest'
import { UserIdentifier } from '../../../src/contract/schema.ts'
import { messageFor, strict, validatorOf } from './validators.ts'

describe('a body that does not fit', () => {
  const Nested = strict({
    list: Type.Array(strict({ 'a/b': Type.Optional(Type.String({ minLength: 1 })), n: Type.Integer() }), {
      maxItems: 2,
    }),
  })

  const Either = Type.Union(
    [
      strict({ kind: Type.Literal('a'), n: Type.Integer() }),
      strict({
        kind: Type.Literal('b'),
        list: Type.Array(
          Type.Union([strict({ kind: Type.Literal('c'), n: Type.Integer() })], { 'x-discriminator': 'kind' }),
        ),
      }),
    ],
    { 'x-discriminator': 'kind' },
  )

  it.each<[string, TSchema, unknown, RegExp]>([
    ['alternative of the whole', Either, { kind: 'a', n: 'x' }, /^\/n must be an integer/],
    ['alternative of the whole, required', Either, { kind: 'a' }, /^\/n is required/],
    ['alternative of the whole, unknown', Either, { kind: 'x' }, /^\/kind must be one of a, b/],
    ['alternative of the whole, no object', Either, [], /^The body must be/],
    [
      'alternative inside one',
      Either,
      { kind: 'b', list: [{ kind: 'c', n: 'x' }] },
      /^\/list\/0\/n must be an integer/,
    ],
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
      'items of several kinds that read alike',
      strict({ a: Type.Array(Type.Union([strict({ n: Type.Integer() }), strict({})]), { maxItems: 1 }) }),
      { a: [{}, {}] },
      /^\/a must be an array of 0 to 1 items, each a JSON object\.$/,
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
    [
      'not',
      strict({ a: UserIdentifier }),
      { a: '..' },
      /^\/a must be a string of 1 to 256 characters \(not "\." or "\.\."\)/,
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

  it('has no more items of an array looked at than it may have, and one', () => {
    let looks = 0
    const item = {
      get n() {
        looks += 1
        return 'no integer'
      },
    }
    expect(messageFor(Nested, { list: Array(100_000).fill(item) })).toMatch(
      /^\/list\/0\/n must be an integer/,
    )
    expect(looks).toBeLessThan(100)
  })

  it('does not make a message long by having a long key', () => {
    expect(messageFor(strict({}), { ['k'.repeat(10_000)]: 1 })!.length).toBeLessThan(400)
  })
})
