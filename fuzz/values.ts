import fc from 'fast-check'
import { costlyJson, costlyTexts } from './costly_shapes.ts'
import { resolve, type Schema } from './document.ts'
import { HOSTILE_TEXTS, HOSTILE_VALUES, RawJson } from './hostile.ts'

/** An optional field is left out as often as not; a value of another's kind comes this rarely. */
const KEYS_MAX = 4
const ITEMS_MAX = 4

const json = fc.jsonValue({ maxDepth: 3, noUnicodeString: false })
const object = fc.dictionary(
  fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', 'a', 'ß😀')),
  json,
  { maxKeys: KEYS_MAX },
)

/** What a message is stands in no schema: each provider has its own. Most formats take this one. */
const message = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      role: fc.constantFrom('user', 'assistant'),
      content: fc.string({ minLength: 1 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constantFrom('function_call', 'function_call_output', 'mcp_call'),
      call_id: fc.string(),
      name: fc.string(),
      arguments: fc.string(),
      output: fc.string(),
    }),
  },
  { weight: 1, arbitrary: object },
)

/** Values that fit a schema, as far as a schema can say it. */
export function fitting(given: Schema): fc.Arbitrary<unknown> {
  const schema = resolve(given)
  const { not } = schema
  const plain = plainlyFitting(schema)
  return not ? plain.filter((value) => !not.enum.includes(value)) : plain
}

function plainlyFitting(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map(fitting))
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  switch (schema.type) {
    case 'string':
      return fittingText(schema)
    case 'integer':
    case 'number':
      return fc.integer({ min: schema.minimum ?? -1_000, max: schema.maximum ?? 2 ** 40 })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return fittingArray(schema)
    case 'object':
      return fittingObject(schema)
  }
  return json
}

function fittingText(schema: Schema): fc.Arbitrary<string> {
  if (schema.format === 'uuid') return fc.uuid()
  if (schema.format === 'date-time')
    return fc
      .date({ min: new Date('1990-01-01'), max: new Date('2990-01-01'), noInvalidDate: true })
      .map((date) => date.toISOString())
  if (schema.pattern) return fc.stringMatching(new RegExp(schema.pattern))
  if (schema.contentMediaType === 'application/json') return object.map((value) => JSON.stringify(value))
  const { minLength = 0, maxLength = 40 } = schema
  const limits = { minLength, maxLength: Math.min(maxLength, 40) }
  return fc.oneof(fc.string({ ...limits, unit: 'grapheme' }), fc.string({ ...limits, unit: 'binary' }))
}

function fittingArray(schema: Schema): fc.Arbitrary<unknown[]> {
  const limits = {
    minLength: schema.minItems ?? 0,
    maxLength: Math.min(schema.maxItems ?? ITEMS_MAX, ITEMS_MAX),
  }
  const items = schema.items ? fitting(schema.items) : json
  return schema.uniqueItems ? fc.uniqueArray(items, limits) : fc.array(items, limits)
}

/** What no schema says; and a wait is short, so that there is time for other requests. */
const BY_NAME: Record<string, fc.Arbitrary<unknown>> = { blob: message, wait_ms: fc.nat(20) }

function fittingObject(schema: Schema): fc.Arbitrary<object> {
  const fields = Object.entries(schema.properties ?? {})
  if (fields.length === 0) return schema.additionalProperties === false ? fc.constant({}) : object
  const named = Object.fromEntries(fields.map(([name, field]) => [name, BY_NAME[name] ?? fitting(field)]))
  return fc.record(named, { requiredKeys: schema.required ?? [] })
}

const valuesOf = (shapes: Array<[string, string]>) => shapes.map(([, text]) => text)
/** Short enough for a request line, and as long as a body is on the event loop or beside it. */
const costlyText = fc.constantFrom(...[3_000, 40_000].flatMap((bytes) => valuesOf(costlyTexts(bytes))))
const costlyValue = fc.constantFrom(
  ...[7_000, 100_000].flatMap((bytes) => valuesOf(costlyJson(bytes)).map((text) => new RawJson(text))),
)

export const hostileText: fc.Arbitrary<string> = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...HOSTILE_TEXTS) },
  { weight: 1, arbitrary: costlyText },
)

/** Anything at all. */
export const hostile: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 5, arbitrary: hostileText },
  { weight: 5, arbitrary: fc.constantFrom(...HOSTILE_VALUES) },
  { weight: 5, arbitrary: object },
  { weight: 5, arbitrary: json },
  { weight: 1, arbitrary: costlyValue },
)

/**
 * Values that nearly fit: a fitting one with one place replaced, added or taken away, at any depth.
 */
export function nearlyFitting(schema: Schema): fc.Arbitrary<unknown> {
  return fc
    .tuple(
      fitting(schema),
      fc.array(fc.nat(7), { minLength: 1, maxLength: 4 }),
      hostile,
      fc.nat(3),
      hostileText,
    )
    .map(([value, way, intruder, deed, name]) => replaced(value, way, { intruder, deed, name }))
}

interface Change {
  intruder: unknown
  deed: number
  name: string
}

function replaced(value: unknown, way: number[], change: Change): unknown {
  const [step, ...rest] = way
  if (step === undefined || typeof value !== 'object' || value === null) return change.intruder
  if (Array.isArray(value)) {
    if (value.length === 0 || change.deed === 0) return [...value, change.intruder]
    return value.map((item, index) => (index === step % value.length ? replaced(item, rest, change) : item))
  }
  const keys = Object.keys(value)
  if (keys.length === 0 || change.deed === 0) return withKey(value, change.name, change.intruder)
  const key = keys[step % keys.length]!
  if (change.deed === 1) return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key))
  return withKey(value, key, replaced((value as Record<string, unknown>)[key], rest, change))
}

/** A copy with a key of any name, `__proto__` included. */
function withKey(value: object, key: string, item: unknown): object {
  const copy = Object.create(null) as object
  for (const [name, old] of Object.entries(value))
    Object.defineProperty(copy, name, { value: old, enumerable: true, configurable: true })
  return Object.defineProperty(copy, key, { value: item, enumerable: true, configurable: true })
}
