import { isJsonObject, isRefusal, parseJson, readStorable, writeJson } from '@annals/messages/json'
import { Compile, type TSchema } from '#typebox'
import { NoQuery } from '../../contract/schema.js'
import { AnnalsError, invalidRequest } from '../../errors.js'
import { parseId } from '../../ids.js'
import { OBJECT_BYTES_MAX } from '../../limits.js'
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
import { revived, type TakeBody, TakenBody } from './read_body.js'

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
    if (Array.isArray(raw)) return refuse(`${placeOf(part, name)} was sent more than once; send it once`)
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
    if (name === undefined || !here.anyOf || schema.at?.path.startsWith(path)) continue
    const at = valueAt(value, path) as Record<string, unknown> | null
    if (path === '' && !isJsonObject(at)) continue
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

/** The path and its ancestors: the whole, /a and /a/b for /a/b. */
function prefixesOf(path: string): string[] {
  const keys = path.split('/')
  return keys.map((_, index) => keys.slice(0, index + 1).join('/'))
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

/**
 * Reads a containment filter from the query string: a JSON object, as text for PostgreSQL. An empty object
 * filters nothing and counts as none.
 * @throws AnnalsError invalid_request
 */
export function parseFilter(name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const value = readParameter(name, text, 'a JSON object')
  if (!isJsonObject(value)) {
    throw invalidRequest(`Query parameter ${name} must be a JSON object such as {"agent":"gpt-4o"}.`)
  }
  return Object.keys(value).length === 0 ? undefined : text
}

export function parseParameter(
  name: string,
  text: string,
  validate: (value: unknown) => { error?: AnnalsError },
): unknown {
  const value = readParameter(name, text, 'JSON')
  const { error } = validate(value)
  if (error) throw invalidRequest(`Query parameter ${name}: ${error.message}`)
  return value
}

function readParameter(name: string, text: string, what: string): unknown {
  const json = readStorable(text)
  if (!isRefusal(json)) return json.value
  const reason = json.refused === 'not_json' ? json.reason : `at ${json.pointer || '/'} ${json.reason}`
  throw invalidRequest(`Query parameter ${name} must be ${what}, URL-encoded: ${reason}.`)
}

/**
 * Refuses an object of the body that exceeds the size of configs and meta. If the whole body is smaller, nothing
 * needs to be measured; otherwise the object is measured without insignificant space.
 * @throws AnnalsError payload_too_large
 */
export function checkObjectBytes(pointer: string, value: object | null | undefined, bodyText?: string): void {
  if (!value || (bodyText !== undefined && bodyText.length * 3 <= OBJECT_BYTES_MAX)) return
  // In the parsed value, long numbers are doubles; only the text has all their digits.
  const exact =
    bodyText === undefined ? value : (parseJson(bodyText) as Record<string, unknown>)[pointer.slice(1)]
  const bytes = Buffer.byteLength(writeJson(exact))
  if (bytes > OBJECT_BYTES_MAX) {
    throw new AnnalsError(
      'payload_too_large',
      `${pointer} has ${bytes} bytes; at most ${OBJECT_BYTES_MAX} are allowed.`,
    )
  }
}

const FRACTION = /\.(\d{1,6})/

/**
 * A time of a caller's (RFC 3339, of any precision) in UTC, to the microsecond: the database accepts no offset of 16 hours
 * and more. `place`: what an error calls it, such as /expires_at.
 * @throws AnnalsError invalid_request
 */
export function timeInUtc(place: string, text: string): string
/** The same of one that may be absent. */
export function timeInUtc(place: string, text: string | null | undefined): string | undefined
export function timeInUtc(place: string, text: string | null | undefined): string | undefined {
  if (text == null) return undefined
  const time = new Date(text)
  const year = time.getUTCFullYear()
  if (!(year >= 1 && year <= 9_999))
    throw invalidRequest(
      `${place} must be a time such as 2026-11-21T09:30:00Z, from the year 1 to 9999 and without a leap second.`,
    )
  const micros = (FRACTION.exec(text)?.[1] ?? '').padEnd(6, '0')
  return `${time.toISOString().slice(0, 19)}.${micros}Z`
}

/** Of a body whose only content is a `meta`, which passes through as text. */
export const checkMeta: TakeBody<{ meta: object }, void> = ({ meta }, text) =>
  checkObjectBytes('/meta', meta, text)
