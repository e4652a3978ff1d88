-- Calls of a model, for learning.
--
-- learning_calls: one row an input, by its digest, so that an answer is never paid for twice. status: sent, answered,
--   applied (what it says is in the statements) or failed. answer: what the model said, until it is applied, or a
--   session that it may quote is deleted: session_id, or other_session_id with which that was compared. tokens: of all
--   attempts; of one under way, an estimate. sent_at: of the last attempt.
-- projects.model: where the project's model is, instead of the service's: url, name, key.
-- projects.max_model_tokens_per_day: null: as the service is configured.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE projects ADD COLUMN model jsonb;
ALTER TABLE projects ADD COLUMN max_model_tokens_per_day bigint;

CREATE TABLE learning_calls (
  project_id uuid NOT NULL,
  learning_space_id uuid NOT NULL,
  id uuid NOT NULL,
  input_hash text NOT NULL,
  step text NOT NULL,
  model text NOT NULL,
  session_id uuid,
  other_session_id uuid,
  status text NOT NULL,
  error text,
  answer jsonb,
  attempts integer NOT NULL,
  tokens_in bigint NOT NULL,
  tokens_out bigint NOT NULL,
  created_at timestamptz NOT NULL,
  sent_at timestamptz NOT NULL,
  PRIMARY KEY (project_id, id)
);
CREATE UNIQUE INDEX learning_calls_by_input ON learning_calls (project_id, learning_space_id, input_hash);
CREATE INDEX learning_calls_of_space ON learning_calls (project_id, learning_space_id, created_at, id);
CREATE INDEX learning_calls_by_time ON learning_calls (project_id, sent_at);
CREATE INDEX learning_calls_of_session ON learning_calls (project_id, session_id);
CREATE INDEX learning_calls_of_other_session ON learning_calls (project_id, other_session_id);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('learning_calls', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;

ALTER TABLE learning_calls ADD CONSTRAINT learning_calls_space_fk
  FOREIGN KEY (project_id, learning_space_id) REFERENCES learning_spaces (project_id, id);
