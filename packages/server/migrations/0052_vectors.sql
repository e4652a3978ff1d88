-- Vectors of entries, where the operator names a model that makes them: what a question in other words is answered by.
--
-- search_vectors has a row for each entry that has text, written by a consumer of changes. vector is an array, which each
--   PostgreSQL has: the extension `vector` is needed only where distances are computed, and no database lacks the table.
--   It is kept outside of the row. sketch: the signs of its values, by which the nearest ones are chosen that vectors are
--   then compared of. happened_at: the time at which the entry was stored or happened, the earlier one. model: only
--   vectors of the same one are compared. There is no foreign key: rows go with their session.
-- projects.vectors: the model that the project's vectors are of, or are being made of; null if it has none.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE projects ADD COLUMN vectors text;

CREATE TABLE search_vectors (
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  seq bigint NOT NULL,
  happened_at timestamptz NOT NULL,
  user_id uuid,
  model text NOT NULL,
  label text NOT NULL,
  sketch bit varying NOT NULL,
  vector real[] NOT NULL,
  PRIMARY KEY (project_id, session_id, seq)
);
-- It does not get smaller when it is compressed.
ALTER TABLE search_vectors ALTER COLUMN vector SET STORAGE EXTERNAL;

CREATE INDEX search_vectors_by_time ON search_vectors (project_id, happened_at);
CREATE INDEX search_vectors_of_users ON search_vectors (project_id, user_id, happened_at) WHERE user_id IS NOT NULL;

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves this one with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('search_vectors', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;
