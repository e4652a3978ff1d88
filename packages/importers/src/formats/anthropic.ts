import { isJsonObject } from '@annals/messages/json'
import { Conversations } from '../conversations.js'
import { type FileFacts, type Format, keyOfFile, type Parser } from '../format.js'
import { listIn, objectIn, objectsIn } from '../json.js'
import { timeIn } from '../other_messages.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'

/** Blocks that only Anthropic's messages have. */
const OWN_BLOCKS = new Set([
  'tool_use',
  'tool_result',
  'thinking',
  'redacted_thinking',
  'server_tool_use',
  'document',
])

export const ANTHROPIC: Format = {
  name: 'anthropic',
  title: "conversations in the format of Anthropic's Messages API",
  knows: (sample) =>
    isAnswer(sample) ||
    isMessage(sample) ||
    isRequest(sample) ||
    isRequest(objectIn(sample.request)) ||
    isRequest(objectIn(sample.params)) ||
    (typeof sample.custom_id === 'string' && Array.isArray(objectIn(sample.params).messages)) ||
    isAnswer(objectIn(sample.response)) ||
    isAnswer(objectIn(objectIn(sample.result).message)),
  open: (output, file) => new AnthropicParser(output, file),
}

class AnthropicParser implements Parser {
  private readonly conversations: Conversations
  private readonly file_key: string

  constructor(
    private readonly out: Output,
    file: FileFacts,
  ) {
    this.conversations = new Conversations(out, 'anthropic')
    this.file_key = keyOfFile(file)
  }

  read(value: unknown): void {
    if (Array.isArray(value)) this.conversations.store({}, value)
    else if (!isJsonObject(value)) return
    else if (isJsonObject(value.request) || isJsonObject(value.params)) {
      const { request, params, response, ...rest } = value
      this.store(
        { ...rest, ...objectIn(request), ...objectIn(params) },
        isJsonObject(response) ? [response] : [],
      )
    } else if (isJsonObject(value.result)) {
      // Of a batch.
      const { result, ...rest } = value
      const { message, ...others } = result as JsonObject
      this.store({ ...rest, result: others }, isJsonObject(message) ? [message] : [])
    } else if (isAnswer(value) && this.isAlone(value))
      this.store({ id: value.id, model: value.model }, [value])
    else if ('role' in value) this.out.message(this.file_key, 'anthropic', value, { at: timeIn(value) })
    else this.store(value, [])
  }

  /** An answer has a name of its own, and is no line of a conversation. */
  private isAlone({ id }: JsonObject): boolean {
    return typeof id === 'string' && !this.out.isOpen(this.file_key)
  }

  private store({ system, messages, ...about }: JsonObject, more: readonly unknown[]): void {
    const said = system == null ? [] : [{ role: 'system', content: system }]
    const answers = more.map((one) => (isJsonObject(one) && isAnswer(objectIn(one.body)) ? one.body : one))
    this.conversations.store(about, [...said, ...listIn(messages), ...answers])
  }
}

function isAnswer({ type, role, content }: JsonObject): boolean {
  return (
    type === 'message' &&
    role === 'assistant' &&
    Array.isArray(content) &&
    content.every((block) => objectIn(block).type !== 'output_text')
  )
}

function isRequest(value: JsonObject): boolean {
  if (!Array.isArray(value.messages)) return false
  const is_system =
    typeof value.system === 'string' || objectsIn(value.system).some(({ type }) => type === 'text')
  return (
    is_system ||
    'stop_sequences' in value ||
    'anthropic_version' in value ||
    objectsIn(value.messages).some(isMessage)
  )
}

function isMessage({ role, content }: JsonObject): boolean {
  return typeof role === 'string' && objectsIn(content).some(({ type }) => OWN_BLOCKS.has(type as string))
}
