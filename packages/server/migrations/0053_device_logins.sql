-- Command lines that wait until somebody approves them in a browser, on any machine. Small, and on every machine of a
-- cluster like the keys: whoever approves, and whoever asks, may meet any node. A row counts for ten minutes.

-- device_hash: of the secret by which the command line asks. member_id, project_id: of whoever approved it; null: refused,
-- if it is_decided. polled_until: when it may ask again, as seconds of the epoch.
CREATE TABLE device_logins (
  user_code text NOT NULL,
  device_hash bytea NOT NULL,
  name text NOT NULL,
  address text NOT NULL,
  created_at timestamptz NOT NULL,
  polled_until double precision NOT NULL,
  is_decided boolean NOT NULL,
  member_id uuid,
  project_id uuid,
  PRIMARY KEY (user_code)
);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    PERFORM create_reference_table('device_logins');
  END IF;
END
$citus$;

CREATE UNIQUE INDEX device_logins_by_hash ON device_logins (device_hash);
ALTER TABLE device_logins ADD CONSTRAINT device_logins_member_fk
  FOREIGN KEY (member_id) REFERENCES members (id) ON DELETE CASCADE;

-- Until when the looks of somebody at codes count, as seconds of the epoch: nobody finds those of others by trying.
ALTER TABLE people ADD COLUMN looks_until double precision NOT NULL DEFAULT 0;
