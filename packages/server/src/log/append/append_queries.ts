import { BLOBS_OF_ENTRY } from '@annals/kits/lifecycle/table.js'
import { PIECE_BYTES_MAX } from '@annals/kits/limits.js'
import { MOVE_TERMS_VARIABLES, moveTerms, type TermedList } from '@annals/kits/lists/listed.js'
import { mergedJson } from '@annals/kits/lists/resource_json.js'
import { joinedText } from '@annals/kits/postgres/column_aggregates.js'
import { ofProject, prepared } from '@annals/kits/postgres/statement.js'
import { storedFunctionIn } from '@annals/kits/postgres/stored_function.js'
import { CHAIN_ENTRIES, CHAIN_STORED } from '../../proof/chain_queries.js'
import { seqText } from '../read/compaction_queries.js'
import { byId, VIEW_COLUMNS } from '../read/read_queries.js'

export const SESSION_LIST: TermedList = { table: 'sessions', document: 'configs', has_parents: true }

export const RETRACT_ENTRIES = storedFunctionIn('log/append/retract_entries.sql', {
  from_seq: seqText('from_seq'),
  to_seq: seqText('to_seq'),
  item_columns: joinedText(VIEW_COLUMNS.item),
})

export const APPEND_ENTRIES = storedFunctionIn(
  'log/append/append_entries.sql',
  {
    retract_entries: RETRACT_ENTRIES.name,
    chain_entries: CHAIN_ENTRIES.name,
    chain_stored: CHAIN_STORED.name,
    merged_configs: mergedJson('before.configs', 'patch'),
    move_terms: moveTerms(SESSION_LIST, 'before', 'after'),
    terms_variables: MOVE_TERMS_VARIABLES,
    by_id: byId('e', 'p_sessions[place_of_head]', 'x.id'),
    by_id_of_input: byId('e', 'i.session_id', 'i.id'),
    input_bytes_max: PIECE_BYTES_MAX,
    blobs_of_entry: BLOBS_OF_ENTRY,
  },
  ['session_heads', 'entries', 'idempotency_keys', 'change_marks'],
)

/** Runs, as appends need them: see migrations/0035_runs.sql. Parameters of each: $1 project. */

/** $2 sessions. Rows: session_id, fence, requires_fence. */
export const FIND_FENCES = ofProject(
  'find_fences',
  `SELECT h.session_id, coalesce(h.fence, 0) AS fence, coalesce(h.requires_fence, false) AS requires_fence
FROM {session_heads} h WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[])`,
)

/** $2 session, $3 inputs. Rows: id, state: pending, or in words what became of it, bytes. */
export const FIND_INPUT_STATES = ofProject(
  'find_input_states',
  `
SELECT i.id, i.bytes, CASE WHEN i.withdrawn_at IS NOT NULL THEN 'was withdrawn' WHEN i.expires_at <= now() THEN 'has expired' ELSE 'pending' END AS state
FROM {session_inbox} i WHERE i.project_id = $1 AND i.session_id = $2 AND i.id = ANY ($3::uuid[])
UNION ALL
SELECT e.id, 0, 'was applied: it is entry ' || e.seq
FROM unnest($3::uuid[]) AS x (id) CROSS JOIN LATERAL (
  SELECT e.id, e.seq FROM {entries} e WHERE e.project_id = $1 AND ${byId('e', '$2', 'x.id')}
) e`,
)

/** A key's first answer; none yet while a long copy is being made. Parameters: $1 project, $2 key. */
export const FIND_IDEMPOTENCY_KEY = ofProject(
  'find_idempotency_key',
  'SELECT k.request_hash, k.answer, k.owner_id FROM {idempotency_keys} k WHERE k.project_id = $1 AND k.key = $2',
)

/**
 * Deletes a bounded number of a project's keys that are older than promised. Parameters: $1 project, $2 age in hours,
 * $3 how many at most.
 */
export const FORGET_IDEMPOTENCY_KEYS = prepared(
  'forget_idempotency_keys',
  `
DELETE FROM idempotency_keys AS k
WHERE k.project_id = $1 AND k.key = ANY (ARRAY(
  SELECT o.key FROM idempotency_keys o
  WHERE o.project_id = $1 AND o.created_at < now() - make_interval(hours => $2)
  LIMIT $3))
RETURNING k.key`,
)

/** Steps of a stored function that store `answer` for the key in `p_key`, if there is one. `owner`: whose key it is. */
export function rememberAnswer(owner: string): string {
  return `
  IF p_key IS NOT NULL THEN
    INSERT INTO idempotency_keys AS k (project_id, key, request_hash, owner_id, created_at, answer)
    VALUES (p_project, p_key, p_request_hash, ${owner}, now(), answer);
  END IF;`
}
