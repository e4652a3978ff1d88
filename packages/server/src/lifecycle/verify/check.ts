/** What to do about a finding. `docs/operations.md` has the statements. */
export const LOST =
  'Rows were lost or changed outside Annals. Export the session in its current state, then restore it from a backup'
export const HEAD =
  'The log is right and the head is wrong: something other than Annals wrote here, or a restore was incomplete. Rebuild the head'
export const ORPHAN =
  'No request reaches these rows: a restore was incomplete. Repeat the restore, or delete them'
export const UNLISTED =
  'Something other than Annals wrote here, or a restore was incomplete. Write the configs (or meta) again unchanged, which rebuilds the index'
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

export interface Finding {
  check: string
  session_id: string | null
  place: string
  detail: string
}

/** The problems in one piece: a few of each check, and how many there are. */
export interface PieceFindings {
  shown: Finding[]
  found: Map<string, number>
}

export interface CheckedPiece {
  /** Rows of all tables that were read. */
  rows: number
  counts: Record<string, number>
  findings: PieceFindings
}

/** A path of jsonb: the blobs that an entry names. */
export const BLOBS_OF_ENTRY = '$.**.annals_blob ? (@ like_regex "^[0-9a-f]{64}$")'

/** Findings of one check that a piece returns; further ones are only counted. */
const SHOWN_MAX = 10

/** Branches of a statement: one for each check, and one, named `counts`, whose detail is what was counted, as JSON. */
export function findingsSql(checks: Readonly<Record<string, Check>>, counts: string, from = ''): string {
  const branches = Object.entries(checks).map(
    ([name, check]) => `
(SELECT '${name}' AS "check", (${check.session ?? 'NULL'})::uuid AS session_id, ${check.place} AS place, ${check.detail} AS detail,
  count(*) OVER () AS found
FROM ${check.from ?? from} WHERE ${check.where} LIMIT ${SHOWN_MAX})`,
  )
  return [
    ...branches,
    `\n(SELECT 'counts' AS "check", NULL::uuid AS session_id, NULL AS place, (${counts})::text AS detail, 0 AS found)`,
  ].join('\nUNION ALL')
}

export function readFindings(rows: ReadonlyArray<Record<string, string | null>>): {
  counted: Record<string, string | number | null>
  findings: PieceFindings
} {
  let counted = {}
  const findings: PieceFindings = { shown: [], found: new Map() }
  for (const row of rows) {
    if (row.check === 'counts') {
      counted = JSON.parse(row.detail!) as Record<string, string | number | null>
      continue
    }
    const check = row.check!
    findings.found.set(check, Number(row.found))
    findings.shown.push({ check, session_id: row.session_id!, place: row.place!, detail: row.detail! })
  }
  return { counted, findings }
}

/** Looked up by primary key for each row instead of joined, so that a piece does not read a project's whole table. */
export function missing(table: string, id: string, column = 'id'): string {
  return `(SELECT m.${column} FROM ${table} m WHERE m.project_id = $1 AND m.${column} = ${id}) IS NULL`
}

/**
 * Rows that a list by their document or user would not show: the index of terms lacks one of theirs. Each term is
 * looked up by the whole key, and not joined: a join may leave the term out of the search, and then reads the index of
 * all of the project's terms for each row.
 */
export function unlisted(row: string): string {
  return `EXISTS (SELECT FROM unnest(${row}.terms) AS x (term) WHERE ${row}.signature IS DISTINCT FROM (
      SELECT i.signature FROM list_terms i
      WHERE i.project_id = $1 AND i.term = x.term AND i.created_at = ${row}.created_at AND i.item_id = ${row}.id))`
}

/**
 * Rows of a session that is being deleted in slices are not wrong: they are about to go. Not a join, which would
 * sort.
 */
export function notErased(session_id: string): string {
  return `${session_id} <> ALL (ARRAY(SELECT x.session_id FROM erased_sessions x WHERE x.project_id = $1))`
}
