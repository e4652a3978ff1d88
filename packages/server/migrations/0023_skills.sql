-- Skills that people write, and in which learning spaces they are.
--
-- skill_files: what a written skill has; the bytes are blobs, to which blob_references with seq 0 refer for the skill.
-- space_skills: written skills that somebody included in a space. A learnt one is in the space that learnt it.
-- A user, or the project, has one written skill of a name, so that an upload that is sent again is not stored twice.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

CREATE UNIQUE INDEX skills_of_user ON skills (project_id, user_id, name) WHERE learning_space_id IS NULL AND user_id IS NOT NULL;
CREATE UNIQUE INDEX skills_of_project ON skills (project_id, name) WHERE learning_space_id IS NULL AND user_id IS NULL;

CREATE TABLE skill_files (
  project_id uuid NOT NULL,
  skill_id uuid NOT NULL,
  path text NOT NULL,
  mime text NOT NULL,
  is_text boolean NOT NULL,
  bytes bigint NOT NULL,
  sha256 text NOT NULL,
  PRIMARY KEY (project_id, skill_id, path)
);

CREATE TABLE space_skills (
  project_id uuid NOT NULL,
  learning_space_id uuid NOT NULL,
  skill_id uuid NOT NULL,
  id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (project_id, learning_space_id, skill_id)
);
CREATE INDEX space_skills_of_skill ON space_skills (project_id, skill_id);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves these with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('skill_files', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('space_skills', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;

ALTER TABLE skill_files ADD CONSTRAINT skill_files_skill_fk
  FOREIGN KEY (project_id, skill_id) REFERENCES skills (project_id, id);
ALTER TABLE space_skills ADD CONSTRAINT space_skills_space_fk
  FOREIGN KEY (project_id, learning_space_id) REFERENCES learning_spaces (project_id, id);
