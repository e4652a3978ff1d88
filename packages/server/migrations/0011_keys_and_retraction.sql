-- Keys of entries, and entries that were retracted.
--
-- key: a caller's name for what the entry says; of the entries with a key, the newest is its latest. retracted_by: the
-- seq of the event that retracted the entry. Both are null in most logs, where they take no room and no index has them.
--
-- Messages that were retracted leave the index of messages, so that a page of a session with thousands of them reads no
-- more than any other. The timeline still shows them: they have an index of their own.
--
-- retraction_seq, live_seq: the newest retraction in the session, and the newest entry before it that was not retracted
-- then. Every entry after retraction_seq is live and none between the two is, so that the newest live entry is found
-- without reading what was retracted. Null: not known, as in a log that was copied or imported.
--
-- Takes the time to build an index of all messages; nothing is written meanwhile.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE entries ADD COLUMN key text COLLATE "C";
ALTER TABLE entries ADD COLUMN retracted_by bigint;
ALTER TABLE session_heads ADD COLUMN retraction_seq bigint;
ALTER TABLE session_heads ADD COLUMN live_seq bigint;

CREATE INDEX entries_keys ON entries (project_id, session_id, key, seq DESC)
  WHERE key IS NOT NULL AND retracted_by IS NULL;

DROP INDEX entries_messages;
CREATE INDEX entries_messages ON entries (project_id, session_id, seq)
  WHERE kind = 'message' AND retracted_by IS NULL;
CREATE INDEX entries_retracted_messages ON entries (project_id, session_id, seq)
  WHERE kind = 'message' AND retracted_by IS NOT NULL;
