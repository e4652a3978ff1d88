-- A log that proves itself: docs/proof.md.
--
-- projects.proof: whether sessions begin chains. Null: it never was switched on, and appends do not look for chains first.
-- session_heads.proof, entries.proof: the head of the chain after the last entry, and after each; null: none. A session
--   that has a chain keeps it, whatever the project's setting becomes: so a gap in a chain is always a finding.
-- sessions.forked_proof: of a fork, in hexadecimal, the head of its original's chain at the entry that it was forked at. It
--   stays when the original is erased.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE projects ADD COLUMN proof boolean;
ALTER TABLE session_heads ADD COLUMN proof bytea;
ALTER TABLE entries ADD COLUMN proof bytea;
ALTER TABLE sessions ADD COLUMN forked_proof text;
