-- What learning spaces learn, and from where.
--
-- learning_spaces.lane_until: a process works with a model for the space until then.
-- space_policies: only of spaces with another policy than the default one. mode: off, suggest (a person approves every
--   statement) or auto. policy: where outcomes stand in the configs of sessions, and budgets.
-- space_sessions: which sessions a space learns from. learnt_seq: up to where rules have read the log; reflected_seq: up
--   to where a model has. due_at: when it is the model's turn, null where nothing waits; asked: somebody wants it now.
--   tools: how often each tool was called. outcome: reward, label and group, where the session has one.
-- skills: what statements are grouped by, or what people upload (source: learnt or written).
-- statements: rule_key: a digest of what makes a statement the same, so that it is stored once. pinned: a person wrote,
--   edited or approved it. supports, contradicts: sessions among its citations. marker: the tool whose call shows that a
--   session followed a procedure.
-- statement_cites: is_origin: the statement was worded from this entry, so it goes when the entry goes.
-- skill_versions: what SKILL.md was. statements: an object whose keys are the ids of the statements in it.
--
-- Rows that name a session have no foreign key to it: they go with it, in slices.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE learning_spaces ADD COLUMN lane_until timestamptz NOT NULL DEFAULT '-infinity';

CREATE TABLE space_policies (
  project_id uuid NOT NULL,
  learning_space_id uuid NOT NULL,
  mode text NOT NULL,
  policy jsonb NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (project_id, learning_space_id)
);

CREATE TABLE space_sessions (
  project_id uuid NOT NULL,
  learning_space_id uuid NOT NULL,
  session_id uuid NOT NULL,
  id uuid NOT NULL,
  status text NOT NULL,
  error text,
  learnt_seq bigint NOT NULL DEFAULT 0,
  reflected_seq bigint NOT NULL DEFAULT 0,
  tools jsonb NOT NULL DEFAULT '{}',
  outcome jsonb,
  asked boolean NOT NULL DEFAULT false,
  due_at timestamptz,
  attempts integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (project_id, session_id, learning_space_id)
);
CREATE INDEX space_sessions_by_space ON space_sessions (project_id, learning_space_id, created_at, session_id);
CREATE INDEX space_sessions_by_due ON space_sessions (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE skills (
  project_id uuid NOT NULL,
  id uuid NOT NULL,
  user_id uuid,
  learning_space_id uuid,
  name text NOT NULL,
  description text NOT NULL,
  source text NOT NULL,
  meta jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (project_id, id)
);
CREATE UNIQUE INDEX skills_of_space ON skills (project_id, learning_space_id, name) WHERE learning_space_id IS NOT NULL;
CREATE INDEX skills_by_created ON skills (project_id, created_at, id);
CREATE INDEX skills_by_user ON skills (project_id, user_id, created_at, id);

CREATE TABLE statements (
  project_id uuid NOT NULL,
  learning_space_id uuid NOT NULL,
  id uuid NOT NULL,
  skill_id uuid NOT NULL,
  rule_key text,
  statement_kind text NOT NULL,
  state text NOT NULL,
  author text NOT NULL,
  pinned boolean NOT NULL,
  text text NOT NULL,
  marker text,
  supports integer NOT NULL,
  contradicts integer NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (project_id, id)
);
CREATE INDEX statements_of_space ON statements (project_id, learning_space_id, created_at, id);
CREATE UNIQUE INDEX statements_by_rule ON statements (project_id, learning_space_id, rule_key);

CREATE TABLE statement_cites (
  project_id uuid NOT NULL,
  learning_space_id uuid NOT NULL,
  statement_id uuid NOT NULL,
  session_id uuid NOT NULL,
  seq bigint NOT NULL,
  polarity text NOT NULL,
  quote text NOT NULL,
  is_origin boolean NOT NULL,
  PRIMARY KEY (project_id, statement_id, session_id, seq)
);
CREATE INDEX statement_cites_of_session ON statement_cites (project_id, session_id);
CREATE INDEX statement_cites_of_space ON statement_cites (project_id, learning_space_id, statement_id, session_id, seq);

CREATE TABLE statement_feedback (
  project_id uuid NOT NULL,
  learning_space_id uuid NOT NULL,
  statement_id uuid NOT NULL,
  session_id uuid NOT NULL,
  helped boolean NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (project_id, statement_id, session_id)
);
CREATE INDEX statement_feedback_of_session ON statement_feedback (project_id, session_id);
CREATE INDEX statement_feedback_of_space ON statement_feedback (project_id, learning_space_id, statement_id, session_id);

CREATE TABLE skill_versions (
  project_id uuid NOT NULL,
  learning_space_id uuid NOT NULL,
  id uuid NOT NULL,
  skill_id uuid NOT NULL,
  author text NOT NULL,
  reason text NOT NULL,
  statements jsonb NOT NULL,
  text text,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (project_id, id)
);
CREATE INDEX skill_versions_of_space ON skill_versions (project_id, learning_space_id, created_at, id);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves these with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('space_policies', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('space_sessions', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('skills', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('statements', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('statement_cites', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('statement_feedback', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('skill_versions', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;

ALTER TABLE space_policies ADD CONSTRAINT space_policies_space_fk
  FOREIGN KEY (project_id, learning_space_id) REFERENCES learning_spaces (project_id, id);
ALTER TABLE space_sessions ADD CONSTRAINT space_sessions_space_fk
  FOREIGN KEY (project_id, learning_space_id) REFERENCES learning_spaces (project_id, id);
ALTER TABLE statements ADD CONSTRAINT statements_space_fk
  FOREIGN KEY (project_id, learning_space_id) REFERENCES learning_spaces (project_id, id);
ALTER TABLE skills ADD CONSTRAINT skills_user_fk
  FOREIGN KEY (project_id, user_id) REFERENCES users (project_id, id);
