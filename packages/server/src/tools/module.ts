import { ORPHAN } from '@annals/kits/lifecycle/table.js'
import type { Module } from '@annals/kits/module.js'
import { callsConsumer } from './calls_consumer.js'
import { ARE_CALLS_KEPT, INDEX_CALL_ROWS, READ_ANEW } from './tool_queries.js'
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
        tool_call_gap: {
          session: 't.session_id',
          place: "'tool_calls, number ' || t.number",
          where: `t.number > 1 AND ${ARE_CALLS_KEPT} AND NOT EXISTS (
            SELECT FROM tool_calls c WHERE c.project_id = $1 AND c.session_id = t.session_id AND c.number = t.number - 1 OFFSET 0)`,
          detail: "'the call before it is not there'",
          means: 'figures of tools lack a call',
          todo: READ_ANEW,
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
