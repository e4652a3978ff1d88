import type { Module } from '@annals/kits/module.js'
import { PEOPLE_MODULE } from '../people/module.js'
import { PROJECTS_MODULE } from '../projects/module.js'

export const CONSOLE_MODULE: Module = {
  name: 'console',
  tables: [],
  open: (kits, opened) => {
    const { tokens, adminSessions } = opened(PROJECTS_MODULE)
    const { issuer } = opened(PEOPLE_MODULE)
    return {
      routes: async () => {
        const { consoleRoutes } = await import('./console_routes.js')
        const parts = {
          ...kits,
          tokens,
          adminSessions,
          issuer,
          refuse: () => undefined,
        }
        const oidc = issuer && (await import('./oidc_routes.js'))
        return {
          open: (app) => {
            oidc?.oidcRoutes(app, { ...kits, issuer: issuer!, adminSessions })
            return consoleRoutes(app, parts)
          },
        }
      },
    }
  },
}
