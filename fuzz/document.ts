import { readFileSync } from 'node:fs'
import { ROOT } from '../lab/root.ts'

/** The members of a JSON Schema that the contract uses. */
export interface Schema {
  $ref?: string
  type?: string
  format?: string
  pattern?: string
  contentMediaType?: string
  const?: unknown
  enum?: unknown[]
  not?: { enum: unknown[] }
  anyOf?: Schema[]
  items?: Schema
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  schema: Schema
}

/** One operation of openapi.json. */
export interface Operation {
  id: string
  method: string
  path: string
  admin: boolean
  parameters: Parameter[]
  body: Schema | undefined
  /** Statuses that it may have. */
  statuses: string[]
}

interface OperationView {
  operationId: string
  parameters?: Array<Parameter & { content?: unknown }>
  requestBody?: { content: { 'application/json'?: { schema: Schema } } }
  responses: Record<string, unknown>
}

export const document = JSON.parse(readFileSync(new URL('openapi.json', ROOT), 'utf8')) as {
  paths: Record<string, Record<string, OperationView>>
}

/** Every operation that is described, so that a new one is fuzzed by itself. */
export const operations: Operation[] = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, view]) => ({
    id: view.operationId,
    method: method.toUpperCase(),
    path,
    admin: path.startsWith('/admin/'),
    parameters: (view.parameters ?? []).map((parameter) =>
      parameter.content
        ? { ...parameter, schema: { type: 'string', contentMediaType: 'application/json' } }
        : parameter,
    ),
    // Bytes are described in no more detail.
    body: view.requestBody?.content['application/json']?.schema,
    statuses: Object.keys(view.responses),
  })),
)

/** A schema with its reference followed. */
export function resolve(schema: Schema): Schema {
  if (!schema.$ref) return schema
  const keys = schema.$ref.slice(2).split('/')
  return keys.reduce((value, key) => (value as Record<string, object>)[key]!, document as object) as Schema
}
