-- Attachments: bytes of any kind, stored once per project and found by their SHA-256.
--
-- blobs: a row without sha256 is an upload that has not ended: nobody finds it, and it is deleted after a day. The id
--   names the chunks, so that two uploads of one hash do not meet before they are complete; the first to end keeps the
--   hash. unreferenced_since: when the bytes were last sent while nothing was known to refer to them; null once
--   housekeeping has found a reference.
-- blob_chunks: 256 KiB each, the last one less. They are not compressed: images, audio and PDFs already are. They go with
--   their blob by the foreign key, so there is no chunk without a blob.
-- blob_references: an entry of a session, or (with seq 0) another owner. The foreign key decides between a reference that
--   is added and a blob that is deleted at the same time: one of the two fails.
-- max_blob_bytes: quota of a project; null: none.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

CREATE TABLE blobs (
  project_id uuid NOT NULL,
  id uuid NOT NULL,
  sha256 text,
  bytes bigint NOT NULL,
  created_at timestamptz NOT NULL,
  unreferenced_since timestamptz DEFAULT now(),
  PRIMARY KEY (project_id, id)
);
ALTER TABLE blobs ADD CONSTRAINT blobs_by_hash UNIQUE (project_id, sha256);
CREATE INDEX blobs_unreferenced ON blobs (project_id, unreferenced_since) WHERE unreferenced_since IS NOT NULL;

CREATE TABLE blob_chunks (
  project_id uuid NOT NULL,
  blob_id uuid NOT NULL,
  n integer NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (project_id, blob_id, n)
);
ALTER TABLE blob_chunks ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE blob_references (
  project_id uuid NOT NULL,
  owner_id uuid NOT NULL,
  seq bigint NOT NULL,
  sha256 text NOT NULL,
  PRIMARY KEY (project_id, owner_id, seq, sha256)
);
CREATE INDEX blob_references_by_hash ON blob_references (project_id, sha256);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves these with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('blobs', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('blob_chunks', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('blob_references', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;

ALTER TABLE blobs ADD CONSTRAINT blobs_project FOREIGN KEY (project_id) REFERENCES projects (id);
ALTER TABLE blob_chunks ADD CONSTRAINT blob_chunks_blob FOREIGN KEY (project_id, blob_id) REFERENCES blobs (project_id, id) ON DELETE CASCADE;
ALTER TABLE blob_references ADD CONSTRAINT blob_references_blob FOREIGN KEY (project_id, sha256) REFERENCES blobs (project_id, sha256);

ALTER TABLE projects ADD COLUMN max_blob_bytes bigint;
