import { isJsonObject } from '@annals/messages/json'
import { type FileFacts, type Format, keyOfFile, type Parser } from '../format.js'
import { digestOf } from '../ids.js'
import { objectIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'

const CONFIGS = ['model', 'metadata', 'status', 'temperature']
/** Parts of content that only items of this API have. */
const OWN_PARTS = new Set(['input_text', 'output_text', 'input_image', 'input_file', 'refusal'])

export const OPENAI_RESPONSES: Format = {
  name: 'openai-responses',
  title: "responses and conversations of OpenAI's Responses API",
  knows: (sample) =>
    sample.object === 'response' ||
    isResponse(sample.response) ||
    isResponse(bodyIn(sample.response)) ||
    isBatched(sample) ||
    (Array.isArray(sample.output) && (sample.input !== undefined || 'previous_response_id' in sample)) ||
    (Array.isArray(sample.input) && sample.input.some(isItem)) ||
    (Array.isArray(sample.items) && sample.items.some(isItem)) ||
    (sample.object === 'list' && Array.isArray(sample.data) && sample.data.some(isItem)) ||
    isItem(sample),
  open: (output, file) => new OpenAiResponsesParser(output, file),
}

class OpenAiResponsesParser implements Parser {
  private readonly file_key: string
  private read_so_far = 0
  /** The conversation of each response, for those that go on with it. */
  private readonly keys = new Map<string, string>()
  /** What the items of each conversation say. */
  private readonly said = new Map<string, string[]>()

  constructor(
    private readonly out: Output,
    file: FileFacts,
  ) {
    this.file_key = keyOfFile(file)
  }

  read(value: unknown): void {
    if (Array.isArray(value)) this.conversation({ items: value })
    else if (!isJsonObject(value)) return
    else if (isItem(value)) this.item(this.file_key, value)
    else if (isBatched(value)) this.conversation({ ...(value.body as JsonObject), ...withoutBodies(value) })
    else if (isJsonObject(value.response) || isJsonObject(value.request)) {
      const { request, response } = value
      const answer = bodyIn(response) ?? objectIn(response)
      this.conversation({ ...(bodyIn(request) ?? objectIn(request)), ...withoutBodies(value), ...answer })
    } else this.conversation(value)
  }

  private conversation(value: JsonObject): void {
    const { input, output, items, data, instructions, ...rest } = value
    const { created_at } = rest
    const key = this.keyOf(value)
    const is_open = this.out.isOpen(key)
    const configs = Object.fromEntries(CONFIGS.map((name) => [name, rest[name]]))
    this.out.session(key, { user: rest.user, configs, changed_at: created_at })
    if (typeof value.id === 'string' && this.keys.size < 100_000) this.keys.set(value.id, key)
    const others: JsonObject = { ...rest }
    if (typeof instructions !== 'string' || is_open) others.instructions = instructions
    else if (instructions !== '')
      this.out.message(
        key,
        'responses',
        { role: 'developer', content: instructions },
        { native: 'instructions', at: created_at },
      )
    const all = typeof input === 'string' ? [{ role: 'user', content: input }] : input
    const asked = Array.isArray(all) ? this.unsaid(key, all) : all
    for (const [name, list] of Object.entries({ input: asked, items, data })) {
      if (Array.isArray(list)) this.items(key, list, created_at)
      else others[name] = list
    }
    if (Array.isArray(output)) this.items(key, output, created_at)
    else others.output = output
    const told = Object.entries(others).filter(([, one]) => one != null)
    this.out.raw(key, 'response', Object.fromEntries(told), { at: created_at, noise: true })
  }

  private items(key: string, list: readonly unknown[], at: unknown): void {
    const said = this.said.get(key) ?? []
    this.said.set(key, said)
    for (const item of list) {
      said.push(nameOf(item))
      this.item(key, item, at)
    }
  }

  /** The items of a request after those that its conversation has: a request may repeat all of it. */
  private unsaid(key: string, list: readonly unknown[]): unknown[] {
    const known = this.said.get(key) ?? []
    let same = 0
    while (same < list.length && same < known.length && nameOf(list[same]) === known[same]) same += 1
    return list.slice(same)
  }

  private item(key: string, item: unknown, at?: unknown): void {
    const id = isJsonObject(item) && typeof item.id === 'string' && item.id !== '' ? item.id : undefined
    const made_at = isJsonObject(item) ? (item.created_at ?? at) : at
    this.out.message(key, 'responses', item, { native: id, at: made_at })
  }

  private keyOf(value: JsonObject): string {
    this.read_so_far += 1
    const { conversation, previous_response_id, id } = value
    const named = isJsonObject(conversation) ? conversation.id : conversation
    if (typeof named === 'string') return named
    const previous = this.keys.get(previous_response_id as string)
    if (previous !== undefined) return previous
    return typeof id === 'string' ? id : `${this.read_so_far} ${digestOf(value.input ?? value.items)}`
  }
}

/** What makes two items the same: ids and states come with an answer alone. */
function nameOf(item: unknown): string {
  return digestOf(
    isJsonObject(item) ? without({ type: 'message', ...item }, 'id', 'status', 'annotations') : item,
  )
}

/** An item that is no message of another API. */
function isItem(value: unknown): boolean {
  if (!isJsonObject(value)) return false
  const { type, content, call_id } = value
  if (type === 'message' && 'role' in value)
    return (
      Array.isArray(content) &&
      content.some((part) => isJsonObject(part) && OWN_PARTS.has(part.type as string))
    )
  return typeof call_id === 'string' && /^(?:function|custom_tool)_call(?:_output)?$/.test(String(type))
}

function isResponse(value: unknown): boolean {
  return isJsonObject(value) && value.object === 'response'
}

/** A line of a batch's input. */
function isBatched({ custom_id, body }: JsonObject): boolean {
  return (
    typeof custom_id === 'string' &&
    isJsonObject(body) &&
    body.input !== undefined &&
    body.model !== undefined
  )
}

function bodyIn(value: unknown): JsonObject | undefined {
  return isJsonObject(value) && isJsonObject(value.body) ? value.body : undefined
}

function withoutBodies({ request: _, response: __, body: ___, ...others }: JsonObject): JsonObject {
  return others
}
