-- A claim begins where work is due for longest, which is where earlier claims left dead index entries. Only vacuum removes
-- them, since nothing new is inserted there: after 60,000 claims a look for work passed 500 pages and took nine times as
-- long. So vacuum comes when one row of 200 is dead, which costs it 0.3 s with a million rows.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE session_runs SET (autovacuum_vacuum_scale_factor = 0.005);
