import { ORPHAN } from '@annals/kits/lifecycle/table.js'
import type { Module } from '@annals/kits/module.js'
import { callsConsumer } from './calls_consumer.js'
import { INDEX_CALL_ROWS } from './tool_queries.js'
import { indexCallsOnThread } from './tool_work.js'

const DERIVED = { erased_with: 'session', counted: false, exported: false, is_derived: true } as const

export const TOOLS_MODULE: Module = {
  name: 'tools',
  open: (kits) => ({
    routes: async () => (await import('./tool_routes.js')).toolRoutes(kits),
    consumers: [callsConsumer(kits.background.database, indexCallsOnThread(kits.thread))],
  }),
  functions: [INDEX_CALL_ROWS],
  tables: [
    {
      ...DERIVED,
      name: 'tool_calls',
      kind: 'tool_call',
      key: ['session_id', 'number'],
      columns: { session_id: 'uuid', number: 'bigint' },
      checks: {
        tool_call_stray: {
          session: 't.session_id',
          place: "'tool_calls, number ' || t.number",
          where: `NOT EXISTS (SELECT FROM entries e WHERE e.project_id = $1 AND e.session_id = t.session_id AND e.seq = t.seq OFFSET 0)`,
          detail: "'the log does not have its entry, seq ' || t.seq",
          means: 'figures of tools count a call that the log does not have',
          todo: ORPHAN,
        },
      },
    },
    {
      ...DERIVED,
      name: 'session_readings',
      kind: 'session_reading',
      key: ['session_id'],
      columns: { session_id: 'uuid' },
      checks: {},
    },
  ],
}
