import { type Check, notErased, ODD } from '@annals/kits/lifecycle/table.js'
import { indexTermsText } from '@annals/kits/lists/listed.js'
import { SPACE_LIST } from 'annals/dist/learning/learning_space_queries.js'
import { SESSION_LIST } from 'annals/dist/log/append/append_queries.js'

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

export const UNLISTED =
  'Something other than Annals wrote here, or a restore was incomplete. Write the configs (or meta) again unchanged, which rebuilds the index'

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

/** A row that lost its user, or what its document had, says nothing of that itself: its terms do. */
export const STRAY_TERMS = {
  list_term_stray: {
    place: "concat('list_terms of ', t.item_id)",
    where: [SESSION_LIST, SPACE_LIST]
      .map(
        (
          list,
        ) => `NOT EXISTS (SELECT FROM ${list.table} r CROSS JOIN LATERAL ${indexTermsText(list, 'r')} AS i
      WHERE r.project_id = $1 AND r.id = t.item_id AND r.created_at = t.created_at AND t.term = ANY (i.terms) OFFSET 0)`,
      )
      .concat(notErased('t.item_id'))
      .join(' AND '),
    detail: "'it was listed by a user, a parent or a document that it does not have'",
    means: 'a session or a learning space has lost its user, its parent, or a part of its configs or meta',
    todo: ODD,
  },
} as const satisfies Record<string, Check>
