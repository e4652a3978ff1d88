-- Which sessions have changed, for consumers that read the log in the background; and the first of these, the order
-- of sessions by their last activity.
--
-- projects.consumers: what runs for a project. It stands in a table that every machine of a cluster has, beside the
--   project's keys, so that a request knows it without asking, and a statement that writes marks reads it where it runs.
-- project_consumers: how far a consumer is with a project. scan_at: when its sessions are next looked through for ones
--   that lack a mark; scanned_to: how far that is. scanned_at: since when it has seen all that there was. retired_at: it
--   is being taken apart.
-- change_marks: a session that a consumer has not read to its head. due_at: from then on somebody may take it up; who
--   does moves it to the end of the lease. failures: how often in a row it failed.
-- change_cursors: up to which seq a consumer has read a session, where it reads entries.
-- session_activity, activity_terms: as list_terms (0004), in the order of the last activity to the second. A session's
--   terms stand beside it, since its configs may have changed by the time they are moved. Term 7, which no document
--   and no user has, stands for every session.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE projects ADD COLUMN consumers text[] NOT NULL DEFAULT '{}';

CREATE TABLE project_consumers (
  project_id uuid NOT NULL,
  consumer text NOT NULL,
  used_at timestamptz NOT NULL,
  scan_at timestamptz NOT NULL,
  scanned_to uuid,
  sessions_scanned bigint NOT NULL,
  scanned_at timestamptz,
  retired_at timestamptz,
  PRIMARY KEY (project_id, consumer)
);

-- Rows come and go all the time, so the settings have vacuum come early.
CREATE TABLE change_marks (
  project_id uuid NOT NULL,
  consumer text NOT NULL,
  session_id uuid NOT NULL,
  marked_at timestamptz NOT NULL,
  due_at timestamptz NOT NULL,
  lease uuid,
  failures integer NOT NULL,
  PRIMARY KEY (project_id, session_id, consumer)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
CREATE INDEX change_marks_by_due ON change_marks (project_id, consumer, due_at);

CREATE TABLE change_cursors (
  project_id uuid NOT NULL,
  consumer text NOT NULL,
  session_id uuid NOT NULL,
  seq bigint NOT NULL,
  PRIMARY KEY (project_id, session_id, consumer)
);

CREATE TABLE session_activity (
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  active_at timestamptz NOT NULL,
  terms bigint[] NOT NULL,
  PRIMARY KEY (project_id, session_id)
);

CREATE TABLE activity_terms (
  project_id uuid NOT NULL,
  term bigint NOT NULL,
  active_at timestamptz NOT NULL,
  session_id uuid NOT NULL,
  signature bigint NOT NULL,
  PRIMARY KEY (project_id, term, active_at, session_id) INCLUDE (signature)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves these with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('project_consumers', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('change_marks', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('change_cursors', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('session_activity', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('activity_terms', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;
