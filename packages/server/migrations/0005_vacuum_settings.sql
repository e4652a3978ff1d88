-- When autovacuum comes to the tables that are written most.
--
-- Its defaults wait for a share of the table: a fifth of its rows dead or inserted. Of a table with a hundred
-- million rows that is twenty million, so it comes seldom and works long, and until then what was deleted lies in
-- the indexes that lists walk, and what was inserted is not known to be visible, so that a look into an index ends
-- in the table. These settings make the share small; the thresholds (in rows) keep small tables from being visited
-- all the time.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

-- Only inserted (and deleted with its session). Insert vacuums mark pages all-visible, and freeze them while they
-- are still in memory, instead of all at once when transaction ids run out.
ALTER TABLE entries SET (
  autovacuum_vacuum_insert_scale_factor = 0.02,
  autovacuum_vacuum_insert_threshold = 100000,
  autovacuum_vacuum_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.05
);

-- Walked by filtered lists without a look into the table, as far as its pages are known to be visible; a prune
-- leaves dead rows at the very end of it where lists begin.
ALTER TABLE list_terms SET (
  autovacuum_vacuum_insert_scale_factor = 0.02,
  autovacuum_vacuum_insert_threshold = 20000,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 5000
);

-- The same for the list without a filter. fillfactor: an update of configs finds room on its page, and since no
-- index has configs in it, it is HOT.
ALTER TABLE sessions SET (
  fillfactor = 90,
  autovacuum_vacuum_insert_scale_factor = 0.05,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000
);

-- Updated by every append, in place: half of each page is free for the next version (fillfactor 50, since the
-- first migration), and a page is pruned by whoever comes to it when it is full. Vacuum is for what is left behind
-- by that; with many sessions it must not wait for a fifth of them to be dead.
ALTER TABLE session_heads SET (
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000
);

-- Inserted with every idempotent request and dropped two days later: all of it is dead rows sooner or later.
ALTER TABLE idempotency_keys SET (
  autovacuum_vacuum_scale_factor = 0.05,
  autovacuum_vacuum_insert_scale_factor = 0.1
);
