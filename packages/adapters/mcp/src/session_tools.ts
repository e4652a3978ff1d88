import type { Annals } from '@annals/client'
import { SessionReader } from '@annals/messages/session'
import type { McpServer } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { ANSWER_LENGTH_MAX, Room } from './shortened.js'
import { shownEntry } from './shown_entry.js'
import { addToolCallTool } from './tool_call.js'
import { addTool, isTooLarge, PAGED, readPage, SessionId, shownPage, User } from './tools.js'

const Order = z.enum(['newest', 'oldest', 'last_activity']).optional()
/** About as many as an answer may have characters for. */
const CONTEXT_TOKENS_MAX = 12_000
/** Characters for what a context says of itself: what is left out, what was added, and names of tools. */
const NOTES_LENGTH_MAX = 4_000
const Entries = z.int().min(1).max(100)
const Seq = z.int().min(0).optional()
const IdempotencyKey = z.string().min(1).max(255).optional()

interface AskedSession {
  session_id: string
  after_seq?: number | undefined
  last?: number | undefined
  limit: number
}

/** The tools that find and read sessions. */
export function addSessionTools(server: McpServer, annals: Annals): void {
  addTool(server, {
    name: 'list_sessions',
    title: 'List sessions',
    description: 'The sessions of the project with their configs, page by page.',
    input: {
      user: User.optional(),
      configs: z.record(z.string(), z.unknown()).optional().describe('Only those whose configs contain this'),
      order: Order.describe('Default: newest'),
      ...PAGED,
    },
    work: async ({ user, configs, order = 'newest', limit, cursor }) => {
      const by_activity = order === 'last_activity' && { order_by: order }
      const query = { user, filter_by_configs: configs, time_desc: order !== 'oldest', ...by_activity }
      const { shown, next_cursor } = await shownPage(
        limit,
        (items) => annals.sessions.list({ ...query, limit: items }).page(cursor),
        ({ id, user_id, configs, created_at, updated_at }, room) => {
          return { id, user_id, created_at, updated_at, configs: room.value(configs) }
        },
      )
      return { sessions: shown, next_cursor }
    },
  })
  addTool(server, {
    name: 'read_session',
    title: 'Read a session',
    description:
      'The entries of a session in order: messages, events, tool calls and their results. Long texts are cut and say how long they are; a smaller limit shows more of each. The answer says where to read on.',
    input: {
      session_id: SessionId,
      after_seq: Seq.describe('Continue after this seq; without it and last, read from the start'),
      last: Entries.optional().describe('The newest so many entries instead'),
      limit: Entries.default(20).describe('Fewer entries show more of each'),
    },
    work: (asked) => readSession(annals, asked),
  })
  addContextTool(server, annals)
  addToolCallTool(server, annals)
  addAskTool(server, annals)
  addSearchTool(server, annals)
}

function addContextTool(server: McpServer, annals: Annals): void {
  addTool(server, {
    name: 'read_context',
    title: 'Read the context of a session',
    description:
      'The messages that would be sent to a model next, in the format of OpenAI: the newest that fit max_tokens. A summary stands for what was compacted; compaction_seq is its entry. omitted and added say what of the session is not in the list, and what is in it that nobody said; names has the names of tools that had to be changed. Long messages are cut and say how long they are.',
    input: {
      session_id: SessionId,
      max_tokens: z.int().min(1).max(CONTEXT_TOKENS_MAX).default(CONTEXT_TOKENS_MAX),
    },
    work: async ({ session_id, max_tokens }) => {
      const context = await annals.sessions.context(session_id, { max_tokens })
      const { items, ids, tokens, from_seq, compaction_seq, omitted, added, names } = context
      const share = ANSWER_LENGTH_MAX / items.length
      const messages = items.map((item, index) => ({ id: ids[index], message: new Room(share).value(item) }))
      const notes = new Room(NOTES_LENGTH_MAX)
      const [left_out, put_in, named] = [omitted, added, names].map((each) => notes.value(each))
      return { messages, tokens, from_seq, compaction_seq, omitted: left_out, added: put_in, names: named }
    },
  })
}

function addAskTool(server: McpServer, annals: Annals): void {
  addTool(server, {
    name: 'ask',
    title: 'Find the sessions that answer a question',
    description:
      'The sessions that are about a question in plain words, the best first, each with its best entries and what was said right before and after. Not all words need to be there, and other forms of them count. Use search instead to find every entry that has certain words.',
    input: {
      q: z.string().min(1).max(1_000).describe('A question; "words in this order"; -without'),
      session_id: SessionId.optional(),
      user: User.optional(),
      limit: z.int().min(1).max(20).default(5).describe('Sessions'),
    },
    work: async ({ q, ...query }) => {
      const { items, terms, complete, indexed_through } = await annals.recall(q, query)
      const room = new Room(ANSWER_LENGTH_MAX)
      const textOf = (entry?: { snippet: { text: string } }) => entry && room.value(entry.snippet.text)
      const sessions = items.map(({ entries, ...session }) => ({
        ...session,
        entries: entries.map(({ session_id: _same, snippet, before, after, ...entry }) => ({
          ...entry,
          text: room.value(snippet.text),
          before: textOf(before),
          after: textOf(after),
        })),
      }))
      return { sessions, terms, complete, indexed_through }
    },
  })
}

function addSearchTool(server: McpServer, annals: Annals): void {
  addTool(server, {
    name: 'search',
    title: 'Search all sessions',
    description:
      'Entries of all sessions that have all the words as they stand, newest first, each with where it is and what is around the words. Where next_cursor is not null, there is more to look at, even if nothing was found yet.',
    input: {
      q: z.string().min(1).max(1_000).describe('Words; "words in this order"; -without; begin*'),
      session_id: SessionId.optional(),
      user: User.optional(),
      ...PAGED,
    },
    work: async ({ q, limit, cursor, ...query }) => {
      const page = await readPage(limit, (items) => annals.search(q, { ...query, limit: items }).page(cursor))
      const found = page.items.map(({ snippet, ...entry }) => ({ ...entry, text: snippet.text }))
      const { indexed_through, has_more, next_cursor } = page
      return { found, indexed_through, next_cursor: has_more ? next_cursor : null }
    },
  })
}

/** A page of a session as its readers see it. @throws AnnalsError */
export async function readSession(
  annals: Annals,
  { session_id, after_seq = 0, last, limit }: AskedSession,
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

/** The tool that writes: an event at the end of a session. */
export function addEventTool(server: McpServer, annals: Annals): void {
  addTool(server, {
    name: 'append_event',
    title: 'Append an event',
    description: 'Appends an event to a session. Once answered, it is durable.',
    writes: true,
    input: {
      session_id: SessionId,
      type: z.string().min(1).describe('What kind of event it is, such as note or review'),
      data: z.record(z.string(), z.unknown()).describe('Any JSON object'),
      if_match: z.int().min(0).optional().describe("Only if the session's last seq is still this one"),
      idempotency_key: IdempotencyKey.describe(
        'Calling again with it and the same event stores nothing more',
      ),
    },
    work: async ({ session_id, type, data, ...options }) => {
      const { id, seq, created_at } = await annals.sessions.append(session_id, { type, data }, options)
      return { id, seq, at: created_at }
    },
  })
}
