-- The first schema: projects and their keys, users, sessions, the session log, learning spaces.
--
-- Why it looks like this:
--   * project_id stands first in every key of tenant data and never changes, so that the same tables can be
--     distributed by it over many machines (Citus) and every statement finds its one shard.
--   * A session is three things with three rhythms: what the caller configured (sessions, seldom written),
--     where its log stands (session_heads, written by every append and therefore narrow), and the log
--     itself (entries, only ever inserted). An append so costs the same whatever the size of configs.
--   * entries has no foreign key: an append locks the session's head row, and deleting a session deletes
--     that row first, which says the same for a fraction of the price.
--   * Constraints are added after distribution, each with a name, one subcommand a statement.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

CREATE TABLE projects (
  id uuid NOT NULL,
  name text NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (id)
);
ALTER TABLE projects ADD CONSTRAINT projects_name_unique UNIQUE (name);

-- Only the SHA-256 of a token is kept. Tokens carry at least 192 random bits, so a slow hash would add cost
-- and no safety. origin says who made it: 'issued' by an operator, 'first_start' or 'environment' by the
-- service itself, which replaces its own when ANNALS_API_KEY changes.
CREATE TABLE api_keys (
  id uuid NOT NULL,
  project_id uuid NOT NULL,
  token_hash bytea NOT NULL,
  name text NOT NULL,
  scopes text[] NOT NULL,
  origin text NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  revoked_at timestamptz,
  PRIMARY KEY (id)
);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_token_hash_unique UNIQUE (token_hash);
CREATE INDEX api_keys_by_project ON api_keys (project_id, created_at, id);

CREATE TABLE users (
  project_id uuid NOT NULL,
  id uuid NOT NULL,
  identifier text NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (project_id, id)
);

CREATE TABLE sessions (
  project_id uuid NOT NULL,
  id uuid NOT NULL,
  user_id uuid,
  configs jsonb NOT NULL,
  disable_task_tracking boolean NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (project_id, id)
);

-- fillfactor: an append updates its session's head in place; with room on the page the update is HOT and
-- touches no index. The vacuum settings clear the dead versions before a page fills up.
CREATE TABLE session_heads (
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  last_seq bigint NOT NULL,
  total_tokens bigint NOT NULL,
  updated_at timestamptz NOT NULL,
  last_message_id uuid,
  PRIMARY KEY (project_id, session_id)
) WITH (fillfactor = 50);

-- data is what the caller sent: an event's data, or a message's blob in its provider's format. Everything
-- else about a message is derived from it. meta is what came with the message, patched_meta what it became;
-- the first is kept because a retried append gets its first answer again. bytes is the length of the JSON
-- text, so that a reader can bound a page's memory without fetching the page.
CREATE TABLE entries (
  project_id uuid NOT NULL,
  session_id uuid NOT NULL,
  seq bigint NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  id uuid NOT NULL,
  parent_id uuid,
  bytes integer NOT NULL,
  tokens integer NOT NULL,
  kind text NOT NULL,
  type text,
  role text,
  format text,
  data jsonb NOT NULL,
  meta jsonb,
  patched_meta jsonb,
  PRIMARY KEY (project_id, session_id, seq)
);

-- owner_id is the session or learning space that the answer speaks of: when it goes, so does the key.
-- An append keeps the seqs that it was answered with; every other operation keeps its answer's text.
CREATE TABLE idempotency_keys (
  project_id uuid NOT NULL,
  key text NOT NULL,
  request_hash text NOT NULL,
  owner_id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  seqs bigint[],
  answer text,
  PRIMARY KEY (project_id, key)
);

CREATE TABLE learning_spaces (
  project_id uuid NOT NULL,
  id uuid NOT NULL,
  user_id uuid,
  meta jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (project_id, id)
);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    PERFORM create_reference_table('projects');
    PERFORM create_reference_table('api_keys');
    PERFORM create_distributed_table('users', 'project_id');
    PERFORM create_distributed_table('sessions', 'project_id', colocate_with => 'users');
    PERFORM create_distributed_table('session_heads', 'project_id', colocate_with => 'users');
    PERFORM create_distributed_table('entries', 'project_id', colocate_with => 'users');
    PERFORM create_distributed_table('idempotency_keys', 'project_id', colocate_with => 'users');
    PERFORM create_distributed_table('learning_spaces', 'project_id', colocate_with => 'users');
  END IF;
END
$citus$;

ALTER TABLE api_keys ADD CONSTRAINT api_keys_project_fk FOREIGN KEY (project_id) REFERENCES projects (id);
ALTER TABLE users ADD CONSTRAINT users_project_fk FOREIGN KEY (project_id) REFERENCES projects (id);
ALTER TABLE users ADD CONSTRAINT users_identifier_unique UNIQUE (project_id, identifier);
ALTER TABLE sessions ADD CONSTRAINT sessions_project_fk FOREIGN KEY (project_id) REFERENCES projects (id);
ALTER TABLE sessions ADD CONSTRAINT sessions_user_fk
  FOREIGN KEY (project_id, user_id) REFERENCES users (project_id, id);
ALTER TABLE session_heads ADD CONSTRAINT session_heads_session_fk
  FOREIGN KEY (project_id, session_id) REFERENCES sessions (project_id, id);
ALTER TABLE learning_spaces ADD CONSTRAINT learning_spaces_project_fk
  FOREIGN KEY (project_id) REFERENCES projects (id);
ALTER TABLE learning_spaces ADD CONSTRAINT learning_spaces_user_fk
  FOREIGN KEY (project_id, user_id) REFERENCES users (project_id, id);

-- An entry is found by its id when a message's meta is patched and when a batch is sent again.
ALTER TABLE entries ADD CONSTRAINT entries_id_unique UNIQUE (project_id, session_id, id);

-- Each list walks one of these in its own order; id breaks ties between equal timestamps.
CREATE INDEX sessions_by_created ON sessions (project_id, created_at, id);
CREATE INDEX sessions_by_user_created ON sessions (project_id, user_id, created_at, id);
CREATE INDEX sessions_by_configs ON sessions USING gin (configs jsonb_path_ops);
CREATE INDEX users_by_created ON users (project_id, created_at, id);
CREATE INDEX learning_spaces_by_created ON learning_spaces (project_id, created_at, id);
CREATE INDEX learning_spaces_by_user_created ON learning_spaces (project_id, user_id, created_at, id);
CREATE INDEX learning_spaces_by_meta ON learning_spaces USING gin (meta jsonb_path_ops);

-- Keys are dropped with their owner and, after their time, by age. Rows arrive in the order of created_at,
-- so a block-range index finds the old ones at almost no cost for each insert.
CREATE INDEX idempotency_keys_by_owner ON idempotency_keys (project_id, owner_id);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys USING brin (created_at) WITH (pages_per_range = 16);
