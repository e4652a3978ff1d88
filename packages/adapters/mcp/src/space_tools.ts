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

const SpaceId = z.uuid().describe("The learning space's id, as list_learning_spaces shows it")

const GetContext = z.strictObject({
  learning_space_id: SpaceId,
  q: z.string().max(4_000).optional().describe('Words of the task: what shares them comes first'),
  max_tokens: z.int().min(1).max(10_000).default(1_000),
})

const FindStatements = z.strictObject({
  learning_space_id: SpaceId,
  state: z.enum(['proposed', 'active', 'conflict', 'retired']).default('active'),
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
  server.registerTool(
    'get_context',
    {
      title: 'Get what was learnt for a task',
      description:
        'The active statements of a learning space that fit a task, as text for a prompt, with their ids.',
      inputSchema: GetContext,
      annotations: READS,
    },
    ({ learning_space_id, q, max_tokens }) =>
      answerOf(async () => {
        const context = await annals.learningSpaces.context(learning_space_id, { q, max_tokens })
        return { text: new Room(ANSWER_LENGTH_MAX).text(context.text), ids: context.ids }
      }),
  )
  server.registerTool(
    'find_statements',
    {
      title: 'Find statements',
      description:
        'What a learning space has learnt, page by page, each statement with the entries that it cites.',
      inputSchema: FindStatements,
      annotations: READS,
    },
    (asked) => answerOf(() => findStatements(annals, asked)),
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

async function findStatements(
  annals: Annals,
  { learning_space_id, state, limit, cursor }: z.output<typeof FindStatements>,
): Promise<object> {
  const query = { state, kind: undefined, skill: undefined, time_desc: true, cursor: undefined }
  const page = await readPage(limit, (items) =>
    annals.learningSpaces.statements(learning_space_id, { ...query, limit: items }).page(cursor),
  )
  const share = ANSWER_LENGTH_MAX / page.items.length
  const statements = page.items.map((statement) => new Room(share).value(statement))
  return { statements, next_cursor: page.has_more ? page.next_cursor : null }
}
