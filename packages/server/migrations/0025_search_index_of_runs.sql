-- The index of words, in less than half the room: it is made anew, by what makes it where search is switched on.
--
-- A row of search_entries stands for a run: entries of a session that follow each other and lie in one segment, up to
--   16. words: of each entry a line, with its label and each of its words once. What is indexed is the line's words as a
--   tsvector, which would take twice the room if it were stored, and cannot be compressed as text can. The index so finds
--   runs, whose lines say which entries match. Rows of a session that is being written are put together as it grows.
-- A process of an older version that is still running cannot write to this table or search it, and goes on with all else.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

TRUNCATE search_entries;
DROP INDEX search_entries_words;
ALTER TABLE search_entries DROP COLUMN words;
ALTER TABLE search_entries DROP COLUMN type;
ALTER TABLE search_entries DROP COLUMN role;
ALTER TABLE search_entries RENAME COLUMN created_at TO first_at;
ALTER TABLE search_entries ADD COLUMN last_seq bigint NOT NULL;
ALTER TABLE search_entries ADD COLUMN last_at timestamptz NOT NULL;
ALTER TABLE search_entries ADD COLUMN words text NOT NULL;

CREATE INDEX search_entries_words ON search_entries USING gin ((ARRAY[
  project_id::text || ' ' || segment::text, 's' || session_id::text, 'u' || user_id::text
]), (words::tsvector)) WITH (gin_pending_list_limit = 1024);

DELETE FROM search_segments;
DELETE FROM change_cursors WHERE consumer = 'search';
UPDATE project_consumers SET scan_at = now(), scanned_to = NULL, scanned_at = NULL, sessions_scanned = 0
WHERE consumer = 'search';
