import { type Annals, AnnalsError } from '@annals/client'
import { type LogEntry, SessionReader, type ToolCall, type ToolResult } from '@annals/messages/session'
import type { McpServer } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { ANSWER_LENGTH_MAX, shortened, slice } from './shortened.js'
import { addTool, readPage, SessionId } from './tools.js'

/** Entries after a call among which its result is looked for. */
const LOOKED_AT_MAX = 100
const NAME_LENGTH_MAX = 1_000
const ARGUMENTS_LENGTH_MAX = ANSWER_LENGTH_MAX / 3
const RESULT_LENGTH_MAX = ANSWER_LENGTH_MAX / 2

const CallId = z.string().max(NAME_LENGTH_MAX).optional()

/** The tool that shows one call and its result. */
export function addToolCallTool(server: McpServer, annals: Annals): void {
  addTool(server, {
    name: 'get_tool_call',
    title: 'Get a tool call',
    description:
      'One tool call of a session: its arguments, its result as far as one answer holds it, and whether it failed.',
    input: {
      session_id: SessionId,
      seq: z.int().min(1).describe('The entry with the call or its result, as read_session shows it'),
      call_id: CallId.describe('Which call, if the entry has several'),
      offset: z.int().min(0).default(0).describe('Where to read on in a long result, in characters'),
    },
    work: async ({ session_id, seq, call_id, offset }) => {
      const page = await readPage(LOOKED_AT_MAX, (limit) =>
        annals.sessions.timeline(session_id, { after_seq: seq - 1, limit }).page(),
      )
      const reader = new SessionReader()
      const [first] = page.items.map((item) => reader.read(item as LogEntry))
      const blocks = (first?.blocks ?? []).filter((block) => block.kind === 'call' || block.kind === 'result')
      const block = blocks.find((one) => call_id === undefined || one.call?.id === call_id)
      if (block?.kind === 'call') return shownCall(block.call, page.items.at(-1)!.seq, offset)
      // The call itself stands before what was read.
      if (block) return { name: block.name ?? null, result: shownResult(block.result, offset) }
      throw new AnnalsError({
        status: 404,
        error: 'tool_call_not_found',
        message:
          'This entry has no such tool call. read_session shows which entries have calls, and their ids.',
      })
    },
  })
}

function shownCall(call: ToolCall, read_to_seq: number, offset: number): object {
  const { id = null, name, seq, created_at, result } = call
  return {
    id: id && shortened(id, NAME_LENGTH_MAX),
    name: shortened(name, NAME_LENGTH_MAX),
    seq,
    at: created_at,
    arguments: shortened(call.arguments, ARGUMENTS_LENGTH_MAX),
    result: result ? shownResult(result, offset) : null,
    ...(!result && { no_result_up_to_seq: read_to_seq }),
  }
}

function shownResult({ seq, created_at, is_failed, duration_ms, text }: ToolResult, offset: number): object {
  const end = offset + RESULT_LENGTH_MAX
  const next = end < text.length ? { next_offset: end } : {}
  const told = { seq, at: created_at, is_failed, duration_ms, length: text.length }
  return { ...told, text: slice(text, offset, end), ...next }
}
