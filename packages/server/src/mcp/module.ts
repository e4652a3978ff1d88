import type { Module } from '@annals/kits/module.js'

export const MCP_MODULE: Module = {
  name: 'mcp',
  tables: [],
  open: ({ config }) => ({
    routes: async () => {
      const { mcpRoutes } = await import('./mcp_routes.js')
      return { keyed: (app) => mcpRoutes(app, config.cors_origins) }
    },
  }),
}
