import { isJsonObject } from '@annals/messages/json'
import { Conversations } from '../conversations.js'
import { type FileFacts, type Format, keyOfFile, type Parser } from '../format.js'
import { listIn, objectIn, objectsIn, without } from '../json.js'
import { timeIn } from '../other_messages.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'
import { OtherConversations } from './other_conversations.js'

const ROLES = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function'])
const PARTS = new Set(['text', 'image_url', 'input_audio', 'file', 'refusal', 'video_url', 'audio_url'])
export const OPENAI_CHAT: Format = {
  name: 'openai-chat',
  title: "conversations in OpenAI's chat format, files for fine-tuning, and recorded runs",
  knows: (sample) =>
    (isConversation(sample) && !isJsonObject(sample.info)) ||
    isMessage(sample) ||
    isCompletion(sample) ||
    isPreference(sample) ||
    isLogged(sample) ||
    isRefused(sample) ||
    isList(sample),
  open: (output, file) => new OpenAiChatParser(output, file),
}

class OpenAiChatParser implements Parser {
  private readonly conversations: Conversations
  private readonly others: OtherConversations
  private readonly file_key: string

  constructor(
    private readonly out: Output,
    file: FileFacts,
  ) {
    this.conversations = new Conversations(out, 'openai')
    this.others = new OtherConversations(out, file)
    this.file_key = keyOfFile(file)
  }

  read(value: unknown): void {
    if (Array.isArray(value)) this.conversations.store({}, value)
    else if (!isJsonObject(value)) return
    else if (isMessage(value)) this.out.message(this.file_key, 'openai', value, { at: timeIn(value) })
    else if (isLogged(value)) this.logged(isBatched(value) ? { ...value, request: value.body } : value)
    else if (isRefused(value)) this.logged(value)
    else if (value.object === 'list') this.list(value)
    else if (isCompletion(value)) this.completion({}, value)
    else if (isPreference(value)) this.preference(value)
    else if (isConversation(value)) this.store(value, [])
    else this.others.read(value)
  }

  private store({ messages, ...about }: JsonObject, more: readonly unknown[]): void {
    this.conversations.store(about, [...listIn(messages), ...more])
  }

  /** A page of stored completions, or of a thread's messages, of which the newest comes first. */
  private list({ data, ...page }: JsonObject): void {
    const [first] = objectsIn(data)
    if (first?.object !== 'thread.message') {
      for (const { messages, ...one } of objectsIn(data)) this.completion({ messages }, one)
      return
    }
    const messages = objectsIn(data).sort((a, b) => Number(a.created_at) - Number(b.created_at))
    const said = messages.map(({ role, content, ...rest }) => ({
      role,
      content: objectsIn(content).map(threadPart),
      ...rest,
    }))
    this.store({ thread_id: first.thread_id, page, messages: said }, [])
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
    if (!answered || !isCompletion(answered))
      this.store({ ...about, ...(answered && { response }), messages }, [])
    else this.completion({ ...about, messages }, answered)
  }

  private completion(asked: JsonObject, answer: JsonObject): void {
    const [first, ...others] = (answer.choices as unknown[]).filter(isJsonObject)
    const { choices: _, ...about } = answer
    const { message, ...choice } = first ?? {}
    const value = { ...asked, ...about, ...choice, ...(others.length > 0 && { choices: others }) }
    this.store(value, message === undefined ? [] : [message])
  }

  /** Two answers of which one is preferred: the conversation with that one, and the other one as it is. */
  private preference(value: JsonObject): void {
    const { input, preferred_output, non_preferred_output, ...rest } = value
    this.store({ ...objectIn(input), ...rest, non_preferred_output }, listIn(preferred_output))
  }
}

export function isMessage(value: JsonObject): boolean {
  return isOwn(value) && ('content' in value || 'tool_calls' in value || 'function_call' in value)
}

function isConversation({ messages, contents }: JsonObject): boolean {
  if (contents !== undefined || !Array.isArray(messages)) return false
  const said = messages.filter((one) => !isMark(one))
  return said.every(isOwn) && (said.length > 0 || messages.length === 0)
}

/** What an agent notes among its messages, and nobody said. */
function isMark(value: unknown): boolean {
  const { role, content, parts } = objectIn(value)
  return typeof role === 'string' && !ROLES.has(role) && content === undefined && parts === undefined
}

/** Whether a message, with all its parts, is one of this API: frameworks have the same roles. */
function isOwn(value: unknown): boolean {
  if (!isJsonObject(value) || !ROLES.has(value.role as string) || 'parts' in value) return false
  const { content } = value
  return !Array.isArray(content) || content.every((part) => PARTS.has(objectIn(part).type as string))
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

function isLogged(value: JsonObject): boolean {
  const { request, response } = value
  const asked = bodyOf(isBatched(value) ? value.body : request)
  const answered = bodyOf(response)
  return (
    (Array.isArray(asked?.messages) && (answered === undefined || isCompletion(answered))) ||
    (answered !== undefined && isCompletion(answered))
  )
}

/** A line of a batch's input. */
function isBatched({ custom_id, url, body }: JsonObject): boolean {
  return typeof custom_id === 'string' && typeof url === 'string' && isJsonObject(body)
}

/** A line of a batch's output without an answer. */
function isRefused({ custom_id, response, error }: JsonObject): boolean {
  const said = objectIn(objectIn(response).body).error
  return typeof custom_id === 'string' && (isJsonObject(error) || isJsonObject(said))
}

function isList({ object, data }: JsonObject): boolean {
  const [first] = objectsIn(data)
  return (
    object === 'list' && (first?.object === 'thread.message' || (first !== undefined && isCompletion(first)))
  )
}

/** A part of a thread's message, whose text stands in an object. */
function threadPart(part: JsonObject): JsonObject {
  const { text, ...rest } = part
  return isJsonObject(text) ? { ...rest, text: text.value, ...without(text, 'value') } : part
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
