import { isJsonObject } from '@annals/messages/json'
import { type FileFacts, type Format, keyOfFile, type Parser, stemOf } from '../format.js'
import { objectsIn, textIn } from '../json.js'
import { messagesOf } from '../other_messages.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'

const NOISE = new Set(['CONVERSATION_HISTORY', 'EPHEMERAL_MESSAGE'])
/** What surrounds what the user typed. */
const REQUEST = ['<USER_REQUEST>', '</USER_REQUEST>'] as const
const MODEL = /setting `Model Selection` from .{1,80}? to (.{1,80}?)\.(?:\s|$)/
const TITLE_LENGTH_MAX = 120

/** What Antigravity writes of a conversation: `brain/<id>/.system_generated/logs/transcript.jsonl`. */
export const ANTIGRAVITY: Format = {
  name: 'antigravity',
  title: "Antigravity's transcripts",
  shape: 'lines',
  asks_beside: true,
  knows: ({ step_index, source, type, status }) =>
    typeof step_index === 'number' &&
    typeof type === 'string' &&
    typeof source === 'string' &&
    typeof status === 'string',
  open: (output, file) => new AntigravityParser(output, file),
}

class AntigravityParser implements Parser {
  private readonly key: string
  /** The other file has the same steps without anything cut off. */
  private readonly is_short: boolean
  /** Calls that wait for a result, which names none. */
  private called: string[] = []
  private is_titled = false

  constructor(
    private readonly out: Output,
    file: FileFacts,
  ) {
    const [id, generated, logs] = file.folders.slice(-3)
    const is_placed = generated === '.system_generated' && logs === 'logs' && id !== undefined
    this.key = is_placed ? id : keyOfFile(file)
    this.is_short = stemOf(file.name) === 'transcript' && file.beside.includes('transcript_full.jsonl')
  }

  read(line: unknown): void {
    if (!isJsonObject(line)) return
    if (this.is_short) {
      this.out.accept()
      return
    }
    this.out.session(this.key, { configs: { agent: 'antigravity' } })
    const { type, source } = line
    const said = this.said(line)
    const facts = { native: `${line.step_index} ${type}`, at: line.created_at }
    if (!said) {
      this.out.raw(this.key, String(type), line, { ...facts, noise: NOISE.has(String(type)) })
      return
    }
    if (source !== 'MODEL') this.describe(String(line.content))
    for (const [nth, { format, blob }] of messagesOf(said).entries()) {
      const native = nth === 0 ? facts.native : `${facts.native} ${nth}`
      this.out.message(this.key, format, blob, {
        ...facts,
        native,
        ...(nth === 0 && { meta: { step: line } }),
      })
    }
  }

  /** What a step says: the request, an answer with its calls, or the result of the oldest call that waits. */
  private said(line: JsonObject): JsonObject | undefined {
    const { type, source, content, thinking, status, step_index } = line
    if (type === 'USER_INPUT') return { role: 'user', content: textIn(content) ?? '' }
    if (source !== 'MODEL') return undefined
    if (type !== 'PLANNER_RESPONSE') {
      const id = this.called.shift()
      if (id === undefined) return undefined
      return { role: 'tool', tool_call_id: id, content: textIn(content) ?? '', is_error: status === 'ERROR' }
    }
    const calls = objectsIn(line.tool_calls).map(({ id, name, args, arguments: given }, nth) => ({
      id: textIn(id) ?? `call_${step_index}_${nth}`,
      name,
      arguments: plainArguments(args ?? given),
    }))
    // What was called before and has no result by now gets none.
    this.called = calls.map(({ id }) => id)
    const thought = textIn(thinking)
    return {
      role: 'assistant',
      content: textIn(content) ?? '',
      ...(thought !== undefined && { reasoning_content: thought }),
      tool_calls: calls,
    }
  }

  private describe(content: string): void {
    const model = MODEL.exec(content)?.[1]
    if (model !== undefined) this.out.session(this.key, { configs: { model } })
    if (this.is_titled) return
    this.is_titled = true
    const [, inside = content] = content.split(REQUEST[0], 2)
    const [typed = ''] = inside.split(REQUEST[1], 1)
    const title = typed
      .slice(0, 4 * TITLE_LENGTH_MAX)
      .replaceAll(/\s+/g, ' ')
      .trim()
    this.out.session(this.key, { configs: { title: title.slice(0, TITLE_LENGTH_MAX) } })
  }
}

/** Each argument is written as JSON. */
function plainArguments(given: unknown): JsonObject {
  if (!isJsonObject(given)) return {}
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, parsedOr(value)]))
}

function parsedOr(value: unknown): unknown {
  if (typeof value !== 'string') return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}
