import Type, { type TSchema } from '#typebox'
import { NAME_LENGTH_MAX, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX, USER_IDENTIFIER_LENGTH_MAX } from '../limits.js'

export const Uuid = (description: string, example = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d') =>
  Type.String({ format: 'uuid', description, examples: [example] })

export const Timestamp = (description: string) =>
  Type.String({ format: 'date-time', description, examples: ['2026-11-21T09:30:00.123456Z'] })

/** Text that says something; `example`: as in the API's description. */
export const Text = (length_max: number, description: string, example?: string) =>
  Type.String({
    ...{ minLength: 1, maxLength: length_max, description },
    ...(example !== undefined && { examples: [example] }),
  })

/** A flag that is off by default. */
export const Flag = (description: string) => Type.Boolean({ default: false, description })

/** JSON in a parameter of the query. */
export const JsonInQuery = (description: string, example: string) =>
  Type.String({ contentMediaType: 'application/json', description, examples: [example] })

/** A JSON object whose members pass through unchanged. */
export const JsonObject = (description: string, example: object) =>
  Type.Object({}, { additionalProperties: true, description, examples: [example] })

export const Nullable = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()])

export const Count = (description: string) => Type.Integer({ minimum: 0, description })

/** A whole number within bounds; `value`: what holds where it is absent. */
export const Between = (minimum: number, maximum: number, description: string, value?: number) =>
  Type.Integer({ minimum, maximum, ...(value !== undefined && { default: value }), description })

export const OneOf = <Value extends string>(values: readonly Value[], description: string) =>
  Type.Unsafe<Value>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      { description },
    ),
  )

export function optional<P extends Record<string, TSchema>>(members: P) {
  const entries = Object.entries(members).map(([name, schema]) => [name, Type.Optional(schema)])
  return Object.fromEntries(entries) as { [Name in keyof P]: ReturnType<typeof Type.Optional<P[Name]>> }
}

/** An object with exactly these fields: unknown ones are refused rather than dropped. */
export const Strict = <P extends Record<string, TSchema>>(properties: P, options: object = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options })

export const UserIdentifier = Type.String({
  minLength: 1,
  maxLength: USER_IDENTIFIER_LENGTH_MAX,
  // Standard URL parsers treat these two as directories, even spelt %2E.
  not: { enum: ['.', '..'] },
  description:
    "The caller's own identifier of a user: any text except `.` and `..`, which no URL can name. The user is created on first use.",
  examples: ['omar_davis_3817'],
})

export const Sha256 = Type.String({
  pattern: '^[0-9a-f]{64}$',
  description: 'The SHA-256 of the bytes, as 64 hexadecimal digits in lower case.',
  examples: ['9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
})

/** A name that callers' data brings. */
export const NameInPath = Type.String({ minLength: 1, maxLength: 256, description: 'The name, URL-encoded.' })

export const Name = Type.String({ minLength: 1, maxLength: NAME_LENGTH_MAX, examples: ['production'] })

/** Parameters of a list that has one order. */
export function cursorQuery(limit_default: number = PAGE_LIMIT_DEFAULT, limit_max: number = PAGE_LIMIT_MAX) {
  return optional({
    limit: Between(1, limit_max, 'Most items per page. It may change between pages.', limit_default),
    cursor: Type.String({
      description:
        'The `next_cursor` of the previous page. It belongs to its query: with another order or filter it is refused.',
    }),
  })
}

/** Parameters of a list by time. */
export function pageQuery(...limits: Parameters<typeof cursorQuery>) {
  return {
    ...cursorQuery(...limits),
    ...optional({ time_desc: Flag('true: newest first. false: oldest first.') }),
  }
}

export const PageOf = (items: TSchema) =>
  Type.Object({
    items: Type.Array(items),
    has_more: Type.Boolean({ description: 'Whether another page follows.' }),
    next_cursor: Type.String({
      description: 'The `cursor` of the next page; empty on the last page.',
    }),
  })

export const Success = (data: TSchema, message = 'ok') =>
  Type.Object({
    code: Type.Literal(0),
    error: Type.Literal(''),
    msg: Type.Literal(message),
    data,
  })

export const Empty = Type.Object({}, { description: 'Nothing to return.' })

/** A query string with no parameters: a misspelt one is refused, not ignored. */
export const NoQuery = Strict({})

export const EmptyBody = Strict({})
