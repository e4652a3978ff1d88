import { readFileSync } from 'node:fs'

/** The members of a JSON Schema that the contract uses. */
export interface Schema {
  $ref?: string
  type?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  additionalProperties?: unknown
  example?: unknown
  examples?: unknown[]
}
/** An operation as openapi.json describes it. */
export interface Operation {
  parameters?: Array<{
    name: string
    in: 'path' | 'query' | 'header'
    required?: boolean
    example?: string
    schema?: Schema
  }>
  requestBody?: { content: Record<string, { schema: Schema; example?: unknown }> }
}
interface Document {
  paths: Record<string, Record<string, Operation>>
}

const METHODS = ['get', 'put', 'patch', 'post', 'delete']
const document = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')) as Document
/** Every operation that is described: a test that goes through them covers a new one by itself. */
export const describedOperations = Object.entries(document.paths).flatMap(([path, item]) =>
  METHODS.filter((method) => item[method]).map((method) => ({ path, method, operation: item[method]! })),
)

/** A value that fits the schema: what is required, from the examples where there are any. */
export function sampleOf(given: Schema): unknown {
  const schema = resolveSchema(given)
  const [example] = schema.examples ?? (schema.example === undefined ? [] : [schema.example])
  if (example !== undefined) return example
  if (schema.enum) return schema.enum[0]
  const [alternative] = schema.anyOf ?? schema.oneOf ?? []
  if (alternative) return sampleOf(alternative)
  if (schema.type === 'array') return schema.items ? [sampleOf(schema.items)] : []
  if (schema.type === 'object') {
    const fields = schema.required ?? []
    return Object.fromEntries(fields.map((name) => [name, sampleOf(schema.properties![name]!)]))
  }
  return { string: 'x', integer: 1, number: 1, boolean: true }[schema.type!] ?? null
}

/** A schema with its reference followed. */
export function resolveSchema(schema: Schema): Schema {
  if (!schema.$ref) return schema
  const keys = schema.$ref.slice(2).split('/')
  return keys.reduce((value, key) => (value as Record<string, object>)[key]!, document as object) as Schema
}
