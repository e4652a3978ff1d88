-- Compactions that the configured model writes when a context of a session has become long.
--
-- projects.auto_compact_tokens: tokens from which on a context is compacted; null: never.
-- auto_compactions: sessions whose context was found to be too long. tokens: how many it had when it was last looked at:
--   without a summary, it is looked at again once it has grown. due_at: when it is the model's turn, null where nothing waits. to_seq: the last entry of what
--   is being compacted, from when that is decided until it is done, so that whoever takes it over asks the model the same.
--   except_seq: the user's message in it that stays whole. held_until: a process works on it until then.
-- learning_calls.learning_space_id: null where the model was asked for a summary of a session.
--
-- auto_compactions has no foreign key to sessions: its rows go with them, in slices.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE projects ADD COLUMN auto_compact_tokens bigint;

CREATE TABLE auto_compactions (
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  tokens bigint NOT NULL,
  due_at timestamptz,
  to_seq bigint,
  except_seq bigint,
  held_until timestamptz NOT NULL DEFAULT '-infinity',
  attempts integer NOT NULL DEFAULT 0,
  PRIMARY KEY (project_id, session_id)
);
CREATE INDEX auto_compactions_by_due ON auto_compactions (due_at) WHERE due_at IS NOT NULL;

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves this one with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('auto_compactions', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;

ALTER TABLE learning_calls ALTER COLUMN learning_space_id DROP NOT NULL;
DROP INDEX learning_calls_by_input;
CREATE UNIQUE INDEX learning_calls_by_input ON learning_calls (project_id, input_hash, learning_space_id) NULLS NOT DISTINCT;
