/** What to do about a finding. `docs/operations.md` has the statements. */
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
  /** SQL of the session that the finding is in; by default none. */
  session?: string
  /** SQL of type text: the place in the session or project. */
  place: string
  /** SQL of type text: what is stored, and what should be. */
  detail: string
  /** For people: what is wrong, and what to do. */
  means: string
  todo: string
}

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
