import { isJsonObject } from '@annals/messages/json'
import { Conversations } from '../conversations.js'
import { type FileFacts, type Format, keyOfFile, type Parser } from '../format.js'
import { listIn, objectIn } from '../json.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'

const ROLES = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function'])
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
  private readonly conversations: Conversations
  private readonly file_key: string

  constructor(
    private readonly out: Output,
    file: FileFacts,
  ) {
    this.conversations = new Conversations(out, 'openai')
    this.file_key = keyOfFile(file)
  }

  read(value: unknown): void {
    if (Array.isArray(value)) this.conversations.store({}, value)
    else if (!isJsonObject(value)) return
    else if (isMessage(value)) this.out.message(this.file_key, 'openai', value)
    else if (isLogged(value)) this.logged(value)
    else if (isCompletion(value)) this.completion({}, value)
    else if (isPreference(value)) this.preference(value)
    else if (isConversation(value)) this.store(value, [])
  }

  private store({ messages, ...about }: JsonObject, more: readonly unknown[]): void {
    this.conversations.store(about, [...listIn(messages), ...more])
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
    if (!answered) this.store({ ...about, messages }, [])
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
