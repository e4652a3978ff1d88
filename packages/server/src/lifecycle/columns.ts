import { isJsonObject } from '@annals/messages/json'
import { USER_IDENTIFIER_LENGTH_MAX } from '../limits.js'
import { dayText, timestampText } from '../lists/resource_json.js'

/** What a value in a line of an export must be. `type`: of the column with it, where statements are made of it. */
export interface LineCheck {
  takes: string
  fits(value: unknown): boolean
  type?: keyof typeof TYPES
}

interface ColumnType {
  check: LineCheck
  /** SQL that gives the column as JSON, null where it is. */
  write(column: string): string
  /** SQL that reads the column from the line `l`. */
  read(name: string): string
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/
const INT_MAX = 2_147_483_647

const asText = (cast: string) => (name: string) => `(l ->> '${name}')::${cast}`
/** SQL: a string of JSON, from text that needs no escapes. */
export const quoted = (expression: string) => `'"' || ${expression} || '"'`
const plain = (column: string) => column
const integer = (min: number, max: number): LineCheck => ({
  takes: `an integer from ${min} to ${max}`,
  fits: (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max,
})

export const CHECKS = {
  text: { takes: 'a string', fits: (value) => typeof value === 'string' },
  identifier: {
    takes: `a string of 1 to ${USER_IDENTIFIER_LENGTH_MAX} characters`,
    fits: (value) =>
      typeof value === 'string' && value !== '' && [...value].length <= USER_IDENTIFIER_LENGTH_MAX,
  },
  nothing: { takes: 'null', fits: (value) => value === null },
} as const satisfies Record<string, LineCheck>

/** How values pass from a table to a line of an export and back. JSON passes as text, so that no digit is lost. */
const TYPES = {
  uuid: {
    check: {
      takes: 'a UUID in lower case',
      fits: (value) => typeof value === 'string' && UUID.test(value),
    },
    write: quoted,
    read: asText('uuid'),
  },
  text: { check: CHECKS.text, write: (column) => `to_json(${column})`, read: asText('text') },
  identifier: { check: CHECKS.identifier, write: (column) => `to_json(${column})`, read: asText('text') },
  time: {
    check: { takes: 'a time such as 2026-11-21T09:30:00.123456Z', fits: isTime },
    write: (column) => quoted(timestampText(column)),
    read: asText('timestamptz'),
  },
  date: {
    check: {
      takes: 'a day such as 2026-11-21',
      fits: (value) => typeof value === 'string' && isTime(`${value}T00:00:00.000000Z`),
    },
    write: (column) => quoted(dayText(column)),
    read: asText('date'),
  },
  object: {
    check: { takes: 'an object', fits: isJsonObject },
    write: plain,
    read: (name) => `nullif(l -> '${name}', 'null')`,
  },
  boolean: {
    check: { takes: 'true or false', fits: (value) => typeof value === 'boolean' },
    write: plain,
    read: asText('boolean'),
  },
  /** 1 to 2^53 - 1. */
  ordinal: { check: integer(1, Number.MAX_SAFE_INTEGER), write: plain, read: asText('bigint') },
  /** 1 to 2^31 - 1. */
  positive: { check: integer(1, INT_MAX), write: plain, read: asText('int') },
  /** 0 to 2^53 - 1. */
  bigint: { check: integer(0, Number.MAX_SAFE_INTEGER), write: plain, read: asText('bigint') },
  /** 0 to 2^31 - 1. */
  integer: { check: integer(0, INT_MAX), write: plain, read: asText('int') },
} as const satisfies Record<string, ColumnType>

/**
 * The type of a column; with `?` it may be null. `user` is the id of a user, beside which a line has the user's
 * identifier: an import gives the id of the user who is called so there.
 */
export type Column = keyof typeof TYPES | `${keyof typeof TYPES}?` | 'user?' | LineCheck

/** The checks of a line's members, in their order. */
export function lineChecks(columns: Readonly<Record<string, Column>>): Record<string, LineCheck> {
  return Object.fromEntries(
    Object.entries(columns).flatMap(([name, column]): [string, LineCheck][] =>
      column === 'user?'
        ? [
            [name, orNull(TYPES.uuid.check)],
            ['user', orNull(CHECKS.identifier)],
          ]
        : [[name, checkOf(column)]],
    ),
  )
}

function checkOf(column: Column): LineCheck {
  if (typeof column === 'object') return column
  const { check } = typeOf(column)
  return column.endsWith('?') ? orNull(check) : check
}

/** A column whose member older exports do not have. */
export function absentBefore(column: Column): LineCheck {
  const { takes, fits } = checkOf(column)
  const orAbsent = (value: unknown) => value === undefined || fits(value)
  return { takes: `${takes}, or absent`, fits: orAbsent, type: nameOf(column) }
}

function orNull(check: LineCheck): LineCheck {
  return { takes: `${check.takes}, or null`, fits: (value) => value === null || check.fits(value) }
}

function nameOf(column: Column): keyof typeof TYPES {
  return typeof column === 'object' ? column.type! : (column.replace('?', '') as keyof typeof TYPES)
}

function typeOf(column: Column): ColumnType {
  return TYPES[nameOf(column)]
}

/** SQL of a line, from the row `t`, what `of_head` names from `h` and, where it has a user, the row `u`. */
export function lineSql(
  kind: string,
  columns: Readonly<Record<string, Column>>,
  of_head: readonly string[] = [],
): string {
  const members = Object.entries(columns).flatMap(([name, column]): [string, string][] =>
    column === 'user?'
      ? [
          [name, quoted(`t.${name}`)],
          ['user', 'to_json(u.identifier)'],
        ]
      : [[name, memberSql(`${of_head.includes(name) ? 'h' : 't'}.${name}`, column)]],
  )
  return jsonLine({ kind: `'"${kind}"'`, ...Object.fromEntries(members) })
}

/** SQL that gives a column as the member of a line. */
export function memberSql(name: string, column: Column): string {
  return typeOf(column).write(name)
}

/**
 * SQL of a line of given members, each an expression that gives JSON or null; `optional` ones are left out if null.
 */
export function jsonLine(
  members: Readonly<Record<string, string>>,
  optional: Readonly<Record<string, string>> = {},
): string {
  const pieces = Object.entries(members).map(
    ([name, json], index) => `'${index === 0 ? '{' : ','}"${name}":', coalesce((${json})::text, 'null')`,
  )
  const more = Object.entries(optional).map(([name, json]) => `',"${name}":' || (${json})::text`)
  return `concat(${[...pieces, ...more].join(', ')}, '}')`
}

/** SQL that reads a column from the line `l`. */
export function readColumn(name: string, column: Column): string {
  return column === 'user?' ? 'u.id' : typeOf(column).read(name)
}

/** SQL that reads columns, users aside, from the line `l`, each under its name. */
export function readColumns(columns: Readonly<Record<string, Column>>): string {
  return Object.entries(columns)
    .filter(([, column]) => column !== 'user?')
    .map(([name, column]) => `${readColumn(name, column)} AS ${name}`)
    .join(', ')
}

/** SQL that gives a column of a row, `t` by default, as text in the words of an export; of a user, its identifier. */
export function columnText(name: string, column: Column, row = 't'): string {
  if (column === 'user?') return 'u.identifier'
  const value = `${row}.${name}`
  if (String(column).startsWith('time')) return timestampText(value)
  return String(column).startsWith('date') ? dayText(value) : `${value}::text`
}

/** The type of a column of a key, for a parameter. */
export function castOf(column: Column): string {
  return /::(\w+)$/.exec(typeOf(column).read('x'))![1]!
}

export function hasUser(columns: Readonly<Record<string, Column>>): boolean {
  return Object.values(columns).includes('user?')
}

function isTime(value: unknown): boolean {
  if (typeof value !== 'string' || !TIME.test(value)) return false
  const time = new Date(`${value.slice(0, 23)}Z`)
  // Otherwise a day that its month does not have would count as one of the next month.
  return !Number.isNaN(time.getTime()) && time.toISOString().slice(0, 23) === value.slice(0, 23)
}
