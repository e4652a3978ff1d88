import type { Module } from '../module.js'

const USED = {
  ...({ sessions: 'bigint', entries: 'bigint', bytes: 'bigint' } as const),
  ...({ blobs: 'bigint', blob_bytes: 'bigint', model_tokens: 'bigint' } as const),
}

export const PROJECTS_MODULE: Module = {
  name: 'projects',
  routes: async () => (await import('./project_routes.js')).PROJECT_ROUTES,
  tables: [
    {
      name: 'usage_days',
      kind: 'usage_day',
      key: ['day'],
      columns: { day: 'date', ...USED },
      erased_with: 'project',
      counted: false,
      exported: 'in_backups',
      is_derived: true,
      checks: {},
    },
    {
      name: 'projects',
      is_reference: true,
      backed_up: { key: 'id', type: 'uuid', project: 'id', without: ['consumers'] },
      handled: 'The last row that an erasure of the project deletes; an export has its name in the header.',
    },
    {
      name: 'api_keys',
      is_reference: true,
      backed_up: { key: 'id', type: 'uuid', project: 'project_id' },
      handled: 'Deleted first when a project is erased, so that nobody gets in; never exported.',
    },
    {
      name: 'admin_sessions',
      is_reference: true,
      handled: 'Sessions in the console, which end by themselves. Neither exported nor backed up.',
    },
    {
      name: 'audit',
      is_reference: true,
      backed_up: { key: 'seq', type: 'bigint' },
      handled: 'Append-only: it tells who erased a project, too. Never exported with one.',
    },
  ],
}
