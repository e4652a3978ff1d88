import fc from 'fast-check'

/** What the arbitrary messages of every format are made of. */

export const text = fc.oneof(
  fc.constantFrom('', ' ', 'Hello', '{"a":1}', 'naïve 🛫'),
  fc.string({ unit: 'binary' }),
)
export const id = fc.oneof(fc.stringMatching(/^call_[a-z0-9]{1,8}$/), fc.string())
export const name = fc.oneof(fc.constantFrom('book_flight', 'search'), fc.string())
export const base64 = fc.base64String({ maxLength: 16 })
export const json = fc.jsonValue({ maxDepth: 3 })
export const jsonObject = fc.dictionary(fc.string(), json, { maxKeys: 3 }) as fc.Arbitrary<
  Record<string, unknown>
>
export const callArguments = fc.oneof(
  jsonObject.map((value) => JSON.stringify(value)),
  fc.constantFrom(
    '',
    '{a:',
    '[1]',
    'null',
    '"x"',
    '{"unparsed_arguments":"{}"}',
    '{"id":12345678901234567890}',
  ),
  text,
)
export const url = fc.constantFrom(
  'https://example.com/a.png',
  'http://example.com/doc.pdf?x=1',
  'gs://bucket/clip.mp4',
  'data:image/png;base64,iVBORw0KGgo=',
  'data:text/plain,a%20b',
  'data:broken,%',
  'not a url',
)
export const mediaType = fc.constantFrom(
  'image/png',
  'image/jpg',
  'image/svg+xml',
  'audio/wav',
  'audio/ogg',
  'video/mp4',
  'application/pdf',
  'text/csv',
  'application/zip',
  '',
)

/** A record of which the members in `optional` may be absent. */
export function shape<Value>(
  required: Record<string, fc.Arbitrary<unknown>>,
  optional: Record<string, fc.Arbitrary<unknown>> = {},
): fc.Arbitrary<Value> {
  return fc.record(
    { ...required, ...optional },
    { requiredKeys: Object.keys(required) },
  ) as fc.Arbitrary<Value>
}
export const is = (value: string) => fc.constant(value)
export const list = (item: fc.Arbitrary<unknown>) => fc.array(item, { maxLength: 4 })
export const orNull = (value: fc.Arbitrary<unknown>) => fc.option(value, { nil: null })
export const unknownBlock = shape<object>(
  { type: fc.constantFrom('novel', 'container_upload') },
  { novelty: json },
)

const cacheControl = orNull(shape({ type: is('ephemeral') }, { ttl: fc.constantFrom('5m', '1h') }))
/** The cache mark that an Anthropic block may have. */
export const cached = { cache_control: cacheControl }
