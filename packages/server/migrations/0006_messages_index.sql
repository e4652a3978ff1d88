-- The messages of a session whose log is mostly events: 20 messages behind 100,000 events took 18 ms of CPU to
-- find by the primary key, and take a fraction of one by this. An event does not touch it; a message costs 5 µs
-- and 145 bytes of WAL more than before (11 µs, 620 bytes). Types of events have no such index, since it would
-- slow every append: see docs/lists.md.

CREATE INDEX entries_messages ON entries (project_id, session_id, seq) WHERE kind = 'message';
