-- Sessions that are deleted when nobody has touched them for a while.
--
-- expires_in_s: how long that is; null: never. expiry_due_at: the session has not expired before. An append moves the
--   time at which it does, and not this column, so that it costs an append nothing; when it is due, housekeeping looks
--   at the head, and deletes the session or moves the column. The index begins with it and not with the project, so
--   that one look finds what is due in all projects.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE sessions ADD COLUMN expires_in_s integer;
ALTER TABLE sessions ADD COLUMN expiry_due_at timestamptz;
CREATE INDEX sessions_by_expiry ON sessions (expiry_due_at, project_id, id) WHERE expiry_due_at IS NOT NULL;
