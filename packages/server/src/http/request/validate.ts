import { Compile, type TSchema } from '#typebox'
import { NoQuery } from '../../contract/schema.js'
import { AnnalsError } from '../../errors.js'
import { parseId } from '../../ids.js'
import type { AppServer } from '../app_server.js'
import {
  nameType,
  type Part,
  placeOf,
  refuse,
  type SchemaView,
  suggest,
  takes,
} from '../openapi/schema_words.js'
import { revived, TakenBody } from './taken_body.js'

/**
 * Validates every part of a request by the schema of the contract. Query parameters, path parameters and
 * headers are text, read strictly by the schema's type: an integer is digits, a boolean is true or false. An operation
 * without a schema of its query takes no parameters.
 */
export function validateRequests(app: AppServer): void {
  app.addHook('onRoute', ({ schema }) => {
    if (schema?.operationId) schema.querystring ??= NoQuery
  })
  app.setValidatorCompiler(({ schema, httpPart }) => {
    const part = httpPart as Part
    if (part === 'body') return bodyValidator(schema as TSchema)
    const view = schema as SchemaView
    let validator: Validator | undefined
    return (input: unknown) => {
      validator ??= Compile(schema as TSchema)
      const value = readTexts(view, input as Record<string, unknown>, part)
      if (value instanceof AnnalsError) return { error: value }
      // Headers are only checked, and the others must stay. Replacing the object would copy it at every access.
      if (validator.Check(value)) return part === 'headers' ? true : { value }
      return { error: describeFirst(view, validator.Errors(value) as SchemaError[], value, part) }
    }
  })
}

/** A schema is compiled when it is first needed: all of them take a tenth of a start. */
type Validator = ReturnType<typeof Compile>

export type Validate = (input: unknown) => { error?: AnnalsError; value?: unknown }

export function bodyValidator(schema: TSchema): Validate {
  const view = schema as SchemaView
  let validator: Validator | undefined
  return (input = {}) => {
    validator ??= Compile(schema)
    if (input instanceof TakenBody) {
      const { outcome } = input
      return outcome.stage === 'validation' ? { error: revived(outcome.error) } : { value: input }
    }
    if (validator.Check(input)) return { value: input }
    const errors = validator.Errors(withoutExcess(view, input)) as SchemaError[]
    return { error: describeFirst(view, errors, input, 'body') }
  }
}

/**
 * A body whose arrays have one item too many at most. Each item has errors of its own, of which one is told: those of
 * a megabyte of items took 160 MB.
 */
function withoutExcess({ properties = {} }: SchemaView, input: unknown): unknown {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return input
  const shortened: Record<string, unknown> = { ...input }
  for (const [name, { maxItems }] of Object.entries(properties)) {
    const items = shortened[name]
    if (maxItems !== undefined && Array.isArray(items)) shortened[name] = items.slice(0, maxItems + 1)
  }
  return shortened
}

function readTexts(
  schema: SchemaView,
  input: Record<string, unknown>,
  part: Part,
): Record<string, unknown> | AnnalsError {
  const values: Record<string, unknown> = {}
  const { properties = {} } = schema
  // Unknown headers are allowed; unknown parameters are not.
  for (const name of Object.keys(part === 'headers' ? properties : input)) {
    const raw = input[name]
    if (raw === undefined) continue
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (!property) return refuse(`${placeOf(part, name)} is not a parameter here${suggest(schema)}`)
    if (Array.isArray(raw)) return refuse(`${placeOf(part, name)} is given more than once; send it once`)
    const text = String(raw)
    if (text.includes('\0')) return refuse(`${placeOf(part, name)} contains the character U+0000`)
    const value = readText(property, text)
    if (value === undefined) return refuse(`${placeOf(part, name)} must be ${takes(property)}`)
    values[name] = value
  }
  return values
}

function readText(schema: SchemaView, text: string): unknown {
  if (schema.type === 'integer')
    return /^-?\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined
  if (schema.type === 'boolean') return text === 'true' ? true : text === 'false' ? false : undefined
  if (schema.format === 'uuid') return parseId(text)
  return text
}

interface SchemaError {
  keyword: string
  instancePath: string
  params: Record<string, unknown>
}

function describeFirst(schema: SchemaView, errors: SchemaError[], value: unknown, part: Part): AnnalsError {
  const inBranch = describeInBranch(schema, errors, value, part)
  if (inBranch) return inBranch
  const unknown = errors.find((error) => error.keyword === 'additionalProperties')
  const extra = unknown && (unknown.params.additionalProperties as string[] | undefined)?.[0]
  if (unknown && extra !== undefined) {
    return refuse(
      `${placeOf(part, `${unknown.instancePath}/${extra}`)} is not a field here${suggest(schemaAt(schema, unknown.instancePath))}`,
    )
  }
  const first = errors[0]!
  if (first.keyword === 'required') {
    const missing = (first.params.requiredProperties as string[])[0]!
    const path = `${first.instancePath}/${missing}`
    return refuse(`${placeOf(part, path)} is required: ${takes(schemaAt(schema, path))}`)
  }
  const path = first.instancePath
  if (path === '' && part === 'body')
    return refuse(`the body must be ${takes(schema)}, not ${nameType(value)}`)
  return refuse(`${placeOf(part, path)} must be ${takes(schemaAt(schema, path))}`)
}

/**
 * If a schema has alternatives told apart by a member (`x-discriminator`), the errors of all of them together say
 * little. So the value is validated again by the alternative that it names.
 */
function describeInBranch(
  schema: SchemaView,
  errors: SchemaError[],
  value: unknown,
  part: Part,
): AnnalsError | undefined {
  const paths = new Set(errors.flatMap(({ instancePath }) => prefixesOf(instancePath)))
  for (const path of paths) {
    const here = schemaAt(schema, path)
    const name = here['x-discriminator']
    if (name === undefined || !here.anyOf || (schema.at && path.startsWith(schema.at.path))) continue
    const at = valueAt(value, path) as Record<string, unknown> | null
    const kinds = here.anyOf.map((option) => option.properties?.[name]?.const)
    const branch = here.anyOf[kinds.indexOf(at?.[name])]
    if (!branch) return refuse(`${placeOf(part, `${path}/${name}`)} must be one of ${kinds.join(', ')}`)
    const found = Compile(branch as TSchema).Errors(at) as SchemaError[]
    if (found.length === 0) continue
    const moved = found.map((error) => ({ ...error, instancePath: path + error.instancePath }))
    return describeFirst({ ...schema, at: { path, schema: branch } }, moved, value, part)
  }
  return undefined
}

/** The path and its ancestors: /a/b gives /a and /a/b. */
function prefixesOf(path: string): string[] {
  const keys = path.split('/').slice(1)
  return keys.map((_, index) => `/${keys.slice(0, index + 1).join('/')}`)
}

function valueAt(value: unknown, path: string): unknown {
  let at = value
  for (const key of path.split('/').slice(1)) at = (at as Record<string, unknown> | undefined)?.[key]
  return at
}

function schemaAt(schema: SchemaView, path: string): SchemaView {
  const chosen = schema.at && path.startsWith(schema.at.path) ? schema.at : undefined
  let at: SchemaView | undefined = chosen?.schema ?? schema
  for (const key of path
    .slice(chosen?.path.length ?? 0)
    .split('/')
    .slice(1)) {
    const here: SchemaView | undefined = at?.anyOf?.find((option) => option.type !== 'null') ?? at
    at =
      here?.type === 'array'
        ? here.items
        : here?.properties?.[key.replaceAll('~1', '/').replaceAll('~0', '~')]
  }
  return at ?? {}
}
