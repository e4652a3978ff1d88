-- Copying a long session in short transactions.
--
-- A copy that is too long for one statement gets its entries in slices, and its session and head with the last one:
-- until then nobody sees it, since whoever reads or writes a log begins at the head. All the while it has a row in
-- erased_sessions, as any log without a session has, with these two columns. When the copy is broken off, they say
-- when its entries may be deleted, as the remains of a session that was erased.
--
-- source_id: the session that is copied. Whoever deletes that session sets leased_until to null, which ends the copy.
-- leased_until: until then the log belongs to the process that writes the copy, which sets it anew with each slice.
--   Null: the log is to be deleted.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE erased_sessions ADD COLUMN source_id uuid;
ALTER TABLE erased_sessions ADD COLUMN leased_until timestamptz;
