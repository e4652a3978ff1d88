import type { Annals, Session } from '@annals/client'
import { SessionReader } from '@annals/messages/session'
import type { McpServer } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { answerOf, isTooLarge, readPage } from './answers.js'
import { ANSWER_LENGTH_MAX, Room } from './shortened.js'
import { shownEntry } from './shown_entry.js'
import { addToolCallTool } from './tool_call.js'
import { READS, SessionId } from './tool_inputs.js'

const SESSIONS_MAX = 50
const ENTRIES_MAX = 100
const ENTRIES_DEFAULT = 20

const Order = z.enum(['newest', 'oldest', 'last_activity']).optional().describe('Default: newest')

const ListSessions = z.strictObject({
  user: z.string().min(1).max(256).optional().describe("Only this user's, by the project's own identifier"),
  configs: z.record(z.string(), z.unknown()).optional().describe('Only those whose configs contain this'),
  order: Order,
  limit: z.int().min(1).max(SESSIONS_MAX).default(20),
  cursor: z.string().max(2_000).optional().describe('The next_cursor of the page before'),
})

const ReadSession = z.strictObject({
  session_id: SessionId,
  after_seq: z
    .int()
    .min(0)
    .optional()
    .describe('Read on behind this seq; without it and last, from the start'),
  last: z.int().min(1).max(ENTRIES_MAX).optional().describe('The newest so many entries instead'),
  limit: z.int().min(1).max(ENTRIES_MAX).default(ENTRIES_DEFAULT).describe('Fewer entries show more of each'),
})

/** The tools that find and read sessions. */
export function addSessionTools(server: McpServer, annals: Annals): void {
  server.registerTool(
    'list_sessions',
    {
      title: 'List sessions',
      description: 'The sessions of the project with their configs, page by page.',
      inputSchema: ListSessions,
      annotations: READS,
    },
    (asked) => answerOf(() => listSessions(annals, asked)),
  )
  server.registerTool(
    'read_session',
    {
      title: 'Read a session',
      description:
        'The entries of a session in order: messages, events, tool calls and their results. Long texts are cut and say how long they are; a smaller limit shows more of each. The answer says where to read on.',
      inputSchema: ReadSession,
      annotations: READS,
    },
    (asked) => answerOf(() => readSession(annals, asked)),
  )
  addToolCallTool(server, annals)
}

async function listSessions(
  annals: Annals,
  { user, configs, order = 'newest', limit, cursor }: z.output<typeof ListSessions>,
): Promise<object> {
  const by_activity = order === 'last_activity'
  const query = {
    user,
    filter_by_configs: configs,
    time_desc: order !== 'oldest',
    ...(by_activity && { order_by: 'last_activity' as const }),
  }
  const page = await readPage(limit, (items) => annals.sessions.list({ ...query, limit: items }).page(cursor))
  const share = ANSWER_LENGTH_MAX / page.items.length
  const sessions = page.items.map((session) => shownSession(session, share))
  return { sessions, next_cursor: page.has_more ? page.next_cursor : null }
}

function shownSession({ id, user_id, configs, created_at, updated_at }: Session, share: number): object {
  return { id, user_id, created_at, updated_at, configs: new Room(share).value(configs) }
}

/** A page of a session as its readers see it. @throws AnnalsError */
export async function readSession(
  annals: Annals,
  { session_id, after_seq = 0, last, limit }: z.output<typeof ReadSession>,
): Promise<object> {
  if (last !== undefined) return readLast(annals, session_id, last)
  try {
    const page = await readPage(limit, (items) =>
      annals.sessions.timeline(session_id, { after_seq, limit: items }).page(),
    )
    const next = page.has_more ? { next_after_seq: page.items.at(-1)!.seq } : {}
    return { entries: shownEntries(page.items), has_more: page.has_more, ...next }
  } catch (error) {
    if (!isTooLarge(error)) throw error
    // Seqs have no gaps.
    const seq = after_seq + 1
    const entries = [{ seq, left_out: 'Too large for a tool to read. Read it through the API.' }]
    return { entries, has_more: true, next_after_seq: seq }
  }
}

async function readLast(annals: Annals, session_id: string, last: number): Promise<object> {
  const page = await readPage(last, (items) =>
    annals.sessions.timeline(session_id, { time_desc: true, limit: items }).page(),
  )
  const entries = shownEntries(page.items.reverse())
  return { entries, has_more: false, has_earlier: page.has_more }
}

function shownEntries(items: Parameters<typeof shownEntry>[1][]): object[] {
  const reader = new SessionReader()
  const share = ANSWER_LENGTH_MAX / items.length
  return items.map((item) => shownEntry(reader, item, share))
}
