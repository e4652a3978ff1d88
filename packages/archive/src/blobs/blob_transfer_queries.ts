import { timestampText } from '@annals/kits/lists/resource_json.js'
import { planned } from '@annals/kits/postgres/statement.js'
import { jsonLine, quoted } from '../columns.js'

const isOf = (owners: string) =>
  `EXISTS (SELECT FROM ${owners} s JOIN users u ON u.project_id = $1 AND u.id = s.user_id
  WHERE s.project_id = $1 AND s.id = r.owner_id AND u.identifier = $2::text)`

/** Whether a reference belongs to a session ($3), or to a session or skill of a user ($2, an identifier); null: any. */
const IN_SCOPE = `($3::uuid IS NULL OR r.owner_id = $3::uuid) AND ($2::text IS NULL OR ${isOf('sessions')} OR ${isOf('skills')})`

/**
 * The next blob of an export. Row: id, sha256, bytes, in_object_store, created_at. Parameters: $1 project, $2 user's
 * identifier or null, $3 session or null, $4 the id to begin after, or null.
 */
export const EXPORT_BLOB = planned(
  'export_blob',
  `
SELECT b.id, b.sha256, b.bytes, b.in_object_store, ${timestampText('b.created_at')} AS created_at
FROM blobs b
WHERE b.project_id = $1 AND b.sha256 IS NOT NULL AND ($4::uuid IS NULL OR b.id > $4::uuid)
  AND (($2::text IS NULL AND $3::uuid IS NULL) OR EXISTS (
    SELECT FROM blob_references r WHERE r.project_id = $1 AND r.sha256 = b.sha256 AND ${IN_SCOPE}))
ORDER BY b.id LIMIT 1`,
)

/**
 * References of sessions and skills, in order. Rows: owner_id, seq, sha256, line. Parameters: $1 project, $2 user's identifier or
 * null, $3 session or null, $4 to $6 the row to begin after, or nulls, $7 how many.
 */
export const EXPORT_REFERENCES = planned(
  'export_blob_references',
  `
SELECT r.owner_id, r.seq, r.sha256,
  ${jsonLine({ kind: `'"blob_reference"'`, owner_id: quoted('r.owner_id'), seq: 'r.seq', sha256: quoted('r.sha256') })} AS line
FROM blob_references r
WHERE r.project_id = $1 AND ($4::uuid IS NULL OR (r.owner_id, r.seq, r.sha256) > ($4::uuid, $5::bigint, $6::text))
  AND ${IN_SCOPE}
ORDER BY r.owner_id, r.seq, r.sha256 LIMIT $7`,
)

/** The blobs of a project by their ids. Rows: as FIND_BLOBS. Parameters: $1 project, $2 id to start after or null, $3 how many. */
export const LIST_BLOBS = planned(
  'list_blobs',
  `
SELECT b.sha256, b.id, b.bytes, b.in_object_store FROM blobs b
WHERE b.project_id = $1 AND b.sha256 IS NOT NULL AND ($2::uuid IS NULL OR b.id > $2)
ORDER BY b.id LIMIT $3`,
)

/** Parameters of these: $1 project, $2 lines as a JSON array. */
export const RESTORE_BLOBS = {
  /** Begins the uploads that chunks belong to, and those of blobs. */
  uploads: planned(
    'restore_blob_uploads',
    `
INSERT INTO blobs AS b (project_id, id, bytes, created_at)
SELECT DISTINCT $1::uuid, coalesce(l ->> 'blob_id', l ->> 'id')::uuid, 0, now() FROM jsonb_array_elements($2::jsonb) AS l
ON CONFLICT DO NOTHING`,
  ),
  chunks: planned(
    'restore_blob_chunks',
    `
INSERT INTO blob_chunks AS c (project_id, blob_id, n, data)
SELECT $1, (l ->> 'blob_id')::uuid, (l ->> 'n')::int, decode(l ->> 'data', 'base64') FROM jsonb_array_elements($2::jsonb) AS l
ON CONFLICT DO NOTHING`,
  ),
  finish: planned(
    'finish_restored_blob',
    `
UPDATE blobs AS b SET sha256 = $3, bytes = $4, created_at = $5
WHERE b.project_id = $1 AND b.id = $2 AND b.sha256 IS NULL RETURNING b.id`,
  ),
  /** Locks the logs that references belong to. $2 sessions. */
  lock: planned(
    'lock_logs_of_restored_references',
    'SELECT h.session_id FROM session_heads h WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[]) ORDER BY h.session_id FOR KEY SHARE',
  ),
  /** The same for skills. $2 skills. */
  lock_skills: planned(
    'lock_skills_of_restored_references',
    'SELECT k.id FROM skills k WHERE k.project_id = $1 AND k.id = ANY ($2::uuid[]) ORDER BY k.id FOR KEY SHARE',
  ),
  /** Those of entries, skills and inputs (under seq 0 of their session) that there are, to blobs that there are. Rows: one for each that was stored. */
  references: planned(
    'restore_blob_references',
    `
INSERT INTO blob_references AS r (project_id, owner_id, seq, sha256)
SELECT $1, (l ->> 'owner_id')::uuid, (l ->> 'seq')::bigint, l ->> 'sha256' FROM jsonb_array_elements($2::jsonb) AS l
WHERE EXISTS (SELECT FROM blobs b WHERE b.project_id = $1 AND b.sha256 = l ->> 'sha256') AND (
  EXISTS (SELECT FROM entries e WHERE e.project_id = $1 AND e.session_id = (l ->> 'owner_id')::uuid AND e.seq = (l ->> 'seq')::bigint)
  OR (l ->> 'seq' = '0' AND (
    EXISTS (SELECT FROM skills k WHERE k.project_id = $1 AND k.id = (l ->> 'owner_id')::uuid)
    OR EXISTS (SELECT FROM session_heads h WHERE h.project_id = $1 AND h.session_id = (l ->> 'owner_id')::uuid))))
ON CONFLICT DO NOTHING RETURNING r.seq`,
  ),
} as const
