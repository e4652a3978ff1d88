-- Who read which session, where a project wants to know: docs/people.md.
--
-- session_reads: a row for each session, principal and minute. seq counts them in each project, in commit order.
--   principal_id: the member who read, or the key. actor: who that is, as the audit shows it. shown: what the principal
--   got of the session. Rows are only ever inserted, and deleted when they are older than audit_reads_days.
-- projects.audit_reads: whose reads are noted, people's or everybody's; null: nobody's.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE projects ADD COLUMN audit_reads text;
ALTER TABLE projects ADD COLUMN audit_reads_days int;

CREATE TABLE session_reads (
  project_id uuid NOT NULL,
  seq bigint NOT NULL,
  read_at timestamptz NOT NULL,
  session_id uuid NOT NULL,
  principal_id uuid NOT NULL,
  shown text NOT NULL,
  actor text NOT NULL,
  PRIMARY KEY (project_id, seq)
);

CREATE UNIQUE INDEX session_reads_once ON session_reads (project_id, session_id, read_at, principal_id, shown);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves this with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('session_reads', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;

ALTER TABLE session_reads ADD CONSTRAINT session_reads_project_fk FOREIGN KEY (project_id) REFERENCES projects (id);
