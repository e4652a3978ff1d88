import { type AnnalsError, invalidRequest } from '../../errors.js'

export interface SchemaView {
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
  /** The alternative that was determined for the value at a path. */
  at?: { path: string; schema: SchemaView }
}

const PLACE_LENGTH_MAX = 200

/** Names for strings of known patterns. */
const FORMS: Record<string, string> = {
  '^(0|[1-9][0-9]{0,15})$': 'a whole number',
  '^https?://([a-z0-9.-]+|\\[[0-9a-f:.]+\\])(:[0-9]{1,5})?$':
    'an origin as browsers send it, such as https://app.example.com',
  '^"(0|[1-9][0-9]{0,15})"$': 'a seq in double quotes, such as "7"',
  '^(0|[1-9][0-9]{0,15})(@[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{6}Z)?$':
    'a seq such as 7, or <seq>@<created_at>',
  '^(none|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$': 'a UUID, or none',
  '^([0-9a-fA-F]{4,8}|[0-9a-fA-F]{8}-([0-9a-fA-F]{0,4}|[0-9a-fA-F]{4}-([0-9a-fA-F]{0,4}|[0-9a-fA-F]{4}-([0-9a-fA-F]{0,4}|[0-9a-fA-F]{4}-[0-9a-fA-F]{0,12}))))$':
    'the beginning of a UUID, such as 01931b0e',
  '^[0-9a-f]{64}$': 'a SHA-256 as 64 hexadecimal digits in lower case',
  '^[0-9a-f]{128}$': 'a signature of Ed25519 as 128 hexadecimal digits in lower case',
  '^https?://': 'a URL that begins with http:// or https://',
  '^https?://[^@]+$': 'a URL that begins with http:// or https://, without a user name',
  '^(message|event|event\\.[\\s\\S]+|request\\.opened|input\\.added)$':
    'message, event, event.<type>, request.opened or input.added',
  '^[^\\s@]+@[^\\s@]+$': 'an e-mail address such as ann@example.com',
  '^whsec_[A-Za-z0-9+/]{32,88}={0,2}$': 'whsec_ and 24 to 64 bytes in base64',
  '^[A-Z][A-Z_]{0,39}$': '1 to 40 capital letters and underscores, of which the first is a letter',
  '^(/[^/]{1,100}){1,7}$': 'a path such as /run/reward',
  '^[a-z0-9]+(-[a-z0-9]+)*$': 'lower-case letters and digits, with single hyphens between them',
  '^[\\x21-\\x7e]{1,1000}$': '1 to 1000 visible ASCII characters',
  '\\S': 'a text that is not blank',
}

/** Where a value came from, and what a place in it is called in a message. */
export type Part = 'body' | 'querystring' | 'params' | 'headers'

export function takes(schema: SchemaView): string {
  if (schema.anyOf) {
    const literals = schema.anyOf.every((option) => option.const !== undefined)
    return literals
      ? `one of ${schema.anyOf.map((option) => option.const).join(', ')}`
      : [...new Set(schema.anyOf.map(takes))].join(' or ')
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
      return `an array${count(schema.minItems, schema.maxItems, 'items')}${schema.items ? `, each ${takes(schema.items)}` : ''}`
    case 'object':
      return 'a JSON object'
    case 'string':
      if (schema.format === 'uuid') return 'a UUID such as 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'
      if (schema.format === 'date-time') return 'a time such as 2026-11-21T09:30:00Z'
      if (schema.pattern !== undefined)
        return `${FORMS[schema.pattern] ?? `a string like ${schema.pattern}`}${schema.maxLength === undefined ? '' : `, at most ${schema.maxLength} characters`}`
      return `a string${count(schema.minLength, schema.maxLength, 'characters')}${schema.not ? ` (not ${schema.not.enum.map((value) => JSON.stringify(value)).join(' or ')})` : ''}`
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

export function suggest(schema: SchemaView): string {
  const names = Object.keys(schema.properties ?? {})
  return names.length > 0 ? `; it takes ${names.join(', ')}` : '; it takes none'
}

export function placeOf(part: Part, path: string): string {
  // Shortened first: a caller's name may be as long as a body.
  const named = part !== 'body' && path.startsWith('/') ? path.slice(1) : path
  const shown = named === '' ? '""' : visible(named.slice(0, PLACE_LENGTH_MAX))
  const name = named.length > PLACE_LENGTH_MAX ? `${shown}…` : shown
  if (part === 'querystring') return `query parameter ${name}`
  if (part === 'headers') return `header ${name}`
  if (part === 'params') return `path parameter ${name}`
  return name
}

/** A caller's name, with invisible and direction-changing characters escaped. */
function visible(name: string): string {
  return name.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|^\p{Z}|\p{Z}$/gu,
    (character) => `\\u${character.codePointAt(0)!.toString(16).padStart(4, '0')}`,
  )
}

export function nameType(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`
}

export function refuse(sentence: string): AnnalsError {
  return invalidRequest(`${sentence[0]!.toUpperCase()}${sentence.slice(1)}.`)
}
