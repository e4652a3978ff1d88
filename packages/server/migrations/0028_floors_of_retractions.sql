-- live_seq of an entry: of a retraction, the newest entry before it that was live when it had been carried out, or 0. No
-- entry between the two is live, now or later, so whoever looks for live entries goes on there. Null: of every other
-- entry, which so takes no room, and of retractions that were copied, imported, or made before: not known.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE entries ADD COLUMN live_seq bigint;
