-- Deleting a long session in short transactions, and deleting what nobody has touched for a while.
--
-- A session with more entries than one transaction should delete goes in two steps: the session and its head in
-- one short transaction, which makes it gone for every reader and writer, and its entries in slices behind that.
-- A row here names a session whose entries are not all deleted yet: those up to last_seq are left. It is deleted
-- with the last slice, so the table is nearly always empty. Whoever finds a row may go on with it.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

CREATE TABLE erased_sessions (
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  last_seq bigint NOT NULL,
  erased_at timestamptz NOT NULL,
  PRIMARY KEY (project_id, session_id)
);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves this one with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('erased_sessions', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;

-- Days after which a session that nobody has touched is deleted; null: never. There is no index on
-- session_heads.updated_at: every append writes that column, and with an index on it none could be HOT.
-- What is old is found by walking sessions_by_created, since no session was touched before it was created.
ALTER TABLE projects ADD COLUMN retention_days integer;
ALTER TABLE projects ADD CONSTRAINT projects_retention_days_positive CHECK (retention_days > 0);
