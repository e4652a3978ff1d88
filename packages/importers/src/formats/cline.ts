import { isJsonObject } from '@annals/messages/json'
import { resultOf, type Stored } from '../chat_messages.js'
import { type FileFacts, type Format, keyOfFile, type Parser, stemOf } from '../format.js'
import { isEmpty, listIn, objectIn, objectsIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'
import { parsed } from '../traces.js'

const HISTORY = 'api_conversation_history'
const FILES = new Set([HISTORY, 'ui_messages', 'claude_messages'])
/** What only Cline and those who began as copies of it write into the first message of a task. */
export const OWN_TEXT = /<(?:task|user_message|environment_details)>/

/**
 * A task of Cline, Roo Code or Kilo Code: what the model was sent and answered is one file, and what the page showed another.
 * Where both are there, the second one adds what the calls used, and how they went.
 */
export const CLINE: Format = {
  name: 'cline',
  title: 'tasks of Cline, Roo Code and Kilo Code',
  shape: 'document',
  asks_beside: true,
  knows: (sample) => isShown(sample) || isOfHistory(sample),
  open: (output, file) => new ClineParser(output, file),
}

function isShown({ ts, type, say, ask }: JsonObject): boolean {
  const is_said = (type === 'say' && typeof say === 'string') || (type === 'ask' && typeof ask === 'string')
  return typeof ts === 'number' && is_said
}

function isOfHistory({ role, content, ts }: JsonObject): boolean {
  if (role !== 'user' && role !== 'assistant') return false
  const texts = objectsIn(content).map(({ text }) => textIn(text) ?? '')
  return (
    texts.some((text) => OWN_TEXT.test(text)) || (typeof ts === 'number' && objectsIn(content).length > 0)
  )
}

class ClineParser implements Parser {
  private readonly key: string
  /** What the page showed is what the model said, of which nobody has the rest. */
  private readonly is_alone: boolean
  private readonly named = new Map<string, number>()
  private index = 0
  private is_begun = false
  /** Calls that wait for what the model is told of them. */
  private readonly waiting: Waiting[] = []
  /** The calls of the model's last answer. */
  private called: JsonObject[] = []

  constructor(
    private readonly out: Output,
    file: FileFacts,
  ) {
    const task = FILES.has(stemOf(file.name)) ? file.folders.at(-1) : undefined
    this.key = task ?? keyOfFile(file)
    const folder = file.name.split('/').slice(0, -1).join('/')
    this.is_alone = !file.beside.some((name) => {
      const [last, ...above] = name.split('/').reverse()
      return last === `${HISTORY}.json` && folder.endsWith(above.reverse().join('/'))
    })
  }

  read(value: unknown): void {
    if (!isJsonObject(value)) return
    this.out.session(this.key, { configs: { agent: 'cline' } })
    if (isShown(value)) this.shown(value)
    else this.said(value)
    this.is_begun = true
  }

  end(): void {
    // What the model is told of these calls is not there yet, and would be named as if it were.
    for (const { native, shown } of this.waiting)
      for (const [nth, one] of shown.entries())
        this.out.raw(this.key, String(one.say ?? one.ask), one, {
          native: `${native}/shown ${nth}`,
          at: one.ts,
        })
    this.out.end(this.key)
  }

  private said(message: JsonObject): void {
    const { role, content, ts, ...rest } = message
    const { modelId } = objectIn(rest.modelInfo)
    if (textIn(modelId)) this.out.session(this.key, { configs: { model: modelId } })
    const calls = objectsIn(content).filter(({ type }) => type === 'tool_use')
    const told = answered(content, this.called)
    this.called = calls
    const blob = content === undefined ? message : { role, content: told.content }
    const facts = { native: this.index++, at: ts }
    const more = { ...rest, ...(told.headers.length > 0 && { headers: told.headers }) }
    this.out.message(this.key, 'anthropic', blob, {
      ...facts,
      ...(!isEmpty(more) && { meta: { cline: more } }),
    })
  }

  private shown(one: JsonObject): void {
    const kind = String(one.say ?? one.ask)
    const text = textIn(one.text) ?? ''
    const facts = { native: this.nameOf(`ui ${one.ts}`), at: one.ts }
    const { modelId } = objectIn(one.modelInfo)
    if (textIn(modelId)) this.out.session(this.key, { configs: { model: modelId } })
    if (one.say === 'api_req_started') {
      this.answer(one, textIn(objectIn(parsed(one.text)).request) ?? '')
      this.request(one, facts)
      return
    }
    if (this.is_alone && this.isOutput(one, kind)) return
    if (SPOKEN.has(kind) || ASKED.has(kind)) this.answer(one, '')
    const blobs = this.is_alone ? this.blobsOf(one, kind, text, facts.native) : []
    const meta = { cline: without(one, 'text', 'images', 'ts') }
    for (const [nth, { format, blob }] of blobs.entries())
      this.out.message(this.key, format, blob, {
        ...facts,
        native: nth === 0 ? facts.native : `${facts.native}/${nth}`,
        ...(nth === 0 && { meta }),
      })
    if (blobs.length === 0) this.out.raw(this.key, kind, one, { ...facts, noise: !/error|fail/.test(kind) })
  }

  private nameOf(name: string): string {
    const count = (this.named.get(name) ?? 0) + 1
    this.named.set(name, count)
    return count === 1 ? name : `${name} ${count}`
  }

  /** A call of the model, as the page shows what it used. */
  private request(one: JsonObject, facts: { native: string; at: unknown }): void {
    const about = objectIn(parsed(one.text))
    const usage = without({
      input_tokens: about.tokensIn,
      output_tokens: about.tokensOut,
      cached_tokens: about.cacheReads,
      cache_write_tokens: about.cacheWrites,
    })
    const { modelId, model } = objectIn(one.modelInfo)
    const data = without({
      operation: 'model',
      name: 'api_req_started',
      model: textIn(modelId) ?? textIn(model),
      usage: isEmpty(usage) ? undefined : usage,
      cost_usd: about.cost,
      error: about.streamingFailedMessage ?? about.cancelReason,
      raw: one,
    })
    this.out.event(this.key, 'otel.span', data, facts)
  }

  private blobsOf(one: JsonObject, kind: string, text: string, native: string): Stored[] {
    const given = objectIn(parsed(text))
    const is_first = !this.is_begun
    if (kind === 'task' || kind === 'user_feedback' || (kind === 'text' && is_first)) {
      if (is_first) this.out.session(this.key, { configs: { title: text.slice(0, 200) } })
      const pictures = listIn(one.images).filter((url) => /^(?:data|https?):/.test(String(url)))
      const parts = pictures.map((url) => ({ type: 'image_url', image_url: { url } }))
      const content = parts.length === 0 ? text : [{ type: 'text', text }, ...parts]
      return [{ format: 'openai', blob: { role: 'user', content } }]
    }
    if (kind === 'reasoning')
      return [{ format: 'openai', blob: { role: 'assistant', content: '', reasoning_content: text } }]
    if (SPOKEN.has(kind) && text !== '') {
      const said = textIn(given.question) ?? textIn(given.response) ?? text
      return [{ format: 'openai', blob: { role: 'assistant', content: said } }]
    }
    if (kind === 'tool' && textIn(given.tool)) {
      const { tool, content, ...rest } = given
      const is_written = content != null && WRITES.test(String(tool))
      const shown = content == null || is_written ? [] : [one]
      return [this.call(one, native, String(tool), is_written ? { ...rest, content } : rest, shown)]
    }
    if (kind === 'command' && text !== '')
      return [this.call(one, native, 'execute_command', { command: text })]
    if (kind === 'use_mcp_server' && textIn(given.toolName))
      return [
        this.call(one, native, String(given.toolName), { ...given, ...objectIn(parsed(given.arguments)) }),
      ]
    return []
  }

  private call(
    { ts }: JsonObject,
    native: string,
    name: string,
    given: JsonObject,
    shown: JsonObject[] = [],
  ): Stored {
    const id = `call_${ts}`
    this.waiting.push({ id, native, shown, is_failed: false })
    return callOf(id, name, given)
  }

  /** Keeps what the page shows of the last call's result, which may come in pieces. */
  private isOutput(one: JsonObject, kind: string): boolean {
    const last = this.waiting.at(-1)
    const is_failed = kind === 'error' || kind === 'diff_error'
    if (!last || !(RESULTS.has(kind) || (is_failed && last.shown.length === 0))) return false
    last.shown.push(one)
    last.is_failed ||= is_failed
    this.out.accept()
    return true
  }

  /** Stores the results of calls: as the model is told of them, or else as the page showed them. */
  private answer({ ts: at }: JsonObject, request: string): void {
    const told = resultsIn(request)
    const all = this.waiting.splice(0)
    for (const [nth, { id, native, shown, is_failed }] of all.entries()) {
      const own = told.length === all.length ? told[nth] : undefined
      if (own === undefined && shown.length === 0) continue
      const content = own ?? shown.map(shownIn).join('\n')
      const has_failed = is_failed || (own !== undefined && FAILED.test(own))
      const { format, blob } = resultOf(id, content, has_failed)
      const rest = shown.map((piece) =>
        content.includes(shownIn(piece).trim()) ? without(piece, 'text') : piece,
      )
      const meta = rest.length > 0 ? { meta: { cline: { shown: rest } } } : {}
      const time = shown.at(-1)?.ts ?? at
      this.out.message(this.key, format, blob, { native: `${native}/result`, at: time, ...meta })
    }
  }
}

interface Waiting {
  id: string
  native: string
  /** What the page showed of the result. */
  shown: JsonObject[]
  is_failed: boolean
}

/** Tools whose content is what they write. */
const WRITES = /^(?:newFile|edited|applied|insert|searchAnd)/
export const FAILED =
  /^(?:The tool execution failed|The user denied|Error:|Command (?:failed with exit code|timed out)|Missing value for required parameter)/
const ASKED = new Set(['task', 'user_feedback', 'reasoning'])
const RESULT_ENDS = '] Result:'

/** The results of which a request tells the model: `[read_file for 'a.ts'] Result:` and the lines below. */
function resultsIn(request: string): string[] {
  const results: string[][] = []
  for (const line of request.split('\n')) {
    if (line.endsWith(RESULT_ENDS)) results.push([])
    else results.at(-1)?.push(line)
  }
  return results.map((lines) => lines.join('\n').split('<environment_details>')[0]!.trim())
}

/**
 * Cline may tell the model in texts what its calls returned, `[execute_command for 'ls'] Result:` and the rest, though
 * the calls were blocks. These texts become results of the calls, in their order, without the lines above them.
 */
function answered(content: unknown, calls: JsonObject[]): { content: unknown; headers: string[] } {
  const headers: string[] = []
  if (!Array.isArray(content) || calls.length === 0) return { content, headers }
  const blocks = content.map((block: unknown) => {
    const { type, text, ...marks } = objectIn(block)
    const call = calls[headers.length]
    if (type !== 'text' || typeof text !== 'string' || !text.startsWith('[') || !call) return block
    const header_ends = text.indexOf(RESULT_ENDS) + RESULT_ENDS.length
    if (header_ends < RESULT_ENDS.length) return block
    headers.push(text.slice(0, header_ends))
    const said = text.slice(header_ends).replace(/^\n/, '')
    const failed = FAILED.test(said) && { is_error: true }
    return { type: 'tool_result', tool_use_id: call.id, content: said, ...failed, ...marks }
  })
  return { content: blocks, headers }
}

function shownIn(one: JsonObject): string {
  const { content } =
    one.say === 'tool' || one.ask === 'tool' ? objectIn(parsed(one.text)) : { content: one.text }
  return typeof content === 'string' ? content : JSON.stringify(content ?? '')
}

const SPOKEN = new Set(['text', 'completion_result', 'followup', 'plan_mode_respond', 'plan_mode_response'])
const RESULTS = new Set(['command_output', 'mcp_server_response', 'browser_action_result'])

function callOf(id: string, name: string, given: JsonObject): Stored {
  const called = { id, type: 'function', function: { name, arguments: JSON.stringify(given) } }
  return { format: 'openai', blob: { role: 'assistant', content: null, tool_calls: [called] } }
}
