/**
 * One SQL statement of the product. `name` appears in logs and metrics. `prepared` statements are parsed and planned
 * once per connection, for all parameters, so one plan must be good for all of them: most are so by nature, lists by
 * their structure (see lists/listed.ts). A statement whose best plan depends on its
 * parameters, or on the size of a table, stays unprepared.
 */
export interface Statement {
  readonly name: string
  readonly text: string
  readonly prepared: boolean
  /** It writes, though its text does not show it: it calls a stored function. */
  readonly writes?: boolean
  /**
   * It finds a few rows by an index, so that others may wait for it: a single one, or as many as the parameter at this place
   * says, where that is few.
   */
  readonly brief?: 'one row' | number
  /** It looks for work in the background, of all projects: the same to be asked of shards, with its tables in braces. */
  readonly on_shards?: { readonly tables: readonly string[]; readonly text: string }
  /** A read of one project, which its first parameter is, with its tables in braces: see ofProject. */
  readonly of_shard?: string
  /** It has an effect only if this finds a row, right before it and in the same transaction. */
  readonly only_if?: { readonly statement: Statement; readonly parameters: readonly string[] }
  /** It hands back what others wait for, and so runs also when the signal of its connections has aborted. */
  readonly outlivesAbort?: boolean
}

/** A statement with a plan that fits every parameter. */
export function prepared(name: string, text: string, brief?: Statement['brief']): Statement {
  return { name, text, prepared: true, ...(brief !== undefined && { brief }) }
}

/**
 * The same of a read of one project, which is its first parameter. `text` has its tables in braces, as in
 * `FROM {sessions} s`: on a cluster the shards of the project may take their places, see citus/shard_reads.ts.
 */
export function ofProject(name: string, text: string, brief?: Statement['brief']): Statement {
  return { ...prepared(name, onTables(text), brief), of_shard: text }
}

const composed = new Map<string, Statement>()

/** The same, composed when it is first needed: its name says all that its text depends on. */
export function composedOnce(name: string, compose: () => string, brief?: Statement['brief']): Statement {
  const known = composed.get(name)
  if (known) return known
  const statement = ofProject(name, compose(), brief)
  composed.set(name, statement)
  return statement
}

/** A statement that is planned for each call, and for its parameters if the connection's settings allow that. */
export function planned(name: string, text: string): Statement {
  return { name, text, prepared: false }
}

/**
 * A look-up in the background that names no project. `text` has its tables in braces, as in `FROM {sessions} s`, and says of
 * each parameter what it is, as in `$1::bigint`: on a cluster shards take the tables' places, and parameters are sent as text.
 * See citus/machine_by_machine.ts.
 */
export function askingEveryProject(
  make: (name: string, text: string) => Statement,
  name: string,
  text: string,
): Statement {
  const tables = [...new Set([...text.matchAll(TABLE)].map(([, table]) => table!))]
  return { ...make(name, onTables(text)), on_shards: { tables, text } }
}

const TABLE = /\{(\w+)\}/g

/** SQL whose tables are in braces, as it is asked of the tables themselves. */
export function onTables(text: string): string {
  return text.replaceAll(TABLE, '$1')
}

const WRITING = /\b(?:INSERT\s+INTO|DELETE\s+FROM|MERGE\s+INTO|(?<!\bFOR\s|\bFOR\sNO\sKEY\s)UPDATE)\b/i

const reads = new WeakMap<Statement, boolean>()

/**
 * Whether a statement only reads, so that nothing is in doubt if its answer is lost. A statement that begins with
 * WITH reads if none of its parts writes; everything else, such as COMMIT, counts as a write.
 */
export function isRead(statement: Statement): boolean {
  let known = reads.get(statement)
  if (known === undefined) {
    const { text, writes } = statement
    known = !writes && /^\s*(?:SELECT|WITH)\b/i.test(text) && !WRITING.test(text)
    reads.set(statement, known)
  }
  return known
}

/** A longer page is worth a connection of its own. */
export const BRIEF_ROWS_MAX = 101

/** Whether a statement, with these parameters, takes so little time that others may wait for it. */
export function isBrief({ brief }: Statement, parameters: ReadonlyArray<unknown>): boolean {
  if (typeof brief === 'number') return Number(parameters[brief]) <= BRIEF_ROWS_MAX
  return brief === 'one row'
}

/**
 * PostgreSQL's arrays as text. The driver would quote every element with a regular expression; ids and numbers, most
 * of a flush, need no quotes.
 */

/** For values that need no quotes: uuids, numbers, booleans. */
export function plainArray(values: ReadonlyArray<string | number | boolean | null>): string {
  // join writes null as an empty string, which an array literal does not accept.
  return `{${(values.includes(null) ? values.map((value) => value ?? 'NULL') : values).join(',')}}`
}

const PLAIN_TEXT = /^[\w.:/-]+$/

/** For any texts. */
export function textArray(values: ReadonlyArray<string | null>): string {
  return `{${values.map(textElement).join(',')}}`
}

function textElement(value: string | null): string {
  if (value === null) return 'NULL'
  if (PLAIN_TEXT.test(value) && (value.length !== 4 || value.toUpperCase() !== 'NULL')) return value
  return `"${value.replaceAll(/["\\]/g, '\\$&')}"`
}
