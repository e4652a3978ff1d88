-- What a project may have at most, and what each session has.
--
-- The bytes of a log stand in its session's head, which every append writes anyway, so that what a project has is the
-- sum over its heads and nothing has to be counted twice. `bytes` are those of so many entries as `counted` says. Where
-- that is fewer than last_seq, as after an append by a node of an older version during an upgrade, the log is added up
-- anew when somebody asks: nothing has to be stopped for this, and a count that is behind is known to be.
--
-- Takes the time to read the log once; nothing is written meanwhile.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE session_heads ADD COLUMN bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE session_heads ADD COLUMN counted bigint NOT NULL DEFAULT 0;

UPDATE session_heads AS h SET bytes = e.bytes, counted = e.entries
FROM (
  SELECT o.project_id, o.session_id, sum(o.bytes) AS bytes, count(*) AS entries
  FROM entries o GROUP BY o.project_id, o.session_id
) e
WHERE h.project_id = e.project_id AND h.session_id = e.session_id;

-- Quotas; null: none. They are read together with the token, so that a request costs no query of its own.
ALTER TABLE projects ADD COLUMN max_sessions bigint;
ALTER TABLE projects ADD COLUMN max_bytes bigint;
ALTER TABLE projects ADD COLUMN max_tails bigint;
