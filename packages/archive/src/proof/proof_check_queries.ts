import { type Check, notErased } from '@annals/kits/lifecycle/table.js'
import { planned } from '@annals/kits/postgres/statement.js'
import { CONTENT, FRAME, GENESIS } from 'annals/dist/proof/chain_queries.js'
import { findingsSql } from '../verify/findings.js'

export const CHANGED =
  'Rows were changed outside Annals. Keep the database as evidence, and compare with a backup: docs/proof.md, "When something is found"'

const CHAIN = { session: 'c.session_id', place: "'seq ' || c.seq" }

/** Checks of chains. `broken`, `chain` and `head` are parts of the statement. */
export const CHAIN_CHECKS = {
  proof_broken: {
    means: 'an entry is not what was chained; of each session the first is named',
    todo: CHANGED,
    ...CHAIN,
    from: 'broken c',
    where: 'true',
    detail:
      "'its link is ' || left(encode(c.proof, 'hex'), 16) || '…, expected ' || left(encode(c.expected, 'hex'), 16) || '…'",
  },
  proof_gap: {
    means: 'an entry of a chained session has no link',
    todo: CHANGED,
    ...CHAIN,
    from: 'chain c',
    where: 'c.proof IS NULL AND c.is_begun',
    detail: "'the entries before it are chained'",
  },
  proof_head: {
    means: "the head of a session's chain is not that of its last entry",
    todo: CHANGED,
    from: 'head h',
    session: 'h.session_id',
    where: 'h.proof IS DISTINCT FROM h.last_proof',
    place: "'session_heads'",
    detail: `'the head is ' || coalesce(left(encode(h.proof, 'hex'), 16) || '…', 'none')
      || ', the last entry has ' || coalesce(left(encode(h.last_proof, 'hex'), 16) || '…', 'none')`,
  },
} as const satisfies Record<string, Check>

const within = (id: string) => `($2::uuid IS NULL OR ${id} > $2) AND ($3::uuid IS NULL OR ${id} <= $3)`

/**
 * Makes the links of chains anew and compares. Rows: as VERIFY_SESSIONS. Parameters: $1 project, $2 id to start after or
 * null, $3 last id or null.
 */
export const VERIFY_CHAINS = planned(
  'verify_chains',
  `
WITH chain AS MATERIALIZED (
  SELECT i.session_id, i.seq, i.proof, count(i.proof) OVER log > (i.proof IS NOT NULL)::int AS is_begun,
    CASE WHEN i.proof IS NOT NULL THEN
      sha256(coalesce(lag(i.proof) OVER log, ${GENESIS}) || convert_to(${FRAME}, 'UTF8') || sha256(convert_to(${CONTENT}, 'UTF8')))
    END AS expected
  FROM entries i
  LEFT JOIN sessions s ON s.project_id = $1 AND s.id = i.session_id
  CROSS JOIN LATERAL (SELECT i.seq - 1 AS after_seq) g
  WHERE i.project_id = $1 AND ${within('i.session_id')} AND ${notErased('i.session_id')}
  WINDOW log AS (PARTITION BY i.session_id ORDER BY i.seq)
), broken AS MATERIALIZED (
  SELECT DISTINCT ON (c.session_id) c.session_id, c.seq, c.proof, c.expected FROM chain c
  WHERE c.proof <> c.expected ORDER BY c.session_id, c.seq
), last AS MATERIALIZED (
  SELECT DISTINCT ON (c.session_id) c.session_id, c.proof FROM chain c ORDER BY c.session_id, c.seq DESC
), head AS MATERIALIZED (
  SELECT h.session_id, h.proof, l.proof AS last_proof
  FROM session_heads h LEFT JOIN last l ON l.session_id = h.session_id
  WHERE h.project_id = $1 AND ${within('h.session_id')}
)${findingsSql(
    CHAIN_CHECKS,
    `SELECT json_build_object('links', count(c.proof), 'rows', count(*)) FROM chain c`,
  )}`,
)

/**
 * Heads that the logs of a project do not have. A session that was created later under the same id is another one. Rows:
 * ord, session_id, seq. Parameters: $1 project; by head: $2 session, $3 seq, $4 link, $5 when it was anchored.
 */
export const FIND_LOST_HEADS = planned(
  'find_lost_heads',
  `
SELECT l.ord, l.session_id, l.seq
FROM unnest($2::uuid[], $3::bigint[], $4::text[], $5::timestamptz[]) WITH ORDINALITY AS l (session_id, seq, head, made_at, ord)
JOIN sessions s ON s.project_id = $1 AND s.id = l.session_id AND s.created_at <= l.made_at
WHERE NOT EXISTS (
  SELECT FROM entries e
  WHERE e.project_id = $1 AND e.session_id = l.session_id AND e.seq = l.seq AND encode(e.proof, 'hex') = l.head OFFSET 0)
ORDER BY l.ord`,
)
