-- The secret that signs the URLs of assets, so that every node opens what another one signed. It belongs to the
-- installation and never changes; what it signs is valid for minutes.

CREATE TABLE asset_url_secrets (
  id integer NOT NULL,
  secret text NOT NULL,
  PRIMARY KEY (id)
);
INSERT INTO asset_url_secrets (id, secret) VALUES (1, gen_random_uuid()::text || gen_random_uuid()::text);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    PERFORM create_reference_table('asset_url_secrets');
  END IF;
END
$citus$;
