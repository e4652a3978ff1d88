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
