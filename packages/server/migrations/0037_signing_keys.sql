-- Keys that sign tokens for single sessions and users. The newest signs; those that it replaced still verify until the last
-- token that they signed has expired. They belong to the installation, which its tokens name, and no backup has them. On a
-- cluster only the coordinator has them, as it has the sessions of the administrator.

CREATE TABLE signing_keys (
  generation integer NOT NULL,
  installation uuid NOT NULL,
  secret jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  replaced_at timestamptz,
  PRIMARY KEY (generation)
);
