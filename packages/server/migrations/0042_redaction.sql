-- What a project's entries are cleared of: its rules, with the secret that hashes what was found, and the masks of each
-- session, so that the same value has the same mask in all of its log. A key that is masked reads no personal data.
--
-- redaction_masks: digest is of the value, with the project's secret; number is the mask's, from 1 for each name.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE projects ADD COLUMN redaction jsonb;

ALTER TABLE api_keys ADD COLUMN masked boolean NOT NULL DEFAULT false;

CREATE TABLE redaction_masks (
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  name text NOT NULL,
  number bigint NOT NULL,
  digest text NOT NULL,
  CONSTRAINT redaction_masks_pkey PRIMARY KEY (project_id, session_id, name, number)
);

ALTER TABLE redaction_masks ADD CONSTRAINT redaction_masks_digest_unique UNIQUE (project_id, session_id, name, digest);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves these with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('redaction_masks', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;
