import { AnnalsError, invalidRequest } from '@annals/kits/errors.js'
import { logReadBytes } from '@annals/kits/http/answer/answer.js'
import { showVersion } from '@annals/kits/http/answer/entity_tag.js'
import { Cursors } from '@annals/kits/http/answer/page_answer.js'
import { operationsOf } from '@annals/kits/http/operation.js'
import { type LogPosition, readPosition, writePosition } from '@annals/kits/lists/log_position.js'
import { jsonList } from '@annals/kits/lists/resource_json.js'
import type { WorkThread } from '@annals/kits/threads/work_thread.js'
import type { MessageFormat } from '@annals/messages'
import type { ContextRules } from '@annals/messages/context'
import type { Reasoning } from '@annals/messages/fit'
import { sendEntries } from '../blobs/blob_bytes.js'
import { versionOfLog } from './answer_log.js'
import { Context, ContextQuery } from './context_schema.js'
import { ContextReader, type PinnedCut } from './render/context_reader.js'
import { fitMessages } from './render/message_walk.js'

const TOKENS_MAX_DEFAULT = 100_000
const TARGET_SHARE = 0.6
const SEPARATOR = '|'
const SENT_MAX = 200

export const getContext = ({ thread }: { thread: WorkThread }) =>
  operationsOf('Messages')({
    call: 'GET /session/:session_id/context',
    id: 'getContext',
    summary: 'Get the messages to send to a model next',
    description:
      "The newest messages that fit `max_tokens`, in any format. Once they no longer fit, they are cut down to `target_tokens`, before a user's message; with `pin`, that cut stays until `max_tokens` is exceeded again. System messages stay, and a tool call is never separated from its result. If a single turn is too long, its user's message and its newest steps stay. A single step longer than `max_tokens` is returned nevertheless. After a compaction, the context begins with its summary, which is never cut off. The list is ready to send: calls and results are where the provider expects them. `omitted` names contents of the log that it lacks, and `added` names what it has in addition.",
    querystring: ContextQuery,
    returns: 'The context.',
    data: Context,
    errors: ['invalid_cursor', 'seq_ahead', 'log_diverged'],
    version: versionOfLog,
    handle: async (request, reply) => {
      const { project_id, query, database, memory } = request
      const { session_id } = request.params
      const rules = rulesOf(query)
      const pins = new Cursors('context', project_id, session_id)
      const { cut, seen, sent_seqs, begun_seq } = readPin(pins, query.pin)
      const shows = (version: string | undefined) => showVersion(reply, version)
      const parts = { database, thread, memory, read_bytes: logReadBytes(request), showVersion: shows }
      const reader = new ContextReader(parts, { project_id, session_id }, seen, query.compaction !== 'none')
      const format = (query.format ?? 'openai') as MessageFormat
      const { plan, newest, shown, is_kept } = await reader.read(rules, cut)
      const reasoning = query.reasoning as Reasoning | undefined
      const sent = is_kept ? { sent_seqs, begun_seq } : {}
      const list = await fitMessages(thread, request, format, shown, { reasoning, ...sent })
      const { tokens, from_seq, asked_seq, cleared_through_seq, compaction_seq } = plan
      const place = [from_seq, asked_seq, cleared_through_seq, writePosition(newest), compaction_seq]
      const pin = pins.write(
        [...place, sent.begun_seq ?? newest.seq, writeSeqs(list.sent_seqs)].join(SEPARATOR),
      )
      const rest = {
        ids: list.ids,
        // Messages that are all left out count nothing.
        tokens: list.ids.length === 0 ? 0 : Math.max(0, tokens - list.tokens_left_out),
        from_seq,
        cleared_through_seq,
        compaction_seq,
        pin,
      }
      return await sendEntries(
        reply,
        jsonList('{"items":[', [list.items], `],${JSON.stringify(rest).slice(1, -1)},${list.notes}}`),
      )
    },
  })

/** @throws AnnalsError invalid_request */
function rulesOf(query: ContextQuery): ContextRules {
  const { max_tokens = TOKENS_MAX_DEFAULT, exclude_tools = '' } = query
  const { target_tokens = Math.ceil(max_tokens * TARGET_SHARE) } = query
  if (target_tokens > max_tokens) {
    throw invalidRequest(
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

interface Pin {
  cut?: PinnedCut
  seen: LogPosition
  /** Where the log ended when the cut was made. */
  begun_seq?: number
  /** Where contexts ended that made a difference, and the last one. */
  sent_seqs?: number[]
}

/** @throws AnnalsError invalid_cursor */
function readPin(pins: Cursors, pin: string | undefined): Pin {
  if (pin === undefined) return { seen: { seq: 0 } }
  try {
    const parts = pins.read(pin).split(SEPARATOR)
    const [from_seq = 0, asked_seq = 0, cleared_through_seq = 0] = parts.map((part) => readPosition(part).seq)
    // Pins of earlier versions have the position of the first message in its place.
    const seen = readPosition(parts[3] ?? parts[0]!)
    const compaction_seq = Number(parts[4] ?? 0)
    const cut = { from_seq, asked_seq, cleared_through_seq, compaction_seq }
    const sent_seqs = [...readSeqs(parts[6] ?? ''), seen.seq]
    // So many make a pin too long: the list begins anew.
    const sent = sent_seqs.length > SENT_MAX ? {} : { sent_seqs, begun_seq: Number(parts[5] ?? seen.seq) }
    return { seen, cut, ...sent }
  } catch {
    throw new AnnalsError(
      'invalid_cursor',
      'Query parameter pin is damaged or belongs to another session. Send the request without a pin.',
    )
  }
}

/** Ascending seqs, each by its distance from the one ahead. */
function writeSeqs(seqs: readonly number[]): string {
  return seqs.map((seq, i) => (seq - (seqs[i - 1] ?? 0)).toString(36)).join('.')
}

function readSeqs(text: string): number[] {
  let seq = 0
  return text === '' ? [] : text.split('.').map((distance) => (seq += Number.parseInt(distance, 36)))
}
