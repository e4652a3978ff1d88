-- Usage by day.
--
-- usage_days: what a project stored on a day, in UTC, whether or not it was deleted since. A node adds what it counted
--   every few seconds, so that an append costs no more than it did; the tokens of models are added in the transactions
--   that begin and end their calls, so that a quota can rest on them. A day without use has no row. Rows are kept as long
--   as their project.
-- statements_by_time: statements are counted where they are.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

CREATE TABLE usage_days (
  project_id uuid NOT NULL,
  day date NOT NULL,
  sessions bigint NOT NULL DEFAULT 0,
  entries bigint NOT NULL DEFAULT 0,
  bytes bigint NOT NULL DEFAULT 0,
  blobs bigint NOT NULL DEFAULT 0,
  blob_bytes bigint NOT NULL DEFAULT 0,
  model_tokens bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (project_id, day)
);
CREATE INDEX statements_by_time ON statements (project_id, created_at);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves this with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('usage_days', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;

ALTER TABLE usage_days ADD CONSTRAINT usage_days_project_fk FOREIGN KEY (project_id) REFERENCES projects (id);

INSERT INTO usage_days (project_id, day, model_tokens)
SELECT c.project_id, (c.sent_at AT TIME ZONE 'UTC')::date, sum(c.tokens_in + c.tokens_out)
FROM learning_calls c GROUP BY c.project_id, (c.sent_at AT TIME ZONE 'UTC')::date;
