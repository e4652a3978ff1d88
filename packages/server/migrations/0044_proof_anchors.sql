-- Anchors of a log that proves itself, made by the service: docs/proof.md.
--
-- proof_destinations: where anchors go. One process at a time holds a destination, until held_until. nth and previous:
--   the last anchor that was numbered, and the hash of its statement; line: its text while it is not known to have
--   arrived, so that what is sent again is the same. chain: which rows of the other tables belong to it; another one
--   when the destination turns out to have anchors that this database did not make. On a cluster, the coordinator alone
--   has this table: writing a reference table would take every machine.
-- proof_heads: of each session, what was anchored last; it outlives the session until that is anchored as erased.
-- proof_anchors, proof_leaves: what has arrived, without and with what a proof of one entry needs.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

CREATE TABLE proof_destinations (
  destination text NOT NULL,
  chain uuid NOT NULL,
  nth bigint NOT NULL,
  previous text NOT NULL,
  line text,
  holder uuid,
  held_until timestamptz NOT NULL,
  passed_at timestamptz,
  failure text,
  PRIMARY KEY (destination)
);

CREATE TABLE proof_heads (
  project_id uuid NOT NULL,
  chain uuid NOT NULL,
  session_id uuid NOT NULL,
  seq bigint NOT NULL,
  head bytea NOT NULL,
  PRIMARY KEY (project_id, chain, session_id)
);

CREATE TABLE proof_anchors (
  project_id uuid NOT NULL,
  chain uuid NOT NULL,
  nth bigint NOT NULL,
  statement text NOT NULL,
  PRIMARY KEY (project_id, chain, nth)
);

CREATE TABLE proof_leaves (
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  seq bigint NOT NULL,
  chain uuid NOT NULL,
  nth bigint NOT NULL,
  place integer NOT NULL,
  head bytea NOT NULL,
  path bytea NOT NULL,
  PRIMARY KEY (project_id, session_id, seq, chain)
);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves these with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('proof_heads', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('proof_anchors', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('proof_leaves', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;

ALTER TABLE proof_heads ADD CONSTRAINT proof_heads_project_fk FOREIGN KEY (project_id) REFERENCES projects (id);
ALTER TABLE proof_anchors ADD CONSTRAINT proof_anchors_project_fk FOREIGN KEY (project_id) REFERENCES projects (id);
ALTER TABLE proof_leaves ADD CONSTRAINT proof_leaves_project_fk FOREIGN KEY (project_id) REFERENCES projects (id);
