-- Ids that Annals makes begin with the time, so behind a project's id they come in order: all new ones of a project go
-- to the same page of the index, whichever sessions they are of. Behind the session's id, where they stood, each
-- session had a page of its own. An append costs 2.5 of 35 µs less, a first append after a checkpoint writes 700 bytes
-- of WAL less, and the pages that appends touch stay in memory however many sessions there are. What is unique and how
-- it is found is as before: project, session and id are always given together.
--
-- Takes the time to build an index of the whole log; nothing is written meanwhile.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE entries DROP CONSTRAINT entries_id_unique;
ALTER TABLE entries ADD CONSTRAINT entries_id_unique UNIQUE (project_id, id, session_id);
