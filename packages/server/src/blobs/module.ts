import type { Module } from '../http/module.js'
import { BLOBS_OF_ENTRY, missing } from '../lifecycle/verify/check.js'
import { LOST, ORPHAN } from '../lifecycle/verify/meaning.js'
import {
  ADD_BLOB_CHUNK,
  COLLECT_BLOBS,
  DISCARD_UPLOAD,
  FINISH_BLOB,
  RELEASE_BLOBS,
  TOUCH_BLOB,
} from './blob_queries.js'
import { discardObjects } from './discard_objects.js'
import { eraseSomeBlobs, releaseSome } from './erase_blobs.js'
import { exportBlobs } from './transfer/export_blobs.js'
import { BLOB_LINES, restoreBlobs, restoreReferences } from './transfer/restore_blobs.js'
import { verifyObjects } from './verify_objects.js'

/** Attachments: bytes that entries refer to by their hash. */
export const BLOBS_MODULE: Module = {
  name: 'blobs',
  routes: async () => (await import('./all_blob_routes.js')).BLOB_ROUTES,
  functions: [ADD_BLOB_CHUNK, COLLECT_BLOBS, DISCARD_UPLOAD, FINISH_BLOB, RELEASE_BLOBS, TOUCH_BLOB],
  tables: [
    {
      name: 'blobs',
      kind: 'blob',
      key: ['id'],
      columns: { id: 'uuid', sha256: 'text?', bytes: 'bigint', created_at: 'time' },
      erased_with: 'project',
      counted: true,
      exported: true,
      verified_at_once: 8,
      checks: {
        blob_bytes: {
          place: "'blob ' || t.id",
          where: `t.sha256 IS NOT NULL AND NOT t.in_object_store AND NOT EXISTS (
            SELECT FROM (
              SELECT coalesce(sum(octet_length(c.data)), 0) AS bytes,
                encode(sha256(coalesce(string_agg(c.data, ''::bytea ORDER BY c.n), ''::bytea)), 'hex') AS sha256
              FROM blob_chunks c WHERE c.project_id = $1 AND c.blob_id = t.id
            ) s WHERE s.bytes = t.bytes AND s.sha256 = t.sha256)`,
          detail: `'its chunks do not add up to ' || t.bytes || ' bytes with the SHA-256 ' || t.sha256`,
          means: "a blob's bytes are not those of its hash",
          todo: LOST,
        },
      },
      own: {
        eraseSome: eraseSomeBlobs,
        exportBehind: exportBlobs,
        further_lines: BLOB_LINES,
        restore: restoreBlobs,
        settle: discardObjects,
        verifyBeyond: verifyObjects,
      },
    },
    { name: 'blob_chunks', handled: 'With their blob in all respects; they go with it by a foreign key.' },
    {
      name: 'discarded_objects',
      handled: 'Written with the deletion of a blob, until its object has gone; it may outlive its project.',
    },
    {
      name: 'asset_url_secrets',
      is_reference: true,
      handled:
        'Belongs to the installation: neither erased nor exported. What it signs is valid for minutes.',
    },
  ],
}

/** What refers to blobs. It stands behind what owns references, so that an import restores them behind their owners. */
export const BLOB_REFERENCES_MODULE: Module = {
  name: 'blob references',
  functions: [],
  tables: [
    {
      name: 'blob_references',
      kind: 'blob_reference',
      key: ['owner_id', 'seq', 'sha256'],
      columns: { owner_id: 'uuid', seq: 'bigint', sha256: 'text' },
      erased_with: 'any',
      owner_column: 'owner_id',
      counted: false,
      exported: true,
      is_derived: true,
      checks: {
        blob_reference_without_blob: {
          session: 't.owner_id',
          place: "'seq ' || t.seq",
          where: missing('blobs', 't.sha256', 'sha256'),
          detail: `'the project has no blob ' || t.sha256`,
          means: 'an entry refers to a blob that is not there',
          todo: LOST,
        },
        blob_reference_without_entry: {
          session: 't.owner_id',
          place: "'seq ' || t.seq",
          where: `t.seq > 0 AND NOT EXISTS (
            SELECT FROM entries e WHERE e.project_id = $1 AND e.session_id = t.owner_id AND e.seq = t.seq
              AND jsonb_path_query_array(e.data, '${BLOBS_OF_ENTRY}') ? t.sha256)`,
          detail: `'the session has no entry ' || t.seq || ' that names ' || t.sha256`,
          means: 'a blob is kept for an entry that does not exist, or does not name it',
          todo: ORPHAN,
        },
      },
      own: { eraseSomeOf: releaseSome, restore: restoreReferences },
    },
  ],
}
