-- Runs: who works on a session, what it is sent, and what it asks.
--
-- session_heads.fence: the fence of whoever took the session's lease last; null: nobody ever did. It only grows, also
--   across restores: it is never below the milliseconds since 1970. fenced_at: when something was last appended under
--   it. requires_fence: writes without it are refused. run_place: numbers what happens in session_runs, session_inbox and
--   session_requests, so that a tail can go on where it was.
-- session_runs: a row for each session that ever had a lease, an input or a request. owner and expires_at are null when
--   the lease was released. wake_at: the earliest not_before of its pending inputs; null: it has none.
-- session_inbox: entries to be. One that is applied is deleted by the append that stores it: from then on the log has it,
--   under the same id. One that is withdrawn stays for a while without its content, so that a retry does not add it again.
-- session_requests: what a runner asked, and the first answer: an object whose `value` is any JSON.
-- Rows go with their session. They have no foreign key to it: who writes them locks the session's head first.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE session_heads ADD COLUMN fence bigint;
ALTER TABLE session_heads ADD COLUMN fenced_at timestamptz;
ALTER TABLE session_heads ADD COLUMN requires_fence boolean;
ALTER TABLE session_heads ADD COLUMN run_place bigint;

CREATE TABLE session_runs (
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  owner text,
  ttl_ms integer NOT NULL,
  progress boolean NOT NULL,
  taken_at timestamptz,
  expires_at timestamptz,
  place bigint NOT NULL,
  wake_at timestamptz,
  open_requests integer NOT NULL,
  waiting_since timestamptz,
  PRIMARY KEY (project_id, session_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

CREATE TABLE session_inbox (
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  id uuid NOT NULL,
  place bigint NOT NULL,
  mode text NOT NULL,
  entry_kind text NOT NULL,
  type text,
  key text,
  role text,
  format text,
  bytes integer NOT NULL,
  tokens integer NOT NULL,
  data jsonb NOT NULL,
  meta jsonb,
  created_at timestamptz NOT NULL,
  not_before timestamptz NOT NULL,
  expires_at timestamptz,
  withdrawn_at timestamptz,
  reason text,
  PRIMARY KEY (project_id, session_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

CREATE TABLE session_requests (
  project_id uuid NOT NULL,
  id uuid NOT NULL,
  session_id uuid NOT NULL,
  place bigint NOT NULL,
  seq bigint NOT NULL,
  bytes integer NOT NULL,
  body jsonb NOT NULL,
  call_sha256 text,
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  decision text,
  answer jsonb,
  resolved_by text,
  resolved_at timestamptz,
  resolved_seq bigint,
  PRIMARY KEY (project_id, id)
);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves these with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('session_runs', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('session_inbox', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('session_requests', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;

-- Work that is due, the longest due first. GREATEST leaves out a null: then there is no lease.
CREATE INDEX session_runs_by_due ON session_runs (project_id, (greatest(wake_at, expires_at)), session_id)
  WHERE wake_at IS NOT NULL;
CREATE INDEX session_runs_by_lease ON session_runs (project_id, taken_at, session_id) WHERE owner IS NOT NULL;
CREATE INDEX session_runs_by_waiting ON session_runs (project_id, waiting_since, session_id) WHERE open_requests > 0;
CREATE INDEX session_inbox_by_place ON session_inbox (project_id, session_id, place);
CREATE INDEX session_requests_by_place ON session_requests (project_id, session_id, place);
CREATE INDEX session_requests_by_created ON session_requests (project_id, created_at, id);
CREATE INDEX session_requests_open ON session_requests (project_id, created_at, id) WHERE decision IS NULL;
CREATE INDEX session_requests_by_session ON session_requests (project_id, session_id, created_at, id);
