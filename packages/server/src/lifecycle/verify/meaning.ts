import type { CheckName } from './verify_check_queries.js'

const LOST =
  'Rows were lost or changed outside Annals. Export the session as it is now, then restore it from a backup'
const HEAD =
  'The log is right and the head is not: something other than Annals wrote here, or a restore was not complete. Correct the head'
const ORPHAN =
  'Nothing reaches these rows any more: a restore was not complete. Restore it again, or remove them'
const UNLISTED =
  'Something other than Annals wrote here, or a restore was not complete. Write the configs (or meta) again as they are, which makes its index anew'
const ODD = 'Nothing that Annals does makes this; find out what wrote here. Correct it, or leave it knowingly'

/** What each finding means and what to do about it. The statements are in `docs/operations.md`. */
export const MEANING: Readonly<Record<CheckName, { means: string; todo: string }>> = {
  seq_gap: { means: 'seqs are not 1, 2, 3, …', todo: LOST },
  created_at_decreases: { means: 'an entry is older than the one before it', todo: ODD },
  updated_before_created: { means: 'an entry was changed before it was made', todo: ODD },
  parent_wrong: { means: 'parent_id is not the message before', todo: LOST },
  entry_malformed: { means: 'an entry lacks what its kind has, or has impossible sizes', todo: LOST },
  head_last_seq: { means: 'the head does not stand at the end of the log', todo: HEAD },
  head_total_tokens: { means: 'the head has not the tokens of the log', todo: HEAD },
  head_bytes: { means: 'the head has not the bytes of the log', todo: HEAD },
  head_last_message: { means: 'the head names another last message', todo: HEAD },
  head_updated_at: { means: 'the session changed after its updated_at', todo: HEAD },
  session_without_head: { means: 'a session that can be neither read nor written', todo: HEAD },
  session_without_user: { means: "a session's user does not exist", todo: LOST },
  session_unlisted: { means: 'filtered lists do not show a session', todo: UNLISTED },
  head_without_session: { means: 'a head of a session that does not exist', todo: ORPHAN },
  entries_without_session: { means: 'entries of a session that does not exist', todo: ORPHAN },
  learning_space_without_user: { means: "a learning space's user does not exist", todo: LOST },
  learning_space_unlisted: { means: 'filtered lists do not show a learning space', todo: UNLISTED },
  learning_space_times: { means: 'a learning space was changed before it was made', todo: ODD },
  key_without_owner: { means: 'an idempotency key of what does not exist', todo: ORPHAN },
  key_seqs: { means: 'an idempotency key stands for entries that do not exist', todo: LOST },
  key_malformed: { means: 'an idempotency key stands for nothing', todo: ORPHAN },
  project_missing: { means: 'rows of a project that does not exist', todo: ORPHAN },
  token_without_project: { means: 'a token of a project that does not exist', todo: ORPHAN },
}
