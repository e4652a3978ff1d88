import { BLOBS_OF_ENTRY, LOST, missing, ORPHAN } from '@annals/kits/lifecycle/table.js'
import type { Module, OpenModule } from '@annals/kits/module.js'
import { functionsIn } from '@annals/kits/postgres/stored_function.js'
import { PROJECTS_MODULE } from '../projects/module.js'
import { AssetUrls } from './asset_urls.js'
import * as blobs from './blob_queries.js'
import { discardObjects, eraseSomeBlobs, releaseSome } from './discard_blobs.js'
import type { PublicUrlMaker } from './public_urls.js'

export interface Blobs extends OpenModule {
  urls: PublicUrlMaker
}

export const BLOBS_MODULE: Module<Blobs> = {
  name: 'blobs',
  open: ({ config, database, reserved }, opened) => {
    const { usage } = opened(PROJECTS_MODULE)
    const urls = { config, assets: new AssetUrls(reserved) }
    return {
      urls,
      routes: async () => (await import('./blob_routes.js')).blobRoutes({ ...urls, database, usage }),
    }
  },
  functions: functionsIn(blobs),
  tables: [
    {
      name: 'blobs',
      kind: 'blob',
      key: ['id'],
      columns: { id: 'uuid', sha256: 'text', bytes: 'bigint', created_at: 'time' },
      erased_with: 'project',
      counted: true,
      exported: true,
      checks: {
        blob_kept_for_nothing: {
          place: "'blob ' || t.id",
          where: `t.unreferenced_since IS NULL AND NOT EXISTS (
            SELECT FROM blob_references r WHERE r.project_id = $1 AND r.sha256 = t.sha256)`,
          detail: `'nothing refers to its ' || t.bytes || ' bytes'`,
          means: 'a blob that nothing refers to is never deleted',
          todo: ORPHAN,
        },
      },
      own: { eraseSome: eraseSomeBlobs, settle: discardObjects },
    },
    {
      // They go with their blob by a foreign key, and are exported with it. What is said here is verified.
      name: 'blob_chunks',
      kind: 'blob_chunk',
      key: ['blob_id', 'n'],
      columns: { blob_id: 'uuid', n: 'integer' },
      erased_with: 'blob',
      counted: false,
      exported: false,
      is_derived: true,
      checks: {},
    },
    {
      name: 'discarded_objects',
      handled: 'Written with the deletion of a blob, until its object has gone; it may outlive its project.',
    },
    {
      name: 'asset_url_secrets',
      is_reference: true,
      handled:
        'Belongs to the installation: neither erased nor exported. Its signatures are valid for minutes.',
    },
  ],
}

/** References to blobs. The module stands after those that own references, so that an import restores owners first. */
export const BLOB_REFERENCES_MODULE: Module = {
  name: 'blob references',
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
        blob_reference_without_file: {
          session: 'NULL',
          place: "'skill ' || t.owner_id",
          where: `t.seq = 0 AND EXISTS (SELECT FROM skills k WHERE k.project_id = $1 AND k.id = t.owner_id) AND NOT EXISTS (
            SELECT FROM skill_files f WHERE f.project_id = $1 AND f.skill_id = t.owner_id AND f.sha256 = t.sha256)`,
          detail: `'the skill has no file with the bytes of ' || t.sha256`,
          means: 'a skill has lost a file',
          todo: LOST,
        },
      },
      own: { eraseSomeOf: releaseSome },
    },
  ],
}
