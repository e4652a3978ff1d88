-- Bytes of blobs may be kept in an object store, under the project's id and the blob's.
--
-- blobs.in_object_store: no chunks. The row is there before the object, and until it is noted below: there is never an
--   object that no row names.
-- discarded_objects: written in the transaction that deletes the blob; the row goes when the object is known to have gone.
--   It may outlive its project.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE blobs ADD COLUMN in_object_store boolean NOT NULL DEFAULT false;

CREATE TABLE discarded_objects (
  project_id uuid NOT NULL,
  id uuid NOT NULL,
  discarded_at timestamptz NOT NULL,
  PRIMARY KEY (project_id, id)
);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves these with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('discarded_objects', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;
