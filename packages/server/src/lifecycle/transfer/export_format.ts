import { MESSAGE_FORMATS } from '@annals/messages'
import { StartError } from '../../errors.js'
import { isJsonObject, isRefusal, readJson } from '../../json/read_json.js'
import { USER_IDENTIFIER_LENGTH_MAX } from '../../limits.js'

/**
 * The format of an export: JSON lines, each an object with its `kind`, between a header and a last line with the
 * checksum. docs/export-format.md describes it for others; this file checks it.
 */
export const FORMAT_VERSION = 1

/** The first line. `user` or `session_id` is set if only that was exported. */
export interface ExportHeader {
  annals_export: number
  what: 'project' | 'user' | 'session'
  project_id: string
  project: string
  user?: string
  session_id?: string
  exported_at: string
  annals_version: string
  schema_version: number
}

/** The fields of a session that are checked; the rest goes to the database as text. */
export interface SessionRecord {
  id: string
  user: string | null
  disable_task_tracking: boolean
  created_at: string
  updated_at: string
  last_seq: number
  total_tokens: number
  last_message_id: string | null
}

export interface EntryRecord {
  session_id: string
  seq: number
  id: string
  created_at: string
  tokens: number
}

/** A user or a learning space. */
export interface OwnRecord {
  id: string
  user: string | null
  created_at: string
}

export interface EndRecord {
  lines: number
  sha256: string
}

/** A valid line of its kind. `text` is the line itself. */
export type CheckedLine = { number: number; text: string } & (
  | { kind: 'user'; record: OwnRecord }
  | { kind: 'learning_space'; record: OwnRecord }
  | { kind: 'session'; record: SessionRecord }
  | { kind: 'event' | 'message'; record: EntryRecord }
  | { kind: 'end'; record: EndRecord }
)

/** An error in a line of a file, in words that follow "Line 7: ". */
export function wrongLine(number: number, reason: string): StartError {
  return new StartError(`Line ${number}: ${reason}`)
}

interface Check {
  takes: string
  fits(value: unknown): boolean
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/
const INT_MAX = 2_147_483_647

const uuid: Check = {
  takes: 'a UUID in lower case',
  fits: (value) => typeof value === 'string' && UUID.test(value),
}
const text: Check = { takes: 'a string', fits: (value) => typeof value === 'string' }
const identifier: Check = {
  takes: `a string of 1 to ${USER_IDENTIFIER_LENGTH_MAX} characters`,
  fits: (value) =>
    typeof value === 'string' && value !== '' && [...value].length <= USER_IDENTIFIER_LENGTH_MAX,
}
const object: Check = { takes: 'an object', fits: isJsonObject }
const boolean: Check = { takes: 'true or false', fits: (value) => typeof value === 'boolean' }
const time: Check = { takes: 'a time such as 2026-11-21T09:30:00.123456Z', fits: isTime }
const integer = (min: number, max: number): Check => ({
  takes: `an integer from ${min} to ${max}`,
  fits: (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max,
})
const oneOf = (values: readonly string[]): Check => ({
  takes: `one of ${values.join(', ')}`,
  fits: (value) => values.includes(value as string),
})
const nothing: Check = { takes: 'null', fits: (value) => value === null }
const orNull = (check: Check): Check => ({
  takes: `${check.takes}, or null`,
  fits: (value) => value === null || check.fits(value),
})
const times = { created_at: time, updated_at: time }
const owned = { id: uuid, user_id: orNull(uuid), user: orNull(identifier), ...times }
const entry = {
  session_id: uuid,
  seq: integer(1, Number.MAX_SAFE_INTEGER),
  id: uuid,
  ...times,
  bytes: integer(0, INT_MAX),
  tokens: integer(0, INT_MAX),
  data: object,
}

const KINDS: Record<CheckedLine['kind'], Record<string, Check>> = {
  user: { id: uuid, identifier, ...times },
  learning_space: { ...owned, meta: object },
  session: {
    ...owned,
    disable_task_tracking: boolean,
    last_seq: integer(0, Number.MAX_SAFE_INTEGER),
    total_tokens: integer(0, Number.MAX_SAFE_INTEGER),
    last_message_id: orNull(uuid),
    configs: object,
  },
  event: {
    ...entry,
    parent_id: nothing,
    type: text,
    role: nothing,
    format: nothing,
    meta: nothing,
    patched_meta: nothing,
  },
  message: {
    ...entry,
    parent_id: orNull(uuid),
    type: nothing,
    role: oneOf(['user', 'assistant']),
    format: oneOf(MESSAGE_FORMATS),
    meta: object,
    patched_meta: orNull(object),
  },
  end: { lines: integer(1, Number.MAX_SAFE_INTEGER), sha256: { ...text, takes: 'a SHA-256 in hex' } },
}

/** Reads the first line. @throws StartError if it is not a header, or has an unknown format version */
export function readHeader(source: Buffer): ExportHeader {
  const { value } = readLine(source, 1)
  if (!('annals_export' in value)) {
    const hint = 'messages' in value ? ' Import recorded runs with --format openai-runs.' : ''
    throw wrongLine(1, `this is not the header of an Annals export.${hint}`)
  }
  if (value.annals_export !== FORMAT_VERSION) {
    throw wrongLine(
      1,
      `this export has format version ${JSON.stringify(value.annals_export)}; this version of Annals reads version ${FORMAT_VERSION}. Use a version that knows it.`,
    )
  }
  return value as unknown as ExportHeader
}

/** Reads a line after the header. @throws StartError with what is wrong */
export function readExportLine(source: Buffer, number: number): CheckedLine {
  const { text, value } = readLine(source, number)
  const { kind, ...members } = value
  const checks = Object.hasOwn(KINDS, String(kind)) ? KINDS[kind as CheckedLine['kind']] : undefined
  if (!checks) {
    throw wrongLine(
      number,
      `kind must be one of ${Object.keys(KINDS).join(', ')}; it is ${JSON.stringify(kind)}.`,
    )
  }
  for (const [name, check] of Object.entries(checks)) {
    if (!check.fits(members[name])) {
      const missing = Object.hasOwn(members, name) ? '' : ' It is missing.'
      throw wrongLine(number, `${name} of a line of kind ${kind} must be ${check.takes}.${missing}`)
    }
  }
  const unknown = Object.keys(members).find((name) => !Object.hasOwn(checks, name))
  if (unknown !== undefined) {
    throw wrongLine(number, `a line of kind ${kind} has no ${JSON.stringify(unknown)}.`)
  }
  const record = kind === 'user' ? { ...members, user: members.identifier } : members
  return { number, text, kind, record } as unknown as CheckedLine
}

/** A line of any file of JSON lines. @throws StartError if it is not a JSON object that can be stored */
export function readLine(source: Buffer, number: number): { text: string; value: Record<string, unknown> } {
  const json = readJson(source)
  if (isRefusal(json)) {
    throw wrongLine(
      number,
      json.refused === 'not_json'
        ? `it is not JSON: ${json.reason}.`
        : `it cannot be stored: at ${json.pointer || '/'} ${json.reason}.`,
    )
  }
  const { text, value } = json
  if (!isJsonObject(value)) throw wrongLine(number, 'it is not a JSON object.')
  return { text, value }
}

function isTime(value: unknown): boolean {
  if (typeof value !== 'string' || !TIME.test(value)) return false
  const time = new Date(`${value.slice(0, 23)}Z`)
  // Otherwise a day that its month does not have would count as one of the next month.
  return !Number.isNaN(time.getTime()) && time.toISOString().slice(0, 23) === value.slice(0, 23)
}
