import type { Module } from '../module.js'

/** People: members of projects with their roles, personal tokens, and the issuer at which they sign in. */
export const PEOPLE_MODULE: Module = {
  name: 'people',
  open: (kits) => ({
    routes: async () => (await import('./people_routes.js')).peopleRoutes(kits),
  }),
  tables: [
    {
      name: 'members',
      is_reference: true,
      backed_up: { key: 'id', type: 'uuid', project: 'project_id' },
      handled:
        'They go with their project, and outlive an erased user, who is somebody else. Never exported.',
    },
    {
      name: 'people',
      is_reference: true,
      handled: 'Whoever signs in again is there again. Neither exported nor backed up.',
    },
  ],
}
