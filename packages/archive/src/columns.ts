import { type Column, type ColumnType, castOf, typeOf } from '@annals/kits/lifecycle/table.js'
import { USER_IDENTIFIER_LENGTH_MAX } from '@annals/kits/limits.js'
import { dayText, timestampText } from '@annals/kits/lists/resource_json.js'
import { isJsonObject } from '@annals/messages/json'

/** The form of a value in a line of an export. `type`: the column's, where statements are composed from it. */
export interface LineCheck {
  takes: string
  fits(value: unknown): boolean
  type?: ColumnType
}

/** A column of a line: as a table has it, or what takes its place in lines. */
export type LineColumn = Column | LineCheck

/** How values of a type pass from a table to a line of an export. JSON passes as text, so that no digit is lost. */
interface LineType {
  check: LineCheck
  /** SQL of the column as JSON, null where it is. */
  write(column: string): string
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/
const INT_MAX = 2_147_483_647

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

const TYPES: Readonly<Record<ColumnType, LineType>> = {
  uuid: {
    check: {
      takes: 'a UUID in lower case',
      fits: (value) => typeof value === 'string' && UUID.test(value),
    },
    write: quoted,
  },
  text: { check: CHECKS.text, write: (column) => `to_json(${column})` },
  identifier: { check: CHECKS.identifier, write: (column) => `to_json(${column})` },
  time: {
    check: { takes: 'a time such as 2026-11-21T09:30:00.123456Z', fits: isTime },
    write: (column) => quoted(timestampText(column)),
  },
  date: {
    check: {
      takes: 'a day such as 2026-11-21',
      fits: (value) => typeof value === 'string' && isTime(`${value}T00:00:00.000000Z`),
    },
    write: (column) => quoted(dayText(column)),
  },
  object: { check: { takes: 'an object', fits: isJsonObject }, write: plain },
  boolean: {
    check: { takes: 'true or false', fits: (value) => typeof value === 'boolean' },
    write: plain,
  },
  ordinal: { check: integer(1, Number.MAX_SAFE_INTEGER), write: plain },
  positive: { check: integer(1, INT_MAX), write: plain },
  bigint: { check: integer(0, Number.MAX_SAFE_INTEGER), write: plain },
  integer: { check: integer(0, INT_MAX), write: plain },
}

/** The checks of a line's members, in their order. */
export function lineChecks(columns: Readonly<Record<string, LineColumn>>): Record<string, LineCheck> {
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

function checkOf(column: LineColumn): LineCheck {
  if (typeof column === 'object') return column
  const { check } = TYPES[typeOf(column)]
  return column.endsWith('?') ? orNull(check) : check
}

/** A column whose member older exports do not have. */
export function absentBefore(column: LineColumn): LineCheck {
  const { takes, fits } = checkOf(column)
  const orAbsent = (value: unknown) => value === undefined || fits(value)
  return { takes: `${takes}, or absent`, fits: orAbsent, type: nameOf(column) }
}

function orNull(check: LineCheck): LineCheck {
  return { takes: `${check.takes}, or null`, fits: (value) => value === null || check.fits(value) }
}

function nameOf(column: LineColumn): ColumnType {
  return typeof column === 'object' ? column.type! : typeOf(column)
}

/** SQL of a line, from the row `t`, what `of_head` names from `h` and, where it has a user, the row `u`. */
export function lineSql(
  kind: string,
  columns: Readonly<Record<string, LineColumn>>,
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

/** SQL of a column as the member of a line. */
export function memberSql(name: string, column: LineColumn): string {
  return TYPES[nameOf(column)].write(name)
}

/**
 * SQL of a line of given members, each an expression of JSON or null; `optional` ones are left out if null.
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
export function readColumn(name: string, column: LineColumn): string {
  if (column === 'user?') return 'u.id'
  const type = nameOf(column)
  return type === 'object' ? `nullif(l -> '${name}', 'null')` : `(l ->> '${name}')::${castOf(type)}`
}

/** SQL that reads columns, users aside, from the line `l`, each under its name. */
export function readColumns(columns: Readonly<Record<string, LineColumn>>): string {
  return Object.entries(columns)
    .filter(([, column]) => column !== 'user?')
    .map(([name, column]) => `${readColumn(name, column)} AS ${name}`)
    .join(', ')
}

export function hasUser(columns: Readonly<Record<string, LineColumn>>): boolean {
  return Object.values(columns).includes('user?')
}

function isTime(value: unknown): boolean {
  if (typeof value !== 'string' || !TIME.test(value)) return false
  const time = new Date(`${value.slice(0, 23)}Z`)
  // Otherwise a day that its month does not have would count as one of the next month.
  return !Number.isNaN(time.getTime()) && time.toISOString().slice(0, 23) === value.slice(0, 23)
}

/** A user by its identifier in the line `l`, or by its id in the row `t`: one by one, so that no table is read whole. */
export function userJoinText(condition: string): string {
  return `LEFT JOIN LATERAL (SELECT u.id, u.identifier FROM users u WHERE u.project_id = $1 AND ${condition} OFFSET 0) u ON true`
}
