import { type FileFacts, keyOfFile } from '../format.js'
import { isEmpty, objectIn, textIn, without } from '../json.js'
import { storeModelCall, usageIn } from '../model_calls.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'

/** A line by which the output of Gemini CLI is known. */
export function isOfGeminiStream({ type, session_id, model, tool_name, tool_id }: JsonObject): boolean {
  if (type === 'init') return typeof session_id === 'string' && typeof model === 'string'
  return type === 'tool_use' && typeof tool_name === 'string' && typeof tool_id === 'string'
}

/** So many lines wait for the name of their session, at most. */
const EARLY_MAX = 1_000
const TYPES = new Set(['init', 'tool_use', 'tool_result', 'error', 'result'])

/**
 * What Gemini CLI writes to its output with `--output-format stream-json`: `init`, which names the session, messages,
 * calls and their results, and `result` at the end. An answer arrives in pieces. Who started the command may have put
 * lines of messages above `init`.
 */
export class GeminiStream {
  private key: string | undefined
  private model: string | undefined
  private readonly tools = new Map<string, string>()
  /** The session has said its result: what follows is of the next one. */
  private is_over = false
  /** Lines before the session has a name. */
  private early: JsonObject[] = []
  /** The pieces of an answer. */
  private pieces: JsonObject[] = []
  private count = 0

  constructor(
    private readonly out: Output,
    private readonly file: FileFacts,
  ) {}

  knows({ type, role, content, stats }: JsonObject): boolean {
    if (type === 'message') return typeof role === 'string' && typeof content === 'string'
    return TYPES.has(type as string) && (type !== 'result' || stats !== undefined)
  }

  read(line: JsonObject): void {
    this.out.accept()
    if (line.type === 'init') this.begin(line)
    else if (this.key === undefined || this.is_over) this.wait(line)
    else this.line(this.key, line)
  }

  /** Keeps a line until the session has a name, or gives it that of the file. */
  private wait(line: JsonObject): void {
    this.early.push(line)
    if (this.early.length < EARLY_MAX) return
    this.key ??= keyOfFile(this.file)
    this.is_over = false
    for (const early of this.early.splice(0)) this.line(this.key, early)
  }

  end(): void {
    if (this.key === undefined && this.early.length === 0) return
    const key = this.key ?? keyOfFile(this.file)
    this.key = key
    for (const line of this.early.splice(0)) this.line(key, line)
    this.say(key)
    this.out.end(key)
    this.key = undefined
  }

  private begin(line: JsonObject): void {
    const all = this.early.splice(0)
    if (this.key !== undefined) this.end()
    this.key = String(line.session_id)
    this.is_over = false
    this.model = textIn(line.model)
    this.count = 0
    this.out.session(this.key, {
      configs: { agent: 'gemini-cli', model: this.model },
      changed_at: line.timestamp,
    })
    for (const early of all) this.line(this.key, early)
  }

  private line(key: string, line: JsonObject): void {
    if (line.type === 'message' && line.role === 'assistant') {
      this.pieces.push(line)
      if (line.delta === true) return
    }
    this.say(key)
    if (line.type === 'message') {
      if (line.role === 'user') this.store(key, line, { role: 'user', parts: [{ text: line.content }] })
    } else if (line.type === 'tool_use') this.called(key, line)
    else if (line.type === 'tool_result') this.returned(key, line)
    else if (line.type === 'result') this.finished(key, line)
    else this.out.raw(key, String(line.type), line, this.factsOf(line))
  }

  /** Stores the answer that arrived. */
  private say(key: string): void {
    const [first] = this.pieces
    if (!first) return
    const text = this.pieces.map((piece) => textIn(piece.content) ?? '').join('')
    this.pieces = []
    this.store(key, first, { role: 'model', parts: [{ text }] })
  }

  private called(key: string, line: JsonObject): void {
    const { tool_id: id, tool_name: name, parameters: args } = line
    this.tools.set(String(id), String(name))
    this.store(key, line, { role: 'model', parts: [{ functionCall: { id, name, args: objectIn(args) } }] })
  }

  private returned(key: string, line: JsonObject): void {
    const { tool_id: id, status, output, error } = line
    const name = this.tools.get(String(id)) ?? 'unknown'
    const response = status === 'error' ? { error: output ?? error ?? status } : { output: output ?? null }
    const more = without({ error: objectIn(error).type })
    this.store(key, line, { role: 'user', parts: [{ functionResponse: { id, name, response } }] }, more)
  }

  private finished(key: string, line: JsonObject): void {
    this.is_over = true
    const { status, error, stats } = line
    const { duration_ms, tool_calls } = objectIn(stats)
    const usage = usageIn(objectIn(stats))
    const facts = this.factsOf(line)
    if (usage)
      storeModelCall(
        this.out,
        key,
        { usage, model: this.model },
        { ...facts, native: `usage of ${facts.native}`, output: 0, last_id: undefined },
      )
    this.out.raw(key, 'result', line, { ...facts, noise: true })
    const data = without({ success: status === 'success', error, duration_ms, tool_calls })
    this.out.outcome(key, data, { ...facts, native: `outcome ${facts.native}` })
  }

  private store(key: string, line: JsonObject, blob: JsonObject, more: JsonObject = {}): void {
    const meta = isEmpty(more) ? {} : { meta: { gemini: more } }
    this.out.message(key, 'gemini', blob, { ...this.factsOf(line), ...meta })
  }

  private factsOf({ timestamp, ts }: JsonObject): { native: number; at: unknown } {
    return { native: this.count++, at: timestamp ?? ts }
  }
}
