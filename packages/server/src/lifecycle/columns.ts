import { dayText, timestampText } from '../lists/resource_json.js'

/** The types of columns that a table names, and those of PostgreSQL. */
const TYPES = {
  uuid: 'uuid',
  text: 'text',
  /** Of a user: 1 to 256 characters. */
  identifier: 'text',
  time: 'timestamptz',
  date: 'date',
  object: 'jsonb',
  boolean: 'boolean',
  /** 1 to 2^53 - 1. */
  ordinal: 'bigint',
  /** 1 to 2^31 - 1. */
  positive: 'int',
  /** 0 to 2^53 - 1. */
  bigint: 'bigint',
  /** 0 to 2^31 - 1. */
  integer: 'int',
} as const

export type ColumnType = keyof typeof TYPES

/**
 * The type of a column; with `?` it may be null. `user` is the id of a user, beside which a line of an export has the user's
 * identifier: an import stores the id of the user who is called so there.
 */
export type Column = ColumnType | `${ColumnType}?` | 'user?'

/** The type of a column that is no user's, whether it may be null or not. */
export function typeOf(column: Column): ColumnType {
  return column.replace('?', '') as ColumnType
}

/** The type of a column of a key, for a parameter. */
export function castOf(column: Column): string {
  return TYPES[typeOf(column)]
}

/** SQL of a column of a row, `t` by default, as text in the words of an export; of a user, its identifier. */
export function columnText(name: string, column: Column, row = 't'): string {
  if (column === 'user?') return 'u.identifier'
  const value = `${row}.${name}`
  if (column.startsWith('time')) return timestampText(value)
  return column.startsWith('date') ? dayText(value) : `${value}::text`
}
