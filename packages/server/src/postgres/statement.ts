/**
 * One SQL statement of the product. `name` shows in logs and metrics. `prepared` statements are parsed and planned
 * once a connection, for any parameters: they must be written so that one plan is good for all, which most are by
 * nature, and lists by their structure (see lists/keyset_queries.ts and lists/term_queries.ts). A statement whose best
 * plan depends on its parameters, or on how much a table holds by then, stays unprepared.
 */
export interface Statement {
  readonly name: string
  readonly text: string
  readonly prepared: boolean
}

/** A statement with a plan that fits every parameter. */
export function prepared(name: string, text: string): Statement {
  return { name, text, prepared: true }
}

/** A statement that is planned anew for each call, and for its parameters where the connection's settings let it. */
export function planned(name: string, text: string): Statement {
  return { name, text, prepared: false }
}

const WRITING = /\b(?:INSERT\s+INTO|DELETE\s+FROM|MERGE\s+INTO|(?<!\bFOR\s|\bFOR\sNO\sKEY\s)UPDATE)\b/i

/**
 * Whether a statement only reads, so that nothing can be in doubt when its answer is lost. A statement that begins
 * with WITH reads if none of its parts writes; anything else, such as COMMIT, counts as a write.
 */
export function isRead({ text }: Statement): boolean {
  return /^\s*(?:SELECT|WITH)\b/i.test(text) && !WRITING.test(text)
}
