import { isJsonObject } from '@annals/messages/json'
import { type FileFacts, type Format, keyOfFile, type Parser, stemOf } from '../format.js'
import { objectIn, objectsIn, textIn } from '../json.js'
import { storeModelCall, usageIn } from '../model_calls.js'
import { messagesOf } from '../other_messages.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'

/** What belongs to an agent as a whole, is a sign of life, or repeats what messages and calls of models say. */
const NOISE =
  /^(?:metadata|config\.|profile\.|tools\.|llm\.|mcp\.|usage\.|token_counting\.|runtime\.|plugin\.|turn\.(?:prompt|steer|ended)|permission\.set_mode|full_compaction\.|micro_compaction\.|context\.update_token_count|step\.)/
const FAILED = new Set(['error', 'interrupted'])
const TITLE_LENGTH_MAX = 120
/** An answer of so many parts is stored in pieces. */
const PARTS_MAX = 1_000
/** Turns of the user that may still be undone. */
const TURNS_MAX = 1_000

/** What Kimi Code writes of each agent of a session: `session_<id>/agents/<agent>/wire.jsonl`. */
export const KIMI_CODE: Format = {
  name: 'kimi-code',
  title: "Kimi Code's sessions",
  shape: 'lines',
  knows: ({ type, protocol_version, message, event }) =>
    (type === 'metadata' && typeof protocol_version === 'string') ||
    (type === 'context.append_message' && isJsonObject(message)) ||
    (type === 'context.append_loop_event' && isJsonObject(event)),
  open: (output, file) => new KimiCodeParser(output, file),
}

class KimiCodeParser implements Parser {
  private readonly key: string
  private readonly parent: string | undefined
  private readonly agent: string | undefined
  private model: string | undefined
  private is_titled = false
  /** Parts of an answer, which are written together, and the line of the first. */
  private parts: JsonObject[] = []
  private first: JsonObject = {}
  /** What the model said since it was told what it used. */
  private said = { output: 0, last_id: '' }
  /** The messages of each turn of the user, for those that are undone. */
  private readonly turns: string[][] = [[]]
  private count = 0

  constructor(
    private readonly out: Output,
    file: FileFacts,
  ) {
    const [session, agents, agent] = file.folders.slice(-3)
    const is_placed =
      stemOf(file.name) === 'wire' && agents === 'agents' && session !== undefined && agent !== undefined
    this.agent = is_placed && agent !== 'main' ? agent : undefined
    this.parent = this.agent === undefined ? undefined : session
    this.key = is_placed ? [session, this.agent].filter(textIn).join(' ') : keyOfFile(file)
  }

  read(line: unknown): void {
    if (!isJsonObject(line)) return
    this.open()
    const event = objectIn(line.event)
    if (event.type === 'content.part') {
      if (this.parts.length === PARTS_MAX) this.end()
      if (this.parts.length === 0) this.first = line
      this.parts.push(objectIn(event.part))
      this.out.accept()
      return
    }
    this.end()
    if (isJsonObject(line.message)) this.message(line, line.message, line.message.id)
    else if (event.type === 'tool.call') this.call(line, event)
    else if (event.type === 'tool.result') this.result(line, event)
    else this.other(line, event)
  }

  /** What was said before the next line. */
  end(): void {
    const { parts, first } = this
    if (parts.length === 0) return
    this.parts = []
    this.message(first, { role: 'assistant', content: parts }, objectIn(first.event).uuid)
  }

  private open(): void {
    if (this.out.isOpen(this.key)) return
    if (this.parent !== undefined) this.out.mention(this.parent, { agent: 'kimi-code' })
    const configs = { agent: 'kimi-code', subagent: this.agent }
    this.out.session(this.key, { parent: this.parent, configs })
  }

  private call(line: JsonObject, { toolCallId: id, name, args }: JsonObject): void {
    const tool_calls = [{ id, name, arguments: args ?? {} }]
    this.message(line, { role: 'assistant', content: '', tool_calls }, `call ${id} ${line.time}`)
  }

  private result(line: JsonObject, { toolCallId: id, result }: JsonObject): void {
    const { output, isError } = objectIn(result)
    const told = { role: 'tool', tool_call_id: id, content: output ?? '', is_error: isError === true }
    this.message(line, told, `result ${id} ${line.time}`)
  }

  private message(line: JsonObject, given: JsonObject, native: unknown): void {
    const { toolCalls, toolCallId, isError, origin, ...rest } = given
    const calls = objectsIn(toolCalls).map((call) => ({ ...call, ...objectIn(call.function) }))
    const plain = {
      ...rest,
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(toolCallId !== undefined && { tool_call_id: toolCallId, is_error: isError === true }),
    }
    const kind = objectIn(origin).kind ?? 'user'
    if (given.role === 'user' && kind === 'user') this.begin(given)
    const place = this.count++
    for (const [nth, { format, blob }] of messagesOf(plain).entries()) {
      const id = this.out.message(this.key, format, blob, {
        native: typeof native === 'string' && nth === 0 ? native : `${place}/${nth}`,
        at: line.time,
        ...(kind !== 'user' && { meta: { origin } }),
      })
      if (id === undefined) continue
      this.turns.at(-1)!.push(id)
      if (blob.role === 'assistant') this.said = { output: this.said.output + 1, last_id: id }
    }
  }

  /** Another turn of the user, who may undo it. */
  private begin({ content }: JsonObject): void {
    this.turns.push([])
    if (this.turns.length > TURNS_MAX) this.turns.splice(1, 1)
    if (this.is_titled || this.parent !== undefined) return
    const texts = typeof content === 'string' ? [content] : objectsIn(content).map(({ text }) => textIn(text))
    const title = texts.find((text) => text?.trim())?.slice(0, 4 * TITLE_LENGTH_MAX)
    if (title === undefined) return
    this.is_titled = true
    const line = title.replaceAll(/\s+/g, ' ').trim().slice(0, TITLE_LENGTH_MAX)
    this.out.session(this.key, { configs: { title: line } })
  }

  private other(line: JsonObject, event: JsonObject): void {
    const kind = textIn(event.type) ?? String(line.type)
    const at = line.time ?? line.created_at
    const { modelAlias: model, environmentDisclosure: disclosed } = line
    if (kind === 'config.update' || kind === 'profile.bind') {
      this.model = textIn(model) ?? this.model
      const cwd = line.cwd ?? objectIn(disclosed).cwd
      this.out.session(this.key, { configs: { cwd: textIn(cwd), model: textIn(model) } })
    }
    if (kind === 'usage.record') this.used(line)
    const noise = NOISE.test(kind) && !FAILED.has(String(event.finishReason))
    const id = this.out.raw(this.key, kind, line, { at, noise })
    if (kind === 'context.apply_compaction') {
      const content = textIn(line.contextSummary) ?? textIn(line.summary)
      const blob = { role: 'user', content: content ?? '' }
      if (content !== undefined) this.out.compact(this.key, id, [{ format: 'openai', blob }])
    }
    if (kind === 'context.undo') {
      const undone = Number(line.count)
      const left = undone > 0 ? this.turns.splice(Math.max(1, this.turns.length - undone)) : []
      this.out.retract(this.key, left.flat())
    }
  }

  private used({ usage, model, time: at }: JsonObject): void {
    const { inputOther: input, output, inputCacheRead, inputCacheCreation } = objectIn(usage)
    const used = usageIn({ input, output, cacheRead: inputCacheRead, cacheWrite: inputCacheCreation })
    if (used === undefined) return
    const { said } = this
    this.said = { output: 0, last_id: '' }
    const facts = {
      native: `usage ${this.count} ${String(at)}`,
      at,
      output: said.output,
      last_id: said.last_id,
    }
    storeModelCall(this.out, this.key, { usage: used, model: textIn(model) ?? this.model }, facts)
  }
}
