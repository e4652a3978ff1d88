import type { Module } from '../module.js'

/** Sessions in the formats of other tools. It has no tables of its own. */
export const EXPORTS_MODULE: Module = {
  name: 'exports',
  tables: [],
  open: ({ thread }) => ({
    routes: async () => (await import('./export_routes.js')).exportRoutes({ thread }),
  }),
}
