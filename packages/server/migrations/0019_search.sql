-- The words of entries, for projects that search.
--
-- search_entries has a row for each entry that was indexed, written by a consumer of changes and never by an append, so
--   that a project that does not search pays nothing. words: each word once; no places, which would take as much room as
--   the text, so that where words must follow each other is looked at in the log. type, role and user_id stand here as
--   well, so that they narrow a search inside the index. There is no foreign key: rows go with their session.
-- search_segments divides a project's entries by their time into parts of some 16,000. A search goes through them from
--   the newest until its page is full: a GIN index gives what it finds in no order, and the newest 20 of a word that half
--   a million entries have would otherwise take half a second. A segment ends where the next one begins.
-- search_entries_words: the first column is what narrows a search; array elements of all kinds in one, so that what a
--   query combines is combined inside the index. Words that were added wait in a list that each search reads whole; it is
--   kept short.
-- projects.search: whether the project is indexed.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE projects ADD COLUMN search boolean;

CREATE TABLE search_segments (
  project_id uuid NOT NULL,
  segment integer NOT NULL,
  begins_at timestamptz NOT NULL,
  entries bigint NOT NULL,
  last_at timestamptz NOT NULL,
  PRIMARY KEY (project_id, segment)
) WITH (fillfactor = 50);

CREATE TABLE search_entries (
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  seq bigint NOT NULL,
  created_at timestamptz NOT NULL,
  segment integer NOT NULL,
  user_id uuid,
  type text,
  role text,
  words tsvector NOT NULL,
  PRIMARY KEY (project_id, session_id, seq)
);

CREATE INDEX search_entries_words ON search_entries USING gin ((ARRAY[
  project_id::text || ' ' || segment::text, 's' || session_id::text, 'u' || user_id::text, 't' || type, 'r' || role
]), words) WITH (gin_pending_list_limit = 1024);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves these with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('search_segments', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('search_entries', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;
