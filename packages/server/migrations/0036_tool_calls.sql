-- The calls of tools, each once, for figures of tools that are exact: of a long log with much else in it, no sample is. A
-- consumer of changes keeps them, where somebody asks for figures of a project; nothing of it is exported, since it is
-- made from the log.
--
-- tool_calls: number counts a session's calls; called_at is when a call was made. call_id, event_id, given, recorded and
--   answered are what the reader of the rest of the log needs to find the call that a later entry belongs to. is_counted:
--   neither retracted, nor copied from another session, where it is counted. failed: null while there is no result.
--   message: of a failed call, what errors of its kind have in common; result and said: what the tool returned, and what
--   the assistant said next, the beginning of each.
-- session_readings: of each session, what a user said first, and the beginning of a part of a stream that has not ended.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

CREATE TABLE tool_calls (
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  number bigint NOT NULL,
  seq bigint NOT NULL,
  called_at timestamptz NOT NULL,
  name text NOT NULL,
  call_id text,
  event_id text,
  given bigint NOT NULL,
  recorded smallint NOT NULL,
  answered smallint NOT NULL,
  is_retracted boolean NOT NULL,
  is_counted boolean NOT NULL,
  failed boolean,
  result_seq bigint,
  duration_ms bigint,
  message text,
  result text,
  said_seq bigint,
  said text,
  PRIMARY KEY (project_id, session_id, number)
);
CREATE INDEX tool_calls_by_time ON tool_calls (project_id, called_at DESC)
  INCLUDE (name, session_id, number, failed, duration_ms) WHERE is_counted;

CREATE TABLE session_readings (
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  question text,
  question_seq bigint,
  stream text NOT NULL,
  PRIMARY KEY (project_id, session_id)
);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves these with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('tool_calls', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('session_readings', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;
