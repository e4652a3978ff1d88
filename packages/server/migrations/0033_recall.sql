-- Lines of words have stems as well, and say how often a word stands in an entry: what a question in plain words is
-- answered by. The rows that there are stay as they are, for searches by words, until each is written anew in the
-- background, a project after the other.
--
-- A row here names a project whose rows are not all written anew yet: those up to this place are. It is deleted with the
-- last of them, and nothing adds another.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

CREATE TABLE search_refills (
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  seq bigint NOT NULL,
  entries_done bigint NOT NULL,
  leased_until timestamptz NOT NULL,
  PRIMARY KEY (project_id)
);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves this one with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('search_refills', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;

INSERT INTO search_refills AS r (project_id, session_id, seq, entries_done, leased_until)
SELECT p.id, '00000000-0000-0000-0000-000000000000', 0, 0, now() FROM projects p WHERE p.search;
