import type { Annals } from '@annals/client'
import type { McpServer } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { answerOf, readPage } from './answers.js'
import { ANSWER_LENGTH_MAX, Room } from './shortened.js'
import { READS } from './tool_inputs.js'

const ListSpaces = z.strictObject({
  user: z.string().min(1).max(256).optional().describe("Only this user's, by the project's own identifier"),
  meta: z.record(z.string(), z.unknown()).optional().describe('Only those whose meta contains this'),
  limit: z.int().min(1).max(50).default(20),
  cursor: z.string().max(2_000).optional().describe('The next_cursor of the page before'),
})

/** The tools that look at what was learnt. */
export function addSpaceTools(server: McpServer, annals: Annals): void {
  server.registerTool(
    'list_learning_spaces',
    {
      title: 'List learning spaces',
      description: 'The learning spaces of the project, or of one of its users, newest first, page by page.',
      inputSchema: ListSpaces,
      annotations: READS,
    },
    (asked) => answerOf(() => listSpaces(annals, asked)),
  )
}

async function listSpaces(
  annals: Annals,
  { user, meta, limit, cursor }: z.output<typeof ListSpaces>,
): Promise<object> {
  const query = { user, filter_by_meta: meta, time_desc: true }
  const page = await readPage(limit, (items) =>
    annals.learningSpaces.list({ ...query, limit: items }).page(cursor),
  )
  const share = ANSWER_LENGTH_MAX / page.items.length
  const learning_spaces = page.items.map((space) => ({ ...space, meta: new Room(share).value(space.meta) }))
  return { learning_spaces, next_cursor: page.has_more ? page.next_cursor : null }
}
