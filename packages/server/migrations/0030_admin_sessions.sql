-- Sessions of the administrator in the console: a row for each that is open, so that signing out ends it for every node.
-- They belong to the installation. On a cluster only the coordinator has them: signing in and out does not wait for workers.

CREATE TABLE admin_sessions (
  id uuid NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (id)
);
