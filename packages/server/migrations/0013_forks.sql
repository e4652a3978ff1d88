-- Where a session was copied from.
--
-- forked_from, forked_at_seq: the original, and the last seq of it that was copied. They become null when the original
--   is deleted, so that nothing of an erased user is left in another user's session. The index finds them then. There
--   is no foreign key: with one, a copy would lock the row of its original.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE sessions ADD COLUMN forked_from uuid;
ALTER TABLE sessions ADD COLUMN forked_at_seq bigint;
CREATE INDEX sessions_by_source ON sessions (project_id, forked_from, id) WHERE forked_from IS NOT NULL;
