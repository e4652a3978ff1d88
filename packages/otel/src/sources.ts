import { isJsonObject } from '@annals/messages/json'
import type { Source } from './dialect.js'
import { jsonOr, messagesIn, type Said, together } from './said.js'
import type { Attributes, SpanEvent } from './telemetry.js'

/** What a span has that messages may stand in. */
export interface Carrier {
  attributes: Attributes
  events: Array<Pick<SpanEvent, 'name' | 'attributes'>>
}

/** Messages that were found, and the names of the attributes and events that say nothing else. */
export interface Found {
  messages: Said[]
  used: string[]
}

/** Messages of a flat list, and fields of one, at most: an index is the sender's. */
const FLAT_MAX = 10_000

/** The messages at a place; undefined where there are none. */
export function messagesAt(source: Source, carrier: Carrier, side: 'input' | 'output'): Found | undefined {
  const role = side === 'input' ? 'user' : 'assistant'
  const { attributes } = carrier
  if ('json' in source) {
    const messages = messagesIn(attributes[source.json], role)
    return found(messages, [source.json])
  }
  if ('gemini' in source) return found(geminiMessages(attributes[source.gemini], role), [source.gemini])
  if ('flat' in source) return flatMessages(attributes, source.flat, source.within, role)
  if ('answer' in source) return answerIn(attributes, source.answer)
  return eventMessages(source.events, carrier, side)
}

function found(messages: Said[], used: string[]): Found | undefined {
  return messages.length > 0 ? { messages, used } : undefined
}

/** What Google's API is sent, or answers. */
function geminiMessages(value: unknown, role: Said['role']): Said[] {
  const read = typeof value === 'string' ? jsonOr(value) : value
  if (!isJsonObject(read)) return []
  const { config, contents, content } = read
  const system = isJsonObject(config) ? config.system_instruction : undefined
  const instructions = isJsonObject(system) ? system.parts : system
  return together([
    messagesIn(instructions === undefined ? [] : { role: 'system', content: instructions }, 'system'),
    messagesIn(contents ?? (isJsonObject(content) ? [content] : []), role),
  ])
}

function flatMessages(
  attributes: Attributes,
  name: string,
  within: string | undefined,
  role: Said['role'],
): Found | undefined {
  const prefix = `${name}.`
  const used = Object.keys(attributes).filter((key) => key.startsWith(prefix))
  if (used.length === 0 || used.length > FLAT_MAX) return undefined
  const list: Tree = {}
  for (const key of used) plant(list, key.slice(prefix.length).split('.'), attributes[key])
  const items = grown(list)
  if (!Array.isArray(items)) return undefined
  const messages = items.map((one) => (within && isJsonObject(one) ? (one[within] ?? {}) : one))
  return found(together([messagesIn(messages.map(unwrapped), role)]), used)
}

type Tree = { [name: string]: Tree | Leaf }
class Leaf {
  constructor(readonly value: unknown) {}
}

function plant(tree: Tree, [name = '', ...rest]: string[], value: unknown): void {
  if (name === '__proto__' || rest.length > 12) return
  if (rest.length === 0) {
    tree[name] ??= new Leaf(value)
    return
  }
  const below = Object.hasOwn(tree, name) ? tree[name] : undefined
  if (below instanceof Leaf) return
  const branch = below ?? {}
  tree[name] = branch
  plant(branch, rest, value)
}

/** Objects and lists: names that are numbers make a list, in their order. */
function grown(tree: Tree): unknown {
  const entries = Object.entries(tree).map(
    ([name, below]) => [name, below instanceof Leaf ? below.value : grown(below)] as const,
  )
  if (entries.length > 0 && entries.every(([name]) => /^\d{1,9}$/.test(name)))
    return entries.sort(([a], [b]) => Number(a) - Number(b)).map(([, value]) => value)
  return Object.fromEntries(entries)
}

/** A message of OpenInference, whose calls and contents are in objects of their own. */
function unwrapped(message: unknown): unknown {
  if (!isJsonObject(message)) return message
  const { contents, tool_calls } = message
  const calls = Array.isArray(tool_calls)
    ? tool_calls.map((one) => (isJsonObject(one) && isJsonObject(one.tool_call) ? one.tool_call : one))
    : tool_calls
  const blocks = Array.isArray(contents)
    ? contents.map((one) =>
        isJsonObject(one) && isJsonObject(one.message_content) ? one.message_content : one,
      )
    : undefined
  const content = message.content ?? blocks
  // A flat content may be JSON of blocks.
  const read = typeof content === 'string' && /^\s*\[\s*\{/.test(content) ? jsonOr(content) : content
  return { ...message, content: read, tool_calls: calls }
}

function answerIn(
  attributes: Attributes,
  { text, tool_calls, object, reasoning }: Extract<Source, { answer: object }>['answer'],
): Found | undefined {
  const at = (name: string | undefined) => (name === undefined ? undefined : attributes[name])
  const calls = at(tool_calls)
  const said = at(text) ?? at(object)
  const message = {
    role: 'assistant',
    content: said ?? '',
    reasoning: at(reasoning),
    tool_calls: typeof calls === 'string' ? jsonOr(calls) : calls,
  }
  const used = [text, tool_calls, object, reasoning].filter(
    (name) => name !== undefined && name in attributes,
  )
  return found(messagesIn([message], 'assistant'), used as string[])
}

const MESSAGE_EVENT = /^gen_ai\.(system|user|assistant|tool)\.message$/
const DETAILS_EVENT = 'gen_ai.client.inference.operation.details'

/** Messages as events: each its own, or all of one side in one. */
function eventMessages(where: string, carrier: Carrier, side: 'input' | 'output'): Found | undefined {
  const events = where === 'span' ? carrier.events : eventsIn(carrier.attributes[where])
  const messages: Said[][] = []
  for (const { name, attributes } of events) {
    const role = MESSAGE_EVENT.exec(name)?.[1] as Said['role'] | undefined
    const body = {
      ...attributes,
      ...contentOfEvent(attributes['gen_ai.event.content']),
      ...(isJsonObject(attributes.body) && attributes.body),
    }
    if (side === 'input') {
      if (role) messages.push(messagesIn([{ role, ...withCalls(body) }], role))
      else if (name === 'gen_ai.content.prompt')
        messages.push(messagesIn(attributes['gen_ai.prompt'], 'user'))
      else if (name === DETAILS_EVENT)
        messages.push(
          messagesIn(attributes['gen_ai.system_instructions'] ?? [], 'system'),
          messagesIn(attributes['gen_ai.input.messages'], 'user'),
        )
    } else if (name === 'gen_ai.choice')
      messages.push(messagesIn([withCalls({ role: 'assistant', ...body })], 'assistant'))
    else if (name === 'gen_ai.content.completion')
      messages.push(messagesIn(attributes['gen_ai.completion'], 'assistant'))
    else if (name === DETAILS_EVENT)
      messages.push(messagesIn(attributes['gen_ai.output.messages'], 'assistant'))
  }
  return found(together(messages), [where === 'span' ? 'events' : where])
}

/** What Azure's clients say in an event, as JSON. */
function contentOfEvent(value: unknown): Record<string, unknown> {
  const read = typeof value === 'string' ? jsonOr(value) : value
  return isJsonObject(read) ? read : {}
}

/** Attributes cannot nest everywhere: what they hold may be JSON. */
function withCalls(body: Record<string, unknown>): Record<string, unknown> {
  const read = Object.fromEntries(
    ['tool_calls', 'message'].map((name) => [
      name,
      typeof body[name] === 'string' ? jsonOr(body[name]) : body[name],
    ]),
  )
  const is_content = typeof read.message === 'string' || Array.isArray(read.message)
  const inner = is_content ? { content: read.message, message: undefined } : {}
  return { ...body, content: blocksOr(body.content), ...read, ...inner }
}

/** Blocks of Bedrock, as Strands writes them, if a text is JSON of them; else the text. */
function blocksOr(content: unknown): unknown {
  const read = typeof content === 'string' ? jsonOr(content) : content
  const is_blocks = Array.isArray(read) && read.length > 0 && read.every(isBedrockBlock)
  return is_blocks ? read : content
}

function isBedrockBlock(one: unknown): boolean {
  if (!isJsonObject(one)) return false
  const names = Object.keys(one)
  return names.length === 1 && /^(text|toolUse|toolResult|image|document|reasoningContent)$/.test(names[0]!)
}

/** What the events of a tool's span say that it was called with, and returned. */
export function toolMessages({ events }: Carrier): [asked: unknown, answered: unknown] {
  const of = (name: string) => events.find((event) => event.name === name)?.attributes
  const asked = of('gen_ai.tool.message')?.content
  const answered = of('gen_ai.choice')?.message
  const blocks = blocksOr(answered)
  const texts = Array.isArray(blocks) ? blocks.map((one) => (isJsonObject(one) ? one.text : undefined)) : []
  const is_text = texts.length > 0 && texts.every((text) => typeof text === 'string')
  return [asked, is_text ? texts.join('\n') : answered]
}

/** Events that an attribute lists, each with its name in `event.name`. */
function eventsIn(value: unknown): Carrier['events'] {
  const list = typeof value === 'string' ? jsonOr(value) : value
  if (!Array.isArray(list)) return []
  return list
    .filter(isJsonObject)
    .map((attributes) => ({ name: String(attributes['event.name'] ?? ''), attributes }))
}
