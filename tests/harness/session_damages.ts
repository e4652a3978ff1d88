/** The check that finds it, what it is, the statement that does it, and the place that is then named. */
type Damage = [check: string, what: string, statement: string, place: string]

/** An event to come, without a row that lists it. */
function input(type: 'type' | 'NULL', place: number): string {
  return `INSERT INTO session_inbox (project_id, session_id, id, place, mode, entry_kind, type, bytes, tokens, data, created_at, not_before)
    VALUES ($1, $2, gen_random_uuid(), ${place}, 'queue', 'event', ${type === 'NULL' ? type : "'task'"}, 2, 0, '{}', now(), now())`
}

/**
 * What somebody does to the rows of a session of 32 entries, or of its project. $1 is the project, $2 the session.
 */
export const DAMAGES: Damage[] = [
  [
    'seq_gap',
    'a lost entry',
    'DELETE FROM entries WHERE project_id = $1 AND session_id = $2 AND seq = 2',
    'seq 3',
  ],
  [
    'seq_gap',
    'a lost beginning',
    'DELETE FROM entries WHERE project_id = $1 AND session_id = $2 AND seq = 1',
    'seq 2',
  ],
  [
    'created_at_decreases',
    'an entry that is too old',
    `UPDATE entries SET created_at = created_at - interval '1 hour' WHERE project_id = $1 AND session_id = $2 AND seq = 7`,
    'seq 7',
  ],
  [
    'updated_before_created',
    'a change before the beginning',
    `UPDATE entries SET updated_at = created_at - interval '1 s' WHERE project_id = $1 AND session_id = $2 AND seq = 7`,
    'seq 7',
  ],
  [
    'parent_wrong',
    'a message with another parent',
    'UPDATE entries SET parent_id = id WHERE project_id = $1 AND session_id = $2 AND seq = 4',
    'seq 4',
  ],
  [
    'parent_wrong',
    'an event with a parent',
    'UPDATE entries SET parent_id = id WHERE project_id = $1 AND session_id = $2 AND seq = 2',
    'seq 2',
  ],
  [
    'entry_malformed',
    'an event without a type',
    'UPDATE entries SET type = NULL WHERE project_id = $1 AND session_id = $2 AND seq = 2',
    'seq 2',
  ],
  [
    'entry_malformed',
    'an entry of no bytes',
    'UPDATE entries SET bytes = 0 WHERE project_id = $1 AND session_id = $2 AND seq = 2',
    'seq 2',
  ],
  [
    'head_last_seq',
    'a head behind its log',
    'UPDATE session_heads SET last_seq = last_seq - 1 WHERE project_id = $1 AND session_id = $2',
    'last_seq',
  ],
  [
    'head_last_seq',
    'a lost end',
    'DELETE FROM entries WHERE project_id = $1 AND session_id = $2 AND seq = 32',
    'last_seq',
  ],
  [
    'head_total_tokens',
    'other tokens',
    'UPDATE session_heads SET total_tokens = total_tokens + 1 WHERE project_id = $1 AND session_id = $2',
    'total_tokens',
  ],
  [
    'head_bytes',
    'other bytes',
    'UPDATE session_heads SET bytes = bytes + 1 WHERE project_id = $1 AND session_id = $2',
    'bytes',
  ],
  [
    'head_last_message',
    'another last message',
    'UPDATE session_heads SET last_message_id = session_id WHERE project_id = $1 AND session_id = $2',
    'last_message_id',
  ],
  [
    'head_updated_at',
    'a head that is too old',
    `UPDATE session_heads SET updated_at = updated_at - interval '1 hour' WHERE project_id = $1 AND session_id = $2`,
    'updated_at',
  ],
  [
    'session_without_head',
    'a lost head',
    'DELETE FROM session_heads WHERE project_id = $1 AND session_id = $2',
    'session_heads',
  ],
  [
    'session_without_user',
    'a lost user',
    'DELETE FROM users WHERE project_id = $1 AND id = (SELECT user_id FROM sessions WHERE project_id = $1 AND id = $2)',
    'user_id',
  ],
  [
    'session_without_parent',
    'a lost parent',
    'UPDATE sessions SET parent_id = $1 WHERE project_id = $1 AND id = $2',
    'parent_id',
  ],
  [
    'session_expiry',
    'an expiry that nobody looks at',
    'UPDATE sessions SET expires_in_s = 60 WHERE project_id = $1 AND id = $2',
    'expiry_due_at',
  ],
  [
    'session_expiry',
    'an expiry that is looked at too late',
    `UPDATE sessions SET expires_in_s = 60, expiry_due_at = now() + interval '1 hour' WHERE project_id = $1 AND id = $2`,
    'expiry_due_at',
  ],
  [
    'retraction_mark',
    'a mark that no retraction made',
    'UPDATE entries SET retracted_by = 32 WHERE project_id = $1 AND session_id = $2 AND seq = 3',
    'seq 3',
  ],
  [
    'retraction_mark',
    'a retraction that marked nothing',
    `UPDATE entries SET type = 'annals.retraction', data = '{"seqs": [3]}' WHERE project_id = $1 AND session_id = $2 AND seq = 32`,
    'seq 3',
  ],
  [
    'retraction_floor',
    'a retraction that passes over live entries',
    `UPDATE entries SET type = 'annals.retraction', data = '{"seqs": []}', live_seq = 3 WHERE project_id = $1 AND session_id = $2 AND seq = 32`,
    'seq 32',
  ],
  [
    'head_retraction',
    'a retraction that there is not',
    'UPDATE session_heads SET retraction_seq = 31, live_seq = 30 WHERE project_id = $1 AND session_id = $2',
    'retraction_seq',
  ],
  [
    'compaction_outdated',
    'a summary of other entries than there are',
    `UPDATE entries SET type = 'annals.compaction', data = '{"from_seq": 1, "to_seq": 3, "digest": "0"}' WHERE project_id = $1 AND session_id = $2 AND seq = 32`,
    'seq 32',
  ],
  [
    'blob_chunk_without_blob',
    'a chunk of a lost blob',
    `INSERT INTO blob_chunks (project_id, blob_id, n, data) VALUES ($1, $2, 3, 'bytes')`,
    'blob chunk',
  ],
  [
    'request_seq',
    'a request that the log does not show',
    `INSERT INTO session_requests (project_id, id, session_id, place, seq, bytes, body, created_at)
     VALUES ($1, gen_random_uuid(), $2, 1, 1, 2, '{}', now())`,
    'request ',
  ],
  [
    'blob_kept_for_nothing',
    'a blob that nothing refers to and nobody deletes',
    `INSERT INTO blobs (project_id, id, sha256, bytes, created_at, unreferenced_since) VALUES ($1, $2, repeat('0', 64), 0, now(), NULL)`,
    'blob ',
  ],
  [
    'blob_bytes',
    'a blob of another length than its bytes have',
    `WITH b AS (INSERT INTO blobs (project_id, id, sha256, bytes, created_at)
       VALUES ($1, $2, encode(sha256('a'), 'hex'), 2, now()) RETURNING id)
     INSERT INTO blob_chunks (project_id, blob_id, n, data) SELECT $1, b.id, 0, 'a' FROM b`,
    'blob ',
  ],
  [
    'session_unlisted',
    'a lost term of its configs',
    'DELETE FROM list_terms WHERE project_id = $1 AND item_id = $2',
    'list_terms',
  ],
  [
    'learning_space_unlisted',
    'a lost term of its meta',
    'DELETE FROM list_terms WHERE project_id = $1 AND $2::uuid IS NOT NULL',
    'learning space',
  ],
  [
    'learning_space_without_user',
    'a lost user of a space',
    'DELETE FROM users WHERE project_id = $1 AND $2::uuid IS NOT NULL',
    'learning space',
  ],
  [
    'learning_space_times',
    'a space that is older than itself',
    `UPDATE learning_spaces SET updated_at = created_at - interval '1 s' WHERE project_id = $1 AND $2::uuid IS NOT NULL`,
    'learning space',
  ],
  [
    'head_without_session',
    'a lost session',
    'DELETE FROM sessions WHERE project_id = $1 AND id = $2',
    'sessions',
  ],
  [
    'key_without_owner',
    'a key of a lost session',
    'DELETE FROM sessions WHERE project_id = $1 AND id = $2',
    'key',
  ],
  [
    'key_seqs',
    'a key that stands for a lost entry',
    'DELETE FROM entries WHERE project_id = $1 AND session_id = $2 AND seq = 2',
    'key',
  ],
  [
    'key_malformed',
    'a key that stands for nothing',
    'UPDATE idempotency_keys SET seqs = NULL WHERE project_id = $1 AND owner_id = $2',
    'key',
  ],
  [
    'list_term_stray',
    'a session that no user has any more',
    "UPDATE sessions SET user_id = NULL, configs = '{}' WHERE project_id = $1 AND id = $2",
    'list_terms',
  ],
  [
    'session_unread',
    'a lost reading of a session',
    `WITH c AS (INSERT INTO project_consumers (project_id, consumer, used_at, scan_at, sessions_scanned) VALUES ($1, 'calls', now(), 'infinity', 0))
     INSERT INTO change_cursors (project_id, consumer, session_id, seq) VALUES ($1, 'calls', $2, 32)`,
    'session_readings',
  ],
  [
    'tool_call_gap',
    'a lost call of a tool',
    `WITH c AS (INSERT INTO project_consumers (project_id, consumer, used_at, scan_at, sessions_scanned) VALUES ($1, 'calls', now(), 'infinity', 0))
     INSERT INTO tool_calls (project_id, session_id, number, seq, called_at, name, given, recorded, answered, is_retracted, is_counted)
     VALUES ($1, $2, 2, 1, now(), 'pay', 1, 0, 0, false, true)`,
    'number 2',
  ],
  [
    'consumer_unmarked',
    'a consumer that nothing is marked for',
    `INSERT INTO project_consumers (project_id, consumer, used_at, scan_at, sessions_scanned) SELECT $1, 'search', 'infinity', 'infinity', 0 WHERE $2::uuid IS NOT NULL`,
    'project_consumers, search',
  ],
  [
    'run_without_input',
    'a lost input',
    'INSERT INTO session_runs (project_id, session_id, ttl_ms, progress, place, wake_at) VALUES ($1, $2, 0, false, 0, now())',
    'session_runs',
  ],
  [
    'input_in_log',
    'an input that was applied and is pending',
    `INSERT INTO session_inbox AS i (project_id, session_id, id, place, mode, entry_kind, type, bytes, tokens, data, created_at, not_before)
     SELECT e.project_id, e.session_id, e.id, 0, 'queue', 'event', 'task', 2, 0, '{}', now(), now()
     FROM entries e WHERE e.project_id = $1 AND e.session_id = $2 AND e.seq = 2`,
    'input ',
  ],
  [
    'input_blob_unreferenced',
    'an input whose blob is not kept for it',
    input('type', 0).replace("'{}'", `'{"annals_blob":"${'0'.repeat(64)}"}'`),
    'input ',
  ],
  ['input_unlisted', 'an input that no runner is given', input('type', 0), 'input '],
  ['input_malformed', 'an event without a type to come', input('NULL', 0), 'input '],
  ['input_place', 'an input at a place that will be taken again', input('type', 7), 'input '],
  [
    'request_resolution',
    'a decision that nobody made',
    `INSERT INTO session_requests (project_id, id, session_id, place, seq, bytes, body, created_at, decision)
     VALUES ($1, gen_random_uuid(), $2, 1, 1, 2, '{}', now(), 'approve')`,
    'request ',
  ],
  [
    'feedback_without_statement',
    'feedback on a lost statement',
    `INSERT INTO statement_feedback (project_id, learning_space_id, statement_id, session_id, helped, created_at)
     SELECT $1, l.id, $2, $2, true, now() FROM learning_spaces l WHERE l.project_id = $1`,
    'statement ',
  ],
  [
    'statement_support',
    'an objection that nothing shows',
    `INSERT INTO statements (project_id, learning_space_id, id, skill_id, statement_kind, state, author, pinned, text, supports, contradicts, created_at, updated_at)
     SELECT $1, l.id, $2, $2, 'rule', 'active', 'person', false, 'Ask.', 0, 1, now(), now() FROM learning_spaces l WHERE l.project_id = $1`,
    'statement ',
  ],
  [
    'skill_without_learning_space',
    'a skill of a lost space',
    `INSERT INTO skills (project_id, id, learning_space_id, name, description, source, meta, created_at, updated_at)
     VALUES ($1, $2, $2, 'a', 'b', 'learnt', '{}', now(), now())`,
    'skill ',
  ],
  [
    'blob_reference_without_file',
    'a lost file of a skill',
    `WITH k AS (INSERT INTO skills (project_id, id, name, description, source, meta, created_at, updated_at)
       VALUES ($1, $2, 'a', 'b', 'uploaded', '{}', now(), now()))
     INSERT INTO blob_references (project_id, owner_id, seq, sha256) VALUES ($1, $2, 0, repeat('0', 64))`,
    'skill ',
  ],
]
