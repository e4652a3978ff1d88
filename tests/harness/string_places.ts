import { type describedOperations, resolveSchema, type Schema } from './described_operations.ts'

type Described = (typeof describedOperations)[number]

/** A request that has a text in one place where the description takes one. */
export interface PlacedText {
  /** Such as `path session_id` or `body /entries/0/type`. */
  place: string
  path: string
  headers: Record<string, string>
  body: unknown
}

/**
 * Every place of an operation that takes a text, with the text in it: path, query, headers, and the body at any
 * depth, in names as well as in values where names are free.
 */
export function placesOf(
  { path, operation }: Described,
  ids: Record<string, string>,
  text: string,
): PlacedText[] {
  const schema = operation.requestBody?.content['application/json']?.schema
  const body = schema && fullSampleOf(schema)
  const real = (changed: Record<string, string> = {}) =>
    path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) =>
      encodeURIComponent({ ...ids, ...changed }[name] ?? 'x'),
    )
  const parameters = (operation.parameters ?? []).map((parameter): PlacedText => {
    const place = `${parameter.in} ${parameter.name}`
    if (parameter.in === 'path') return { place, path: real({ [parameter.name]: text }), headers: {}, body }
    if (parameter.in === 'header')
      return { place, path: real(), headers: { [parameter.name]: headerText(text) }, body }
    return { place, path: `${real()}?${parameter.name}=${encodeURIComponent(text)}`, headers: {}, body }
  })
  const stray = { place: 'query', path: `${real()}?${encodeURIComponent(text)}=1`, headers: {}, body }
  const bodies = schema ? [...bodiesWith(schema, body, text, '')] : []
  return [
    ...parameters,
    stray,
    ...bodies.map(([place, body]) => ({ place: `body ${place}`, path: real(), headers: {}, body })),
  ]
}

/** What a client lets into a header; the rest would end it. */
function headerText(text: string): string {
  return encodeURI(text).replaceAll('%20', ' ')
}

/** A value with all that a schema names. */
function fullSampleOf(given: Schema): unknown {
  const schema = resolveSchema(given)
  const [example] = schema.examples ?? []
  const [alternative] = schema.anyOf ?? schema.oneOf ?? []
  if (alternative) return fullSampleOf(alternative)
  if (schema.type === 'object' && Object.keys(schema.properties ?? {}).length > 0)
    return Object.fromEntries(
      Object.entries(schema.properties!).map(([name, field]) => [name, fullSampleOf(field)]),
    )
  if (example !== undefined) return example
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.type === 'array') return schema.items ? [fullSampleOf(schema.items)] : []
  return { string: 'x', integer: 1, number: 1, boolean: true, object: {} }[schema.type!] ?? null
}

function* bodiesWith(given: Schema, sample: unknown, text: string, at: string): Generator<[string, unknown]> {
  const schema = resolveSchema(given)
  for (const alternative of schema.anyOf ?? schema.oneOf ?? [])
    yield* bodiesWith(alternative, fullSampleOf(alternative), text, at)
  if (schema.type === 'string') yield [at, text]
  if (schema.type === 'array' && schema.items)
    for (const [place, item] of bodiesWith(schema.items, fullSampleOf(schema.items), text, `${at}/0`))
      yield [place, [item]]
  if (schema.type !== 'object') return
  const fields = Object.entries(schema.properties ?? {})
  for (const [name, field] of fields)
    for (const [place, value] of bodiesWith(field, fullSampleOf(field), text, `${at}/${name}`))
      yield [place, { ...(sample as object), [name]: value }]
  if (fields.length === 0 && schema.additionalProperties !== false) {
    yield [`${at}/*`, { ...(sample as object), added: [{ deep: text }] }]
    yield [`${at}/(name)`, { ...(sample as object), [text]: text }]
  }
}
