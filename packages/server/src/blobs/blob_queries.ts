import { askingEveryProject, planned, prepared } from '@annals/kits/postgres/statement.js'
import { storedFunctionIn, storedInsert } from '@annals/kits/postgres/stored_function.js'

const KEPT = "interval '24 hours'"

/** References, and with each a blob, that one transaction deletes at most. */
export const RELEASED_AT_ONCE_MAX = 16
/** Bytes of blobs that one transaction deletes at most, a larger blob aside. */
export const DELETED_BYTES_MAX = 256 * 1024 * 1024

const ADD_CHUNK = `
  IF p_n = 0 THEN
    INSERT INTO blobs AS b (project_id, id, bytes, created_at, unreferenced_since) VALUES (p_project, p_id, 0, now(), now());
  END IF;
  IF octet_length(p_data) > 0 THEN
    INSERT INTO blob_chunks AS c (project_id, blob_id, n, data) VALUES (p_project, p_id, p_n, p_data);
  END IF;`

const DELETE_UPLOAD = `
  DELETE FROM blobs AS b WHERE b.project_id = p_project AND b.id = p_id AND b.sha256 IS NULL RETURNING b.in_object_store INTO is_object;
  IF is_object THEN
    INSERT INTO discarded_objects AS d (project_id, id, discarded_at) VALUES (p_project, p_id, now());
  END IF;`

export const ADD_BLOB_CHUNK = storedFunctionIn('blobs/add_blob_chunk.sql', {
  add_chunk: ADD_CHUNK,
})

export const FINISH_BLOB = storedFunctionIn('blobs/finish_blob.sql', {
  add_chunk: ADD_CHUNK,
  delete_upload: DELETE_UPLOAD,
})

export const TOUCH_BLOB = storedFunctionIn('blobs/touch_blob.sql')

export const DISCARD_UPLOAD = storedFunctionIn('blobs/discard_upload.sql', {
  delete_upload: DELETE_UPLOAD,
})

export const FIND_BLOBS = prepared(
  'find_blobs',
  'SELECT b.sha256, b.id, b.bytes, b.in_object_store FROM blobs b WHERE b.project_id = $1 AND b.sha256 = ANY ($2::text[])',
)

const OF_SESSION = 'EXISTS (SELECT FROM sessions s WHERE s.project_id = $1 AND s.id = $2)'
const OF_SKILL = 'EXISTS (SELECT FROM skills k WHERE k.project_id = $1 AND k.id = $2)'

/** The same of one blob. The owner goes at once, and its references in slices. */
const findBlobOf = (name: string, isThere: string) =>
  prepared(
    name,
    `
SELECT b.sha256, b.id, b.bytes, b.in_object_store FROM blobs b
WHERE b.project_id = $1 AND b.sha256 = $3 AND ${isThere}
AND EXISTS (
  SELECT FROM blob_references r WHERE r.project_id = $1 AND r.owner_id = $2 AND r.sha256 = $3)`,
  )

/** Parameters of each: $1 project, $2 what refers to it, $3 hash. */
export const FIND_BLOB_OF = {
  session: findBlobOf('find_blob_of_session', OF_SESSION),
  session_or_skill: findBlobOf('find_blob_of_owner', `(${OF_SESSION} OR ${OF_SKILL})`),
} as const

export const FIND_ASSET_URL_SECRET = planned(
  'find_asset_url_secret',
  'SELECT a.secret FROM asset_url_secrets a',
)

/** Rows: data in hex. Parameters: $1 project, $2 id of the blob, $3 first n, $4 last n. */
export const READ_BLOB_CHUNKS = prepared(
  'read_blob_chunks',
  `
SELECT encode(c.data, 'hex') AS data FROM blob_chunks c
WHERE c.project_id = $1 AND c.blob_id = $2 AND c.n BETWEEN $3 AND $4 ORDER BY c.n`,
)

/** Notes some objects, each by a statement that one machine of a cluster carries out. */
const NOTE_EACH = `
  FOREACH object IN ARRAY coalesce(objects, '{}') LOOP
    INSERT INTO discarded_objects AS d (project_id, id, discarded_at) VALUES (p_project, object, now());
  END LOOP;`

/** Deletes those of some blobs, in `hashes`, that nothing refers to any longer. Their rows are locked by hash. */
const DELETE_UNREFERENCED = `
  SELECT array_agg(l.id) INTO locked FROM (
    SELECT b.id FROM blobs b WHERE b.project_id = p_project AND b.sha256 = ANY (hashes) ORDER BY b.sha256 FOR UPDATE
  ) l;
  WITH gone AS (
    DELETE FROM blobs AS b WHERE b.project_id = p_project AND b.id = ANY (locked) AND NOT EXISTS (
      SELECT FROM blob_references r WHERE r.project_id = p_project AND r.sha256 = b.sha256)
    RETURNING b.id, b.in_object_store
  )
  SELECT count(*), array_agg(g.id) FILTER (WHERE g.in_object_store) INTO deleted, objects FROM gone g;${NOTE_EACH}`

export const RELEASE_BLOBS = storedFunctionIn('blobs/release_blobs.sql', {
  delete_unreferenced: DELETE_UNREFERENCED,
})

export const COLLECT_BLOBS = storedFunctionIn('blobs/collect_blobs.sql', {
  kept: KEPT,
  note_each: NOTE_EACH,
})

/** Rows: project_id. On a cluster it asks all machines. */
export const FIND_PROJECTS_WITH_OLD_BLOBS = askingEveryProject(
  prepared,
  'find_projects_with_old_blobs',
  `SELECT b.project_id FROM {blobs} b WHERE b.unreferenced_since < now() - ${KEPT} GROUP BY b.project_id ORDER BY b.project_id`,
)

/** Deletes some of a project's blobs, with which it is being erased. Rows: id, in_object_store. Parameters: $1 project, $2 ids, $3 bytes. */
export const ERASE_BLOBS = prepared(
  'erase_blobs',
  `
WITH erased AS (
  SELECT b.id FROM (
    SELECT t.id, sum(t.bytes) OVER (ORDER BY t.id) - t.bytes AS bytes_before
    FROM blobs t WHERE t.project_id = $1 AND t.id = ANY ($2::uuid[])
  ) b WHERE b.bytes_before < $3
)
DELETE FROM blobs AS d WHERE d.project_id = $1 AND d.id IN (SELECT s.id FROM erased s) RETURNING d.id, d.in_object_store`,
)

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
export const FIND_PROJECTS_WITH_DISCARDED_OBJECTS = askingEveryProject(
  prepared,
  'find_projects_with_discarded_objects',
  'SELECT d.project_id FROM {discarded_objects} d GROUP BY d.project_id ORDER BY d.project_id',
)

export const FORGET_OBJECT = prepared(
  'forget_object',
  'DELETE FROM discarded_objects AS d WHERE d.project_id = $1 AND d.id = $2',
)

export const NOTE_OBJECTS = storedInsert(
  'note_objects',
  ['uuid[]'],
  'INSERT INTO discarded_objects AS d (project_id, id, discarded_at) SELECT $1, u.id, now() FROM unnest($2::uuid[]) AS u (id)',
)

/** Of advisory locks: a project whose objects are kept is the second number. Both are asked of the coordinator of a cluster. */
const OBJECTS_KEPT = `hashtext('annals: objects are kept')`

/** Keeps the objects of a project until the transaction ends. Parameters: $1 the project, in a word that is no id. */
export const KEEP_OBJECTS = planned(
  'keep_objects',
  `SELECT pg_advisory_xact_lock_shared(${OBJECTS_KEPT}, hashtext($1))`,
)

/** Row: kept. Parameters: as there. */
export const ARE_OBJECTS_KEPT = planned(
  'are_objects_kept',
  `
SELECT EXISTS (
  SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
  WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.classid = ${OBJECTS_KEPT}::oid AND l.objid = hashtext($1)::oid) AS kept`,
)
