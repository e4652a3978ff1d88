import type { Annals } from '@annals/client'
import type { McpServer } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { ANSWER_LENGTH_MAX, Room } from './shortened.js'
import { addTool, PAGED, shownPage, User } from './tools.js'

const SpaceId = z.uuid().describe("The learning space's id, as list_learning_spaces shows it")

/** The tools that look at what was learnt. */
export function addSpaceTools(server: McpServer, annals: Annals): void {
  const spaces = annals.learningSpaces
  addTool(server, {
    name: 'list_learning_spaces',
    title: 'List learning spaces',
    description: 'The learning spaces of the project, or of one of its users, newest first, page by page.',
    input: {
      user: User.optional(),
      meta: z.record(z.string(), z.unknown()).optional().describe('Only those whose meta contains this'),
      ...PAGED,
    },
    work: async ({ user, meta, limit, cursor }) => {
      const query = { user, filter_by_meta: meta, time_desc: true }
      const { shown, next_cursor } = await shownPage(
        limit,
        (items) => spaces.list({ ...query, limit: items }).page(cursor),
        (space, room) => ({ ...space, meta: room.value(space.meta) }),
      )
      return { learning_spaces: shown, next_cursor }
    },
  })
  addTool(server, {
    name: 'get_context',
    title: 'Get what was learnt for a task',
    description:
      'The active statements of a learning space that fit a task, as text for a prompt, with their ids.',
    input: {
      learning_space_id: SpaceId,
      q: z.string().max(4_000).optional().describe('Words of the task: what shares them comes first'),
      max_tokens: z.int().min(1).max(10_000).default(1_000),
    },
    work: async ({ learning_space_id, q, max_tokens }) => {
      const { text, ids } = await spaces.context(learning_space_id, { q, max_tokens })
      return { text: new Room(ANSWER_LENGTH_MAX).text(text), ids }
    },
  })
  addTool(server, {
    name: 'find_statements',
    title: 'Find statements',
    description:
      'What a learning space has learnt, page by page, each statement with the entries that it cites.',
    input: {
      learning_space_id: SpaceId,
      state: z.enum(['proposed', 'active', 'conflict', 'retired']).default('active'),
      ...PAGED,
    },
    work: async ({ learning_space_id, state, limit, cursor }) => {
      const query = { state, kind: undefined, skill: undefined, time_desc: true, cursor: undefined }
      const { shown, next_cursor } = await shownPage(
        limit,
        (items) => spaces.statements(learning_space_id, { ...query, limit: items }).page(cursor),
        (statement, room) => room.value(statement),
      )
      return { statements: shown, next_cursor }
    },
  })
}
