-- Tokens of messages are those of all that is sent, also of thoughts, documents, images and the results of hosted tools.
-- What was stored before has the tokens of its text alone, and is recounted in the background, a project after the other.
--
-- A row here names a project whose messages are not all recounted yet: those of sessions before session_id are, and of
-- that one those up to seq. It is deleted with the last of them, and nothing adds another.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

CREATE TABLE token_recounts (
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  seq bigint NOT NULL,
  leased_until timestamptz NOT NULL,
  PRIMARY KEY (project_id)
);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves this one with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('token_recounts', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;

INSERT INTO token_recounts AS r (project_id, session_id, seq, leased_until)
SELECT p.id, '00000000-0000-0000-0000-000000000000', 0, now() FROM projects p;
