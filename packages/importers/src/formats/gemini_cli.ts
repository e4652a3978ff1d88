import { isJsonObject } from '@annals/messages/json'
import { type FileFacts, stemOf } from '../format.js'
import { isEmpty, listIn, objectIn, objectsIn, textIn, without } from '../json.js'
import { storeModelCall, usageIn } from '../model_calls.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'

/** Messages that are held, as they may be written anew. */
const HELD_MAX = 1_000
const SPEAKERS = new Set(['user', 'gemini', 'info', 'error', 'warning'])

/** A session of Gemini CLI, or a line of one. */
export function isOfGeminiCli(value: JsonObject): boolean {
  const { sessionId, messages, projectHash, startTime, id, type, timestamp, $set, $rewindTo } = value
  if (isJsonObject($set) || typeof $rewindTo === 'string') return true
  if (typeof sessionId === 'string' && Array.isArray(messages))
    return projectHash !== undefined || objectsIn(messages).some((one) => one.type === 'gemini')
  if (typeof sessionId === 'string' && projectHash !== undefined) return typeof startTime === 'string'
  return (
    typeof id === 'string' &&
    typeof timestamp === 'string' &&
    SPEAKERS.has(type as string) &&
    'content' in value
  )
}

/** A message of Qwen Code, whose other lines are those of Claude Code. */
export function isOfQwenCode({ sessionId, uuid, message }: JsonObject): boolean {
  return typeof sessionId === 'string' && typeof uuid === 'string' && Array.isArray(objectIn(message).parts)
}

/**
 * Sessions of Gemini CLI: documents, and since 2026 files of lines, in which a message is written whole each time that
 * something of it changes, and a mark takes back what was rewound. The last version of each message counts.
 */
export class GeminiCli {
  private key: string
  private about: JsonObject = {}
  private readonly held = new Map<string, JsonObject>()
  private readonly written = new Map<string, string[]>()
  /** The messages that nothing took back, and the place of each among them. */
  private readonly order: string[] = []
  private readonly places = new Map<string, number>()
  private model: unknown

  constructor(
    private readonly out: Output,
    file: FileFacts,
  ) {
    this.key = stemOf(file.name)
  }

  read(value: JsonObject): void {
    const { $set, $rewindTo, messages, ...about } = value
    if (typeof $rewindTo === 'string') this.rewind($rewindTo)
    else if (isJsonObject($set)) this.describe($set)
    else if (typeof value.sessionId === 'string') {
      this.end()
      this.key = value.sessionId
      this.describe({ ...about, messages })
      // A document is all of its session.
      if (Array.isArray(messages) && messages.length > 0) this.end()
    } else this.hold(String(value.id), value)
    this.out.accept()
  }

  /** Nothing else of the session follows. */
  end(): void {
    this.write()
    const { lastUpdated, ...about } = this.about
    // The time of the last change is that of the entry, so that a session that went on repeats it and changes nothing.
    if (!isEmpty(about)) this.out.raw(this.key, 'session', about, { at: lastUpdated, noise: true })
    this.about = {}
    this.written.clear()
    this.places.clear()
    this.order.length = 0
    this.model = undefined
    this.out.end(this.key)
  }

  private describe({ messages, ...about }: JsonObject): void {
    this.about = { ...this.about, ...about }
    const { lastUpdated, summary, directories, kind } = this.about
    const [cwd] = listIn(directories)
    const subagent = kind === 'subagent' ? true : undefined
    this.out.session(this.key, {
      configs: { agent: 'gemini-cli', title: summary, cwd, subagent },
      changed_at: lastUpdated,
    })
    for (const [index, message] of listIn(messages).entries())
      this.hold(textIn(objectIn(message).id) ?? String(index), objectIn(message))
  }

  private hold(id: string, message: JsonObject): void {
    if (this.written.has(id)) return
    this.held.set(id, message)
    if (!this.places.has(id)) this.places.set(id, this.order.push(id) - 1)
    if (this.held.size > HELD_MAX) this.write(this.held.keys().next().value)
  }

  /** Takes back a message, and those that follow it. */
  private rewind(target: string): void {
    this.write()
    const left = this.order.splice(this.places.get(target) ?? 0)
    for (const id of left) this.places.delete(id)
    this.out.retract(
      this.key,
      left.flatMap((id) => this.written.get(id) ?? []),
    )
  }

  /** Writes one message of those that are held, or all. */
  private write(only?: string): void {
    for (const [id, message] of this.held) {
      if (only !== undefined && id !== only) continue
      this.held.delete(id)
      this.written.set(id, this.message(id, message))
    }
  }

  /** Returns the ids of what becomes of a message. */
  private message(native: string, message: JsonObject): string[] {
    const { id: _, timestamp, type, content, thoughts, toolCalls, ...rest } = message
    const is_model = type === 'gemini'
    if (is_model && rest.model != null && rest.model !== this.model) {
      this.model = rest.model
      this.out.session(this.key, { configs: { model: rest.model } })
    }
    if (!is_model && type !== 'user') {
      this.out.raw(this.key, String(type), message, { native, at: timestamp, noise: true })
      return []
    }
    const thought = objectsIn(thoughts).map(({ subject, description }) => ({
      text: [subject, description].filter((text) => typeof text === 'string').join('\n'),
      thought: true,
    }))
    const calls = objectsIn(toolCalls)
    const called = calls.map((call) => ({ functionCall: { id: call.id, name: call.name, args: call.args } }))
    const text = typeof content === 'string' ? (content === '' ? [] : [{ text: content }]) : listIn(content)
    // Gemini CLI adds calls to what it has written. They are a message of their own, so that an import that saw only the
    // text adds them.
    const parts = [...thought, ...text]
    const first = parts.length > 0 ? parts : called
    const blob = { role: is_model ? 'model' : 'user', parts: first }
    const told = objectsIn(thoughts).map((one) => without(one, 'subject', 'description'))
    const more = { ...without(rest), ...(told.some((one) => !isEmpty(one)) && { thoughts: told }) }
    const meta = isEmpty(more) ? {} : { meta: { gemini: more } }
    const said = this.out.message(this.key, 'gemini', blob, { native, at: timestamp, ...meta })
    const later =
      first !== called && called.length > 0
        ? this.out.message(
            this.key,
            'gemini',
            { role: 'model', parts: called },
            { native: `${native}/calls`, at: timestamp },
          )
        : undefined
    const usage = is_model ? usageIn(objectIn(rest.tokens)) : undefined
    const last_id = later ?? said
    if (usage && last_id !== undefined) {
      const output = later === undefined ? 1 : 2
      const facts = { native: `usage of ${native}`, at: timestamp, output, last_id }
      storeModelCall(this.out, this.key, { usage, model: textIn(rest.model) }, facts)
    }
    const results = calls.map((call, at) => this.result(`${native}/${at}`, call))
    return [said, later, ...results].filter((one) => one !== undefined)
  }

  private result(
    native: string,
    { id, name, args: _, result, timestamp, ...rest }: JsonObject,
  ): string | undefined {
    // The tool still runs, or waits for the user.
    if (result == null && rest.resultDisplay == null && !ENDED.has(rest.status as string)) return undefined
    const found = objectsIn(result).find((part) => isJsonObject(part.functionResponse))
    const is_known = found !== undefined && listIn(result).length === 1
    const is_failed = rest.status === 'error' || rest.status === 'cancelled'
    const shown = is_failed
      ? { error: rest.resultDisplay ?? result ?? rest.status }
      : { output: result ?? null }
    const functionResponse = is_known && !is_failed ? found.functionResponse : { id, name, response: shown }
    const part = is_known ? without(found, 'functionResponse') : {}
    const more = {
      ...without(rest),
      ...(!isEmpty(part) && { part: found }),
      ...(is_known && is_failed && { result }),
    }
    const blob = { role: 'user', parts: [{ functionResponse }] }
    return this.out.message(this.key, 'gemini', blob, { native, at: timestamp, meta: { gemini: more } })
  }
}

const ENDED = new Set(['success', 'error', 'cancelled', undefined])
