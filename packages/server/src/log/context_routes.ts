import type { MessageFormat } from '@annals/messages'
import type { ContextCut, ContextRules } from '@annals/messages/context'
import { AnnalsError } from '../errors.js'
import { logReadBytes } from '../http/admission/request_memory.js'
import { sendEntries } from '../http/answer/blob_bytes.js'
import { ContextReader } from '../http/answer/context_reader.js'
import { PageRenderer } from '../http/answer/page_renderer.js'
import { operationsOf } from '../http/operation.js'
import { Cursors } from '../http/request/cursor.js'
import { SessionParams } from '../sessions/session_schema.js'
import { Context, ContextQuery } from './context_schema.js'
import { type LogPosition, readPosition, writePosition } from './read/log_position.js'
import { LogReader, readLastSeq } from './read/read_log.js'

const TOKENS_MAX_DEFAULT = 100_000
const TARGET_SHARE = 0.6
const SEPARATOR = '|'

/** The messages to send to a model next. */
export const getContext = operationsOf('Messages')({
  call: 'GET /session/:session_id/context',
  id: 'getContext',
  summary: 'Get the messages to send to a model next',
  description:
    "The newest messages that fit `max_tokens`, in any format. Once they do not fit, they are cut down to `target_tokens`, ahead of a user's message; with `pin` that cut stays until `max_tokens` is passed again. System messages stay, and a tool call is never parted from its result. Where one turn alone is too long, the user's message stays with the newest steps of the turn. A single step that is longer than `max_tokens` is shown all the same.",
  params: SessionParams,
  querystring: ContextQuery,
  returns: 'The context.',
  data: Context,
  errors: ['invalid_cursor', 'session_not_found', 'seq_ahead', 'log_diverged'],
  handle: async (request, reply, { thread }) => {
    const { project_id, query, database, memory } = request
    const { session_id } = request.params
    const rules = rulesOf(query)
    const pins = new Cursors('context', project_id, session_id)
    const { cut, seen } = readPin(pins, query.pin)
    const last_seq = await readLastSeq(database, project_id, session_id, seen)
    const parts = { database, thread, memory, read_bytes: logReadBytes(request) }
    const reader = new ContextReader(parts, { project_id, session_id, last_seq })
    const format = (query.format ?? 'openai') as MessageFormat
    const { plan, shown } = await reader.read(rules, cut, format)
    const renderer = new PageRenderer(thread, project_id, format)
    try {
      const items = await renderer.render(shown)
      const ids = shown.flatMap(({ id }, i) => Array<string>(items[i]!.length).fill(`"${id}"`))
      const { tokens, from_seq, asked_seq, cleared_through_seq } = plan
      const log = new LogReader(database, { project_id, session_id })
      const start = from_seq === seen.seq ? seen : await log.positionOf(from_seq)
      const pin = pins.write([writePosition(start), asked_seq, cleared_through_seq].join(SEPARATOR))
      const end = `],"ids":[${ids.join(',')}],"tokens":${tokens},"from_seq":${from_seq},"cleared_through_seq":${cleared_through_seq},"pin":"${pin}"}`
      const chunks = contextChunks(items.flat(), end)
      return await sendEntries(reply, chunks)
    } finally {
      renderer.close()
    }
  },
})

async function* contextChunks(items: string[], end: string): AsyncGenerator<string> {
  yield '{"items":['
  for (const [index, item] of items.entries()) yield index > 0 ? `,${item}` : item
  yield end
}

/** @throws AnnalsError invalid_request */
function rulesOf(query: ContextQuery): ContextRules {
  const { max_tokens = TOKENS_MAX_DEFAULT, exclude_tools = '' } = query
  const { target_tokens = Math.ceil(max_tokens * TARGET_SHARE) } = query
  if (target_tokens > max_tokens) {
    throw new AnnalsError(
      'invalid_request',
      `Query parameter target_tokens must not be greater than max_tokens, which is ${max_tokens}.`,
    )
  }
  return {
    tokens_max: max_tokens,
    tokens_target: target_tokens,
    results_kept: query.keep_tool_results,
    tools_excluded: new Set(exclude_tools.split(',').map((name) => name.trim())),
    inputs_cleared: query.clear_tool_inputs ?? false,
  }
}

/** @throws AnnalsError invalid_cursor */
function readPin(pins: Cursors, pin: string | undefined): { cut?: ContextCut; seen: LogPosition } {
  if (pin === undefined) return { seen: { seq: 0 } }
  try {
    const [start, asked_seq, cleared_through_seq] = pins.read(pin).split(SEPARATOR)
    const seen = readPosition(start!)
    const cleared = Number(cleared_through_seq)
    return { seen, cut: { from_seq: seen.seq, asked_seq: Number(asked_seq), cleared_through_seq: cleared } }
  } catch {
    throw new AnnalsError(
      'invalid_cursor',
      'Query parameter pin is damaged or belongs to another session. Ask again without a pin.',
    )
  }
}
