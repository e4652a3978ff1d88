import type { Annals } from '@annals/client'
import type { McpServer } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { addTool, SessionId } from './tools.js'

const IdempotencyKey = z.string().min(1).max(255).optional()

/** The tool that writes: an event at the end of a session. */
export function addEventTool(server: McpServer, annals: Annals): void {
  addTool(server, {
    name: 'append_event',
    title: 'Append an event',
    description:
      'Appends an event to a session. Once answered, it is durable; nothing that is stored changes.',
    writes: true,
    input: {
      session_id: SessionId,
      type: z.string().min(1).describe('What kind of event it is, such as note or review'),
      data: z.record(z.string(), z.unknown()).describe('Any JSON object'),
      if_match: z.int().min(0).optional().describe("Only if the session's last seq is still this one"),
      idempotency_key: IdempotencyKey.describe(
        'Calling again with the same key and the same event stores nothing more',
      ),
    },
    work: async ({ session_id, type, data, ...options }) => {
      const { id, seq, created_at } = await annals.sessions.append(session_id, { type, data }, options)
      return { id, seq, at: created_at }
    },
  })
}
