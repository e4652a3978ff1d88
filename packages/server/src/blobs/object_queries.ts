import { planned, prepared } from '../postgres/statement.js'

/** Begins an upload whose bytes go to the object store. Parameters: $1 project, $2 id. */
export const BEGIN_OBJECT = prepared(
  'begin_object',
  'INSERT INTO blobs AS b (project_id, id, bytes, created_at, in_object_store) VALUES ($1, $2, 0, now(), true)',
)

/** Objects of a project's blobs that are gone. Rows: project_id, id. Parameters: $1 project, $2 how many. */
export const FIND_DISCARDED_OBJECTS = prepared(
  'find_discarded_objects',
  'SELECT d.project_id, d.id FROM discarded_objects d WHERE d.project_id = $1 ORDER BY d.id LIMIT $2',
)

/** Rows: project_id. On a cluster it asks all machines. */
export const FIND_PROJECTS_WITH_DISCARDED_OBJECTS = prepared(
  'find_projects_with_discarded_objects',
  'SELECT d.project_id FROM discarded_objects d GROUP BY d.project_id ORDER BY d.project_id',
)

export const FORGET_OBJECT = prepared(
  'forget_object',
  'DELETE FROM discarded_objects AS d WHERE d.project_id = $1 AND d.id = $2',
)

export const NOTE_OBJECTS = planned(
  'note_objects',
  'INSERT INTO discarded_objects AS d (project_id, id, discarded_at) SELECT $1, u.id, now() FROM unnest($2::uuid[]) AS u (id)',
)

/** Of advisory locks: a project whose objects are kept is the second number. Both are asked of the coordinator of a cluster. */
const KEPT = `hashtext('annals: objects are kept')`

/** Keeps the objects of a project until the transaction ends. Parameters: $1 the project, in a word that is no id. */
export const KEEP_OBJECTS = planned(
  'keep_objects',
  `SELECT pg_advisory_xact_lock_shared(${KEPT}, hashtext($1))`,
)

/** Row: kept. Parameters: as there. */
export const ARE_OBJECTS_KEPT = planned(
  'are_objects_kept',
  `
SELECT EXISTS (
  SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
  WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.classid = ${KEPT}::oid AND l.objid = hashtext($1)::oid) AS kept`,
)
