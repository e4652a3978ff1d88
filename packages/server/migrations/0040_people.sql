-- People: who signed in at the issuer (OpenID Connect), and what they may do in a project. A key of a person (a personal
-- token, or a session of the console) names its member, whose role is looked up with the key: it narrows what the key
-- allows, and without it the key ends. Both tables are small, and on every machine of a cluster like the keys.

-- issuer, subject: null until whoever has the address signs in for the first time. invited_role: given by an administrator;
-- group_role: by the groups that the issuer names, until group_until. The higher one holds; in the alphabet it is the first.
CREATE TABLE members (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  email text NOT NULL,
  issuer text,
  subject text,
  invited_role text,
  group_role text,
  group_until timestamptz,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (id)
);

-- refresh_token: encrypted. check_after: when the issuer is asked again what groups the person is in.
CREATE TABLE people (
  id uuid NOT NULL,
  issuer text NOT NULL,
  subject text NOT NULL,
  email text NOT NULL,
  is_owner boolean NOT NULL,
  refresh_token bytea,
  check_after timestamptz,
  PRIMARY KEY (id)
);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    PERFORM create_reference_table('members');
    PERFORM create_reference_table('people');
  END IF;
END
$citus$;

ALTER TABLE members ADD CONSTRAINT members_project_fk
  FOREIGN KEY (project_id) REFERENCES projects (id) ON DELETE CASCADE;
CREATE UNIQUE INDEX members_by_address ON members (project_id, email);
CREATE UNIQUE INDEX members_by_subject ON members (issuer, subject, project_id);
ALTER TABLE people ADD CONSTRAINT people_subject_unique UNIQUE (issuer, subject);
CREATE INDEX people_by_check ON people (check_after) WHERE check_after IS NOT NULL;

ALTER TABLE api_keys ADD COLUMN member_id uuid;

-- Of an owner of the installation, who signed in at the issuer.
ALTER TABLE admin_sessions ADD COLUMN person_id uuid;
