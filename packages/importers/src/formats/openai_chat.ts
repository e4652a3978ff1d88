import { isJsonObject } from '@annals/messages/json'
import { type FileFacts, type Format, type Parser, stemOf } from '../format.js'
import { digestOf } from '../ids.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'

const ROLES = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function'])
/** What names a conversation, in the order in which it counts. */
const IDS = ['id', 'conversation_id', 'session_id', 'thread_id', 'custom_id', 'request_id']
/** What is a config; anything else of a conversation is kept as an event. */
const CONFIGS = ['model', 'title', 'name', 'metadata', 'temperature']
const RATES = ['reward', 'score', 'success', 'passed', 'outcome']

export const OPENAI_CHAT: Format = {
  name: 'openai-chat',
  title: "conversations in OpenAI's chat format, files for fine-tuning, and recorded runs",
  knows: (sample) =>
    isConversation(sample) ||
    isMessage(sample) ||
    isCompletion(sample) ||
    isPreference(sample) ||
    isLogged(sample),
  open: (output, file) => new OpenAiChatParser(output, file),
}

class OpenAiChatParser implements Parser {
  private conversations = 0
  private readonly file_key: string

  constructor(
    private readonly out: Output,
    { name }: FileFacts,
  ) {
    this.file_key = stemOf(name)
  }

  read(value: unknown): void {
    if (Array.isArray(value)) this.conversation({ messages: value }, value)
    else if (!isJsonObject(value)) return
    else if (isMessage(value)) this.out.message(this.file_key, 'openai', value)
    else if (isLogged(value)) this.logged(value)
    else if (isCompletion(value)) this.completion({}, value)
    else if (isPreference(value)) this.preference(value)
    else if (isConversation(value)) this.conversation(value, value.messages as unknown[])
  }

  /** `{ messages }` with what is known of the run, or `{ prompt, completion }`. */
  private conversation(
    value: JsonObject,
    messages: readonly unknown[],
    more: readonly unknown[] = [],
  ): string {
    const key = this.keyOf(value, messages)
    const { messages: _, user, configs, ...others } = value
    const rest: JsonObject = { ...others, ...(typeof user !== 'string' && { user }) }
    if (!isJsonObject(configs)) rest.configs = configs
    const known = Object.fromEntries(CONFIGS.map((name) => [name, rest[name]]))
    this.out.session(key, {
      user: user ?? rest.user_id,
      configs: { ...known, ...(isJsonObject(configs) ? configs : {}) },
      changed_at: value.updated_at ?? value.created,
    })
    const at = value.created_at ?? value.created ?? value.timestamp
    for (const [index, message] of [...messages, ...more].entries()) {
      const said_at = isJsonObject(message) ? (message.created_at ?? message.timestamp) : undefined
      this.out.message(key, 'openai', message, { native: index, at: said_at ?? at })
    }
    this.finish(key, rest, configs)
    return key
  }

  private finish(key: string, rest: JsonObject, configs: unknown): void {
    const others = Object.entries(rest).filter(
      ([name, value]) => value != null && !CONFIGS.includes(name) && !RATES.includes(name),
    )
    if (others.length > 0)
      this.out.raw(key, 'run', Object.fromEntries(others), { native: 'run', noise: true })
    const all = { ...(isJsonObject(configs) ? configs : {}), ...rest }
    const rated = RATES.filter((name) => all[name] != null)
    if (rated.length > 0) this.out.outcome(key, Object.fromEntries(rated.map((name) => [name, all[name]])))
    this.out.end(key)
  }

  /** A request and its answer, as proxies and batches log them. */
  private logged(value: JsonObject): void {
    const { request, response, ...rest } = value
    const asked = bodyOf(request)
    const answered = bodyOf(response)
    const messages = Array.isArray(asked?.messages) ? asked.messages : []
    const about = {
      ...rest,
      ...aroundBody('request', request),
      ...aroundBody('response', response),
      ...asked,
    }
    if (!answered) this.conversation(about, messages)
    else this.completion({ ...about, messages }, answered)
  }

  private completion(asked: JsonObject, answer: JsonObject): void {
    const messages = Array.isArray(asked.messages) ? asked.messages : []
    const [first, ...others] = (answer.choices as unknown[]).filter(isJsonObject)
    const { choices: _, ...about } = answer
    const { message, ...choice } = first ?? {}
    const value = { ...asked, ...about, ...choice, ...(others.length > 0 && { choices: others }) }
    this.conversation(value, messages, message === undefined ? [] : [message])
  }

  /** Two answers of which one is preferred: the conversation with that one, and the other one as it is. */
  private preference(value: JsonObject): void {
    const { input, preferred_output, non_preferred_output, ...rest } = value
    const asked = isJsonObject(input) ? input : {}
    const messages = Array.isArray(asked.messages) ? asked.messages : []
    const preferred = Array.isArray(preferred_output) ? preferred_output : []
    this.conversation({ ...asked, ...rest, non_preferred_output }, messages, preferred)
  }

  /** What names the conversation. One without a name is named after its place and what begins it. */
  private keyOf(value: JsonObject, messages: readonly unknown[]): string {
    this.conversations += 1
    const name = IDS.map((id) => value[id]).find((id) => typeof id === 'string' && id !== '')
    if (name !== undefined) return String(name)
    const { messages: _, ...rest } = value
    return `${this.conversations} ${digestOf([rest, messages.slice(0, 3)])}`
  }
}

export function isMessage(value: JsonObject): boolean {
  return ROLES.has(value.role as string) && ('content' in value || 'tool_calls' in value)
}

function isConversation({ messages, contents }: JsonObject): boolean {
  if (contents !== undefined) return false
  return (
    Array.isArray(messages) && messages.every((one) => isJsonObject(one) && ROLES.has(one.role as string))
  )
}

function isCompletion({ choices, object }: JsonObject): boolean {
  return (
    Array.isArray(choices) &&
    (object === 'chat.completion' || choices.some((one) => isJsonObject(one) && isJsonObject(one.message)))
  )
}

function isPreference({ input, preferred_output }: JsonObject): boolean {
  return isJsonObject(input) && Array.isArray(preferred_output)
}

function isLogged({ request, response }: JsonObject): boolean {
  const asked = bodyOf(request)
  const answered = bodyOf(response)
  return (
    (Array.isArray(asked?.messages) && (answered === undefined || isCompletion(answered))) ||
    (answered !== undefined && isCompletion(answered))
  )
}

function bodyOf(value: unknown): JsonObject | undefined {
  if (!isJsonObject(value)) return undefined
  return isJsonObject(value.body) ? value.body : value
}

/** What stands beside a body, such as an HTTP status. */
function aroundBody(name: string, value: unknown): JsonObject {
  if (!isJsonObject(value) || !isJsonObject(value.body)) return {}
  const { body: _, ...around } = value
  return { [name]: around }
}
