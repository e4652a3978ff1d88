import { timestampText } from '@annals/kits/lists/resource_json.js'
import { prepared } from '@annals/kits/postgres/statement.js'
import { storedFunctionIn } from '@annals/kits/postgres/stored_function.js'
import { findOrCreateSkill, STATEMENTS_MAX } from '../statements/statement_queries.js'

/** SQL: the value at a path such as /a/b of a session's configs, if the policy names one. */
const atPath = (name: string) =>
  `CASE WHEN p.policy ? '${name}' THEN s.configs #> string_to_array(substr(p.policy ->> '${name}', 2), '/') END`

/**
 * The spaces that learn from sessions, which nobody deletes until the commit. Parameters: $1 project, $2 sessions, $3
 * whether the service has a model. Rows: learning_space_id, session_id, learnt_seq, last_seq, outcome (from the session's
 * configs, as JSON, or null), has_model.
 */
export const LOCK_LEARNING_SPACES = prepared(
  'lock_learning_spaces',
  `SELECT x.learning_space_id, x.session_id, x.learnt_seq, h.last_seq,
  nullif(jsonb_strip_nulls(jsonb_build_object('reward', ${atPath('reward')}, 'group', ${atPath('group')})), '{}')::text AS outcome,
  $3::boolean OR EXISTS (SELECT FROM projects j WHERE j.id = $1 AND j.model IS NOT NULL) AS has_model
FROM space_sessions x
JOIN learning_spaces l ON l.project_id = $1 AND l.id = x.learning_space_id
JOIN sessions s ON s.project_id = $1 AND s.id = x.session_id
JOIN session_heads h ON h.project_id = $1 AND h.session_id = x.session_id
LEFT JOIN space_policies p ON p.project_id = $1 AND p.learning_space_id = x.learning_space_id
WHERE x.project_id = $1 AND x.session_id = ANY ($2::uuid[]) AND coalesce(p.mode, 'suggest') <> 'off'
ORDER BY x.learning_space_id, x.session_id FOR KEY SHARE OF l`,
)

/** Bytes of an entry that rules read at most; longer ones are left out. */
const ENTRY_BYTES_MAX = 256 * 1024
/** Entries before the new ones that are read again, so that results find their calls; only short ones. */
const KNOWN_ENTRIES = 50
const KNOWN_ENTRY_BYTES_MAX = 16 * 1024

/**
 * A piece of a log, in order, with some of what was read before it. Parameters: $1 project, $2 session, $3 seq up to
 * which it was read, $4 entries, $5 bytes after which the piece ends. Rows: as entries; data is null where rules leave it out.
 */
export const READ_ENTRIES_FOR_RULES = prepared(
  'read_entries_for_rules',
  `SELECT o.seq, o.id, o.kind, o.type, o.role, o.format, ${timestampText('coalesce(o.occurred_at, o.created_at)')} AS created_at,
  CASE WHEN o.retracted_by IS NULL AND o.bytes <= ${ENTRY_BYTES_MAX} THEN o.data::text END AS data
FROM (
  SELECT i.*, coalesce(sum(i.bytes) FILTER (WHERE i.seq > $3) OVER (ORDER BY i.seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
  FROM entries i WHERE i.project_id = $1 AND i.session_id = $2 AND i.seq > $3 - ${KNOWN_ENTRIES} AND i.seq <= $3 + $4::bigint
) o
WHERE o.bytes_before < $5 AND (o.seq > $3 OR o.bytes <= ${KNOWN_ENTRY_BYTES_MAX}) ORDER BY o.seq`,
)

export const LEARN_BY_RULES = storedFunctionIn('learning/rules/learn_by_rules.sql', {
  statements_max: STATEMENTS_MAX,
  find_or_create_skill: findOrCreateSkill('finding.skill', 'finding.description', 'finding.skill_id'),
})
