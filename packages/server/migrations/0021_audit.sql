-- What operators did: append-only, and kept when a project is erased.
--
-- seq: 1, 2, 3, … in commit order: an act takes the number behind the last one, and waits for one that is being
--   committed. Whoever has read up to a seq has seen all acts up to it. Acts are rare, so nothing waits for long.

CREATE TABLE audit (
  seq bigint NOT NULL,
  created_at timestamptz NOT NULL,
  actor text NOT NULL,
  action text NOT NULL,
  project_id uuid NOT NULL,
  details jsonb NOT NULL,
  PRIMARY KEY (seq)
);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    PERFORM create_reference_table('audit');
  END IF;
END
$citus$;
