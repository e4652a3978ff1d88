import type { CheckName } from './verify_check_queries.js'

const LOST =
  'Rows were lost or changed outside Annals. Export the session in its current state, then restore it from a backup'
const HEAD =
  'The log is right and the head is wrong: something other than Annals wrote here, or a restore was incomplete. Rebuild the head'
const ORPHAN = 'No request reaches these rows: a restore was incomplete. Repeat the restore, or delete them'
const UNLISTED =
  'Something other than Annals wrote here, or a restore was incomplete. Write the configs (or meta) again unchanged, which rebuilds the index'
const ODD =
  'Nothing that Annals does causes this; find out what wrote here. Correct it, or decide to leave it'

/** What each finding means and what to do about it. The statements are in `docs/operations.md`. */
export const MEANING: Readonly<Record<CheckName, { means: string; todo: string }>> = {
  seq_gap: { means: 'seqs are not 1, 2, 3, …', todo: LOST },
  created_at_decreases: { means: 'an entry is older than the one before it', todo: ODD },
  updated_before_created: { means: 'an entry was changed before it was created', todo: ODD },
  parent_wrong: { means: 'parent_id is not the previous message', todo: LOST },
  entry_malformed: { means: 'an entry lacks fields of its kind, or has impossible sizes', todo: LOST },
  head_last_seq: { means: 'the last seq of the head is not that of the log', todo: HEAD },
  head_total_tokens: { means: 'the tokens of the head are not those of the log', todo: HEAD },
  head_bytes: { means: 'the bytes of the head are not those of the log', todo: HEAD },
  head_last_message: { means: 'the head names another last message', todo: HEAD },
  head_updated_at: { means: 'the session was changed after its updated_at', todo: HEAD },
  session_without_head: { means: 'a session that can be neither read nor written', todo: HEAD },
  session_without_user: { means: "a session's user does not exist", todo: LOST },
  session_unlisted: { means: 'filtered lists omit a session', todo: UNLISTED },
  head_without_session: { means: 'a head of a session that does not exist', todo: ORPHAN },
  entries_without_session: { means: 'entries of a session that does not exist', todo: ORPHAN },
  learning_space_without_user: { means: "a learning space's user does not exist", todo: LOST },
  learning_space_unlisted: { means: 'filtered lists omit a learning space', todo: UNLISTED },
  learning_space_times: { means: 'a learning space was changed before it was created', todo: ODD },
  key_without_owner: { means: 'an idempotency key of a resource that does not exist', todo: ORPHAN },
  key_seqs: { means: 'an idempotency key of entries that do not exist', todo: LOST },
  key_malformed: { means: 'an idempotency key without entries or an answer', todo: ORPHAN },
  project_missing: { means: 'rows of a project that does not exist', todo: ORPHAN },
  token_without_project: { means: 'a token of a project that does not exist', todo: ORPHAN },
}
