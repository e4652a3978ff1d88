import type { Annals } from '@annals/client'
import type { McpServer } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { answerOf, readPage } from './answers.js'
import { READS, SessionId } from './tool_inputs.js'

const Search = z.strictObject({
  q: z.string().min(1).max(1_000).describe('Words; "words in this order"; -without; begin*'),
  session_id: SessionId.optional(),
  user: z.string().min(1).max(256).optional().describe("Only this user's sessions"),
  limit: z.int().min(1).max(50).default(20),
  cursor: z.string().max(2_000).optional().describe('The next_cursor of the page before'),
})

/** The tool that finds entries by their words. A project whose search is off is told so. */
export function addSearchTool(server: McpServer, annals: Annals): void {
  server.registerTool(
    'search',
    {
      title: 'Search all sessions',
      description:
        'Entries of all sessions that have the words, newest first, each with where it is and what is around the words.',
      inputSchema: Search,
      annotations: READS,
    },
    ({ q, limit, cursor, ...query }) =>
      answerOf(async () => {
        const page = await readPage(limit, (items) =>
          annals.search(q, { ...query, limit: items }).page(cursor),
        )
        const found = page.items.map(({ snippet, ...entry }) => ({ ...entry, text: snippet.text }))
        const { indexed_through, has_more, next_cursor } = page
        return { found, indexed_through, next_cursor: has_more ? next_cursor : null }
      }),
  )
}
