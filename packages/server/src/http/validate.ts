import { Compile, type TSchema } from '#typebox'
import { AnnalsError } from '../errors.js'
import { parseId } from '../ids.js'
import type { AppServer } from './app_parts.js'

/** The members of a JSON Schema that we use, for reading it back in a message. */
interface SchemaView {
  type?: string
  format?: string
  description?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  pattern?: string
  const?: unknown
  enum?: unknown[]
  not?: { enum: unknown[] }
  anyOf?: SchemaView[]
  items?: SchemaView
  required?: string[]
  properties?: Record<string, SchemaView>
  'x-discriminator'?: string
  /** The alternative that a value at a path was found to be. */
  at?: { path: string; schema: SchemaView }
}

const PLACE_LENGTH_MAX = 200

/** Where a value came from, and how a place in it is called in a message. */
type Part = 'body' | 'querystring' | 'params' | 'headers'

/**
 * Validates every part of a request by the schema of the contract. Query parameters, path parameters and
 * headers are text, read strictly by the schema's type: an integer is digits, a boolean is true or false.
 */
export function validateRequests(app: AppServer): void {
  app.setValidatorCompiler(({ schema, httpPart }) => {
    const part = httpPart as Part
    const view = schema as SchemaView
    const validator = Compile(schema as TSchema)
    return (input: unknown) => {
      const value =
        part === 'body'
          ? input === undefined
            ? {}
            : input
          : readTexts(view, input as Record<string, unknown>, part)
      if (value instanceof AnnalsError) return { error: value }
      // Headers are only checked: the rest of them must stay. Given back, they would be copied at every look at one.
      if (validator.Check(value)) return part === 'headers' ? true : { value }
      return { error: describeFirst(view, validator.Errors(value) as SchemaError[], value, part) }
    }
  })
}

function readTexts(
  schema: SchemaView,
  input: Record<string, unknown>,
  part: Part,
): Record<string, unknown> | AnnalsError {
  const values: Record<string, unknown> = {}
  const { properties = {} } = schema
  // Any header may come along; of parameters, each must be known.
  for (const name of Object.keys(part === 'headers' ? properties : input)) {
    const raw = input[name]
    if (raw === undefined) continue
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (!property) return refuse(`${placeOf(part, name)} is not a parameter here${suggest(schema)}`)
    if (Array.isArray(raw)) return refuse(`${placeOf(part, name)} is given more than once; give it once`)
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
 * Where a schema has alternatives that a member tells apart (`x-discriminator`), the errors of all of them say
 * little: the value is looked at again by the one that it names.
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

/** The path and the paths of what it lies in: /a/b gives /a and /a/b. */
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

/** What a schema takes, in words. */
function takes(schema: SchemaView): string {
  if (schema.anyOf) {
    const literals = schema.anyOf.every((option) => option.const !== undefined)
    return literals
      ? `one of ${schema.anyOf.map((option) => option.const).join(', ')}`
      : schema.anyOf.map(takes).join(' or ')
  }
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return `one of ${schema.enum.join(', ')}`
  switch (schema.type) {
    case 'integer':
      return `an integer${between(schema.minimum, schema.maximum)}`
    case 'boolean':
      return 'true or false'
    case 'null':
      return 'null'
    case 'array':
      return `an array of ${schema.items ? `(${takes(schema.items)})` : 'values'}${count(schema.minItems, schema.maxItems, 'items')}`
    case 'object':
      return 'a JSON object'
    case 'string':
      if (schema.format === 'uuid') return 'a UUID such as 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'
      if (schema.format === 'date-time') return 'a time such as 2026-11-21T09:30:00Z'
      if (schema.pattern === '^"(0|[1-9][0-9]{0,15})"$') return 'a seq in double quotes, such as "7"'
      return `a string${count(schema.minLength, schema.maxLength, 'characters')}${schema.not ? ` other than ${schema.not.enum.join(' and ')}` : ''}`
  }
  return 'a JSON value'
}

function between(min: number | undefined, max: number | undefined): string {
  if (min !== undefined && max !== undefined) return ` from ${min} to ${max}`
  return min !== undefined ? ` of at least ${min}` : ''
}

function count(min: number | undefined, max: number | undefined, unit: string): string {
  if (max !== undefined) return ` of ${min ?? 0} to ${max} ${unit}`
  return min !== undefined ? ` of at least ${min} ${unit}` : ''
}

function suggest(schema: SchemaView): string {
  const names = Object.keys(schema.properties ?? {})
  return names.length > 0 ? `; it takes ${names.join(', ')}` : '; it takes none'
}

function placeOf(part: Part, path: string): string {
  // Cut before it is looked at: a caller's name may be as long as a body.
  const named = part !== 'body' && path.startsWith('/') ? path.slice(1) : path
  const shown = named === '' ? '""' : visible(named.slice(0, PLACE_LENGTH_MAX))
  const name = named.length > PLACE_LENGTH_MAX ? `${shown}…` : shown
  if (part === 'querystring') return `query parameter ${name}`
  if (part === 'headers') return `header ${name}`
  if (part === 'params') return `path parameter ${name}`
  return name
}

/** A caller's name with what no one would see, or what would change how the rest is read, written out. */
function visible(name: string): string {
  return name.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|^\p{Z}|\p{Z}$/gu,
    (character) => `\\u${character.codePointAt(0)!.toString(16).padStart(4, '0')}`,
  )
}

function nameType(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`
}

function refuse(sentence: string): AnnalsError {
  return new AnnalsError('invalid_request', `${sentence[0]!.toUpperCase()}${sentence.slice(1)}.`)
}
