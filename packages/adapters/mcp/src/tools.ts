import { AnnalsError, type Page } from '@annals/client'
import { visibleJson, writeJson } from '@annals/messages/json'
import type { CallToolResult, McpServer } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { ANSWER_LENGTH_MAX, Room } from './shortened.js'

export const SessionId = z.uuid().describe("The session's id, as list_sessions shows it")
export const User = z.string().min(1).max(256).describe("Only this user's, by the project's own identifier")
/** Parameters of a tool that answers page by page. */
export const PAGED = {
  limit: z.int().min(1).max(50).default(20),
  cursor: z.string().max(2_000).optional().describe('The next_cursor of the page before'),
}

interface Tool<Input extends z.ZodRawShape> {
  name: string
  title: string
  description: string
  input: Input
  /** Only tools that say so write. */
  writes?: true
  work: (asked: z.output<z.ZodObject<Input, z.core.$strict>>) => Promise<object>
}

/** Adds a tool that answers what its `work` makes of what was asked, or what the service refused. */
export function addTool<Input extends z.ZodRawShape>(server: McpServer, tool: Tool<Input>): void {
  const { name, title, description, input, writes, work } = tool
  const hints = writes ? { readOnlyHint: false, destructiveHint: false } : { readOnlyHint: true }
  const inputSchema: z.ZodType = z.strictObject(input)
  const annotations = { ...hints, openWorldHint: false }
  server.registerTool(name, { title, description, inputSchema, annotations }, (asked) =>
    answerOf(() => work(asked as Parameters<typeof work>[0])),
  )
}

/**
 * JSON as text, with every digit of its numbers, in which characters that deceive a reader are escapes; or what the service
 * refused.
 */
async function answerOf(work: () => Promise<object>): Promise<CallToolResult> {
  try {
    return { content: [{ type: 'text', text: visibleJson(writeJson(await work())) }] }
  } catch (error) {
    if (!(error instanceof AnnalsError)) throw error
    return { content: [{ type: 'text', text: `${error.error}: ${error.message}` }], isError: true }
  }
}

/**
 * Reads a page of at most `limit` items, and of fewer as long as their size is more than an answer may have.
 * @throws AnnalsError payload_too_large if a single item is
 */
export async function readPage<P extends Page<unknown>>(
  limit: number,
  read: (limit: number) => Promise<P>,
): Promise<P> {
  for (let items = limit; ; items = Math.floor(items / 4) || 1) {
    try {
      return await read(items)
    } catch (error) {
      if (items === 1 || !isTooLarge(error)) throw error
    }
  }
}

/** The same, with each item shown in its share of an answer, and where the next page begins. */
export async function shownPage<Item>(
  limit: number,
  read: (limit: number) => Promise<Page<Item>>,
  show: (item: Item, room: Room) => unknown,
): Promise<{ shown: unknown[]; next_cursor: string | null }> {
  const { items, has_more, next_cursor } = await readPage(limit, read)
  const shown = items.map((item) => show(item, new Room(ANSWER_LENGTH_MAX / items.length)))
  return { shown, next_cursor: has_more ? next_cursor : null }
}

/** The service refuses a tool's read of more than it takes into memory for one. */
export function isTooLarge(error: unknown): boolean {
  return error instanceof AnnalsError && error.error === 'payload_too_large'
}
