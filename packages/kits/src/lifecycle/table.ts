import { dayText, timestampText } from '../lists/resource_json.js'
import type { Database, Tenant } from '../postgres/database.js'
import type { Statement } from '../postgres/statement.js'
import type { StoredFunction } from '../postgres/stored_function.js'

/** Counts of rows, by the names under which a receipt, an export or a verification shows them. */
export type Counts = Record<string, number>

/**
 * A table of tenant data, and all that the life of its rows asks: with what they are erased, how an export writes them
 * and an import restores them, and what is checked of them. Its primary key begins with `project_id`. This is enough for
 * most tables: the statements are made from it. Where it is not, `own` has functions that erase, and packages/archive those
 * that export, import and verify.
 */
export interface Table {
  readonly name: string
  /** The name of one row: the kind of its lines in an export, and how other tables name it. */
  readonly kind: string
  /** The primary key after `project_id`. */
  readonly key: readonly string[]
  /** Columns, the key's included, in the order of a line of an export. Of lines that packages/archive writes by functions of the table's own: those of key, order and owner. */
  readonly columns: Readonly<Record<string, Column>>
  /**
   * The kind whose rows take these with them: `session`, `user`, `project`, or that of another table; `any` is whatever
   * else has an id. All rows go with their project. Rows that go with a session may outlive it for a moment and have no
   * foreign key to it: who writes them locks the session's head FOR KEY SHARE first.
   */
  readonly erased_with: string
  /** The column with the id of the owner that the rows are erased with; by default `session_id` and the like. */
  readonly owner_column?: string
  /**
   * A second kind that takes the rows with it, by the column with its id. Exports and imports go by the first.
   * `eraseSomeOf` is for this kind what that of `own` is for the first, or a statement in place of the one that is made
   * from the table: $1 project, $2 owners, $3 how many. `counts`: further names that a receipt has of it.
   */
  readonly also_erased_with?: {
    readonly kind: string
    readonly counts?: readonly string[]
    readonly eraseSomeOf?: Dependents['eraseSome'] | Statement
  }
  /** Whether erasing a user counts these rows in its receipt, under the table's name. */
  readonly counted: boolean
  /** Whether exports have the rows, or only those in backups. What is derived, or belongs to the installation, stays out. */
  readonly exported: boolean | 'in_backups'
  /** The rows are made from others: a verification checks them and does not show how many there are. */
  readonly is_derived?: boolean
  /** Columns that never change: a row that an import finds with other values in them is in conflict. */
  readonly unchanging?: readonly string[]
  /** The order in which an index lists the rows of one owner; by default the rest of the key. */
  readonly order?: readonly string[]
  /** The column that lists are filtered by, where `list_terms` has terms of it. */
  readonly document?: string
  readonly waits?: Waits | readonly Waits[]
  /** Checks by name, besides orphaned rows; the row is `t`. */
  readonly checks: Readonly<Record<string, CheckOfRow>>
  readonly own?: OwnFunctions
}

/** A table whose rows the code of another table of the module handles in all respects. */
export interface HandledTable {
  readonly name: string
  /** How its rows go, and what becomes of them in an export, an import and a verification: a sentence. */
  readonly handled: string
  readonly waits?: Waits | readonly Waits[]
  /** True for a table whose rows are not found by their project: every machine of a cluster has it, or the coordinator alone. */
  readonly is_reference?: boolean
  /**
   * Backups have its rows: its key and the key's type, the column with the project if the backup of one project has
   * them, and the columns that a restored row does not get.
   */
  readonly backed_up?: {
    readonly key: string
    readonly type: 'uuid' | 'bigint'
    readonly project?: string
    readonly without?: readonly string[]
  }
}

/** Rows that wait until a time by the database's clock: see stepped_clock.ts. */
export interface Waits {
  readonly column: string
  /** How many seconds rows `t` wait at most; `which`: those for which a condition holds, which has its tables in braces. */
  readonly at_most: ReadonlyArray<{ readonly s: number; readonly which?: string }>
  /** Further columns to set in a row whose wait is ended. */
  readonly also?: string
}

/** The rows that go with those of a table: of all tables that say so in `erased_with`. */
export interface Dependents {
  /** Erases some rows of each table inside a transaction. `has_all`: there are no more. */
  eraseSome(tenant: Tenant, owner_ids: string[]): Promise<{ counts: Counts; has_all: boolean }>
}

/** The result of one transaction of an erasure. */
export interface ErasedStep {
  counts: Counts
  /** Ids of owners that are gone for everybody but still have rows, for `eraseRemains`. */
  remains: string[]
  /** Ids of owners that had no room in this transaction. */
  left: string[]
}

export interface EraseOptions {
  /** Keeps what was touched at or after this time, even while the erasure runs. */
  untouched_since?: string
  /** Keeps sessions that have not expired. */
  only_expired?: boolean
  /** Told what each transaction erased; what it throws ends the work. */
  onStep?: (counts: Counts) => void
  /** Told of each slice after a transaction; what it throws ends the work. */
  onSlice?: () => void
}

/** Functions in place of the statements that are made from a table. */
export interface OwnFunctions {
  /** Erases some, with their dependents, inside a transaction. */
  eraseSome?(
    tenant: Tenant,
    ids: string[],
    dependents: Dependents,
    options: EraseOptions,
  ): Promise<ErasedStep>
  /** Erases some rows of some owners inside a transaction, and what goes with them. */
  eraseSomeOf?: Dependents['eraseSome']
  /** Names beside the table's that its erasure and its import count. */
  further_counts?: readonly string[]
  /** Erases, in slices, what a transaction left. Returns what it counted. */
  eraseRemains?(
    tenant: Tenant<Database>,
    id: string,
    dependents: Dependents,
    onSlice?: () => void,
  ): Promise<Counts>
  /** Erases what killed processes left in a project. */
  eraseAllRemains?(tenant: Tenant<Database>, dependents: Dependents, signal?: AbortSignal): Promise<void>
  /** Deletes outside of the database what transactions have given up. Returns how much is left, for housekeeping. */
  settle?(tenant: Tenant): Promise<number>
}

/** The lifecycle's part of a module: what is to be known of its tables. Each stands after what it refers to. */
export interface TableOwner {
  readonly name: string
  readonly tables: readonly (Table | HandledTable)[]
  /** Functions that its statements call. */
  readonly functions?: readonly StoredFunction[]
}

export function isHandled(table: Table | HandledTable): table is HandledTable {
  return 'handled' in table
}

/** The column with the id of the owner that a table's rows are erased with. */
export function ownerColumn(table: Table): string {
  return table.owner_column ?? `${table.erased_with}_id`
}

/** The columns in whose order the rows of one owner are listed. */
export function orderOf(table: Table): readonly string[] {
  return table.order ?? table.key.filter((name) => name !== ownerColumn(table))
}

/** Whether the rows go one by one, each with everything that belongs to it. */
export function isOwner({ kind, key, erased_with }: Table): boolean {
  return key.length === 1 && key[0] === 'id' && kind !== 'user' && ['user', 'project'].includes(erased_with)
}

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

/** Advice for a finding. `docs/operations.md` has the statements. */
export const LOST =
  'Rows were lost or changed outside Annals. Export the session in its current state, then restore it from a backup'
export const ORPHAN =
  'No request reaches these rows: a restore was incomplete. Repeat the restore, or delete them'
export const ODD =
  'Nothing that Annals does causes this; find out what wrote here. Correct it, or decide to leave it'

/** Something that must not be, as the rows that show it; $1 is the project. */
export interface Check {
  /** SQL of the rows: a table, or a part of the statement. By default the row `t` of the table. */
  from?: string
  where: string
  /** SQL of the session that the finding is in. */
  session?: string
  /** SQL of type text: the place in the session or project. */
  place: string
  /** SQL of type text: what is stored, and what should be. */
  detail: string
  /** For people: what is wrong, and what to do. */
  means: string
  todo: string
}

/** A check of a table's row, which by default is found by its session and its key. */
export type CheckOfRow = Omit<Check, 'place'> & Partial<Pick<Check, 'place'>>

/** A path of jsonb: the blobs that an entry names. */
export const BLOBS_OF_ENTRY = '$.**.annals_blob ? (@ like_regex "^[0-9a-f]{64}$")'

/** Looked up by primary key for each row instead of joined, so that a piece does not read a project's whole table. */
export function missing(table: string, id: string, column = 'id'): string {
  return `(SELECT m.${column} FROM ${table} m WHERE m.project_id = $1 AND m.${column} = ${id}) IS NULL`
}

/**
 * Rows of a session that is being deleted in slices are not wrong: they are about to go. Not a join, which would
 * sort.
 */
export function notErased(session_id: string): string {
  return `${session_id} <> ALL (ARRAY(SELECT x.session_id FROM erased_sessions x WHERE x.project_id = $1))`
}
