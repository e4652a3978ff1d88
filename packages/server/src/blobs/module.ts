import type { Module } from '../http/module.js'
import { ADD_BLOB_CHUNK, COLLECT_BLOBS, FINISH_BLOB, RELEASE_BLOBS, TOUCH_BLOB } from './blob_queries.js'
import { eraseSomeBlobs, releaseSome } from './erase_blobs.js'

/** Attachments: bytes that entries refer to by their hash. */
export const BLOBS_MODULE: Module = {
  name: 'blobs',
  routes: async () => (await import('./all_blob_routes.js')).BLOB_ROUTES,
  functions: [ADD_BLOB_CHUNK, COLLECT_BLOBS, FINISH_BLOB, RELEASE_BLOBS, TOUCH_BLOB],
  tables: [
    {
      name: 'blobs',
      kind: 'blob',
      key: ['id'],
      columns: { id: 'uuid', sha256: 'text?', bytes: 'bigint', created_at: 'time' },
      erased_with: 'project',
      counted: true,
      exported: false,
      checks: {},
      own: { eraseSome: eraseSomeBlobs },
    },
    { name: 'blob_chunks', handled: 'With their blob in all respects; they go with it by a foreign key.' },
    {
      name: 'blob_references',
      kind: 'blob_reference',
      key: ['owner_id', 'seq', 'sha256'],
      columns: { owner_id: 'uuid', seq: 'bigint', sha256: 'text' },
      erased_with: 'any',
      owner_column: 'owner_id',
      counted: false,
      exported: false,
      is_derived: true,
      checks: {},
      own: { eraseSomeOf: releaseSome },
    },
  ],
}
