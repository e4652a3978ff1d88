import type { Module } from '@annals/kits/module.js'

export const EXPORTS_MODULE: Module = {
  name: 'exports',
  tables: [],
  open: ({ thread }) => ({
    routes: async () => (await import('./export_routes.js')).exportRoutes({ thread }),
  }),
}
