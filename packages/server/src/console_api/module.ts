import type { Module } from '../module.js'
import { PROJECTS_MODULE } from '../projects/module.js'

/** The console: its page, how a browser signs in, and the data that only it shows. */
export const CONSOLE_MODULE: Module = {
  name: 'console',
  tables: [],
  open: (kits, opened) => {
    const { tokens, adminSessions } = opened(PROJECTS_MODULE)
    return {
      routes: async () => {
        const { consoleRoutes } = await import('./console_routes.js')
        const parts = { ...kits, tokens, adminSessions, refuse: () => undefined }
        return { open: (app) => consoleRoutes(app, parts) }
      },
    }
  },
}
