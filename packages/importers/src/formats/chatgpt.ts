import { isJsonObject, writeJson } from '@annals/messages/json'
import type { Format, Parser } from '../format.js'
import { isEmpty, listIn, objectIn, objectsIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'
import { branchesOf, type TreeNode } from '../tree.js'

export const CHATGPT: Format = {
  name: 'chatgpt',
  title: 'the export of ChatGPT (the zip, or its conversations.json)',
  has_pictures: true,
  // Of a long conversation, the beginning may show no node that is whole.
  knows: ({ mapping, create_time }) =>
    isJsonObject(mapping) &&
    (isEmpty(mapping)
      ? create_time !== undefined
      : Object.values(mapping).some((node) => isJsonObject(node) && 'children' in node)),
  open: (output) => new ChatGptParser(output),
}

type Nodes = ReadonlyMap<string, { value: JsonObject }>

class ChatGptParser implements Parser {
  constructor(private readonly out: Output) {}

  read(value: unknown): void {
    if (!isJsonObject(value) || !isJsonObject(value.mapping)) return
    const { mapping, ...about } = value
    const key = textIn(about.conversation_id) ?? textIn(about.id) ?? `${about.title} ${about.create_time}`
    const nodes = new Map<string, TreeNode & { value: JsonObject }>()
    for (const [id, node] of Object.entries(mapping as JsonObject))
      nodes.set(id, {
        id,
        parent: textIn(objectIn(node).parent),
        value: isJsonObject(node) ? node : { node },
      })
    const { title, default_model_slug: model, gizmo_id } = about
    const configs = { agent: 'chatgpt', title, model, gizmo_id }
    this.out.session(key, { configs, changed_at: about.update_time })
    const { current, others } = branchesOf(nodes, textIn(about.current_node))
    const said = new Set<string>()
    const written = new Set(current)
    const calls = new Calls([], nodes, about.create_time)
    for (const id of current) if (this.node(key, id, nodes, calls)) said.add(id)
    this.out.raw(key, 'conversation', about, { native: 'conversation', at: about.update_time, noise: true })
    for (const { leaf, at, nodes: own } of others) {
      const fork_key = `${key}/${leaf}`
      const before = current.slice(0, current.indexOf(at ?? '') + 1)
      const from = before.findLast((id) => said.has(id))
      const facts = { configs: { ...configs, branch: leaf } }
      if (from === undefined) this.out.session(fork_key, facts)
      else this.out.fork(fork_key, key, from, facts)
      const called = new Calls(before, nodes, about.create_time)
      for (const id of own) {
        written.add(id)
        this.node(fork_key, id, nodes, called)
      }
      this.out.end(fork_key)
    }
    // Nodes that belong to no root.
    for (const [id, { value: node }] of nodes)
      if (!written.has(id)) this.out.raw(key, 'node', node, { native: id })
    this.out.end(key)
  }

  /** Writes what a node says. Returns whether it says anything. */
  private node(key: string, id: string, nodes: Nodes, calls: Calls): boolean {
    calls.pass(id, nodes)
    const node = nodes.get(id)!.value
    const beside = without(node, 'id', 'message', 'parent', 'children')
    if (!isJsonObject(node.message)) {
      if (isEmpty(beside)) return false
      this.out.raw(key, 'node', node, { native: id, noise: true })
      return true
    }
    const { message } = node
    const blob = blobOf(id, message, calls)
    const facts = { native: id, at: message.create_time ?? calls.began }
    // The default of a conversation may be `auto`.
    const model = textIn(objectIn(message.metadata).model_slug)
    if (model !== undefined && blob?.role === 'assistant') this.out.session(key, { configs: { model } })
    if (blob === undefined) this.out.raw(key, kindOf(message), node, { ...facts, noise: isHidden(message) })
    else {
      const meta = { chatgpt: { ...about(message), ...beside } }
      const said = hasFailed(message) ? failedResult(blob) : undefined
      if (said) this.out.message(key, 'anthropic', said, { ...facts, meta })
      else this.out.message(key, 'openai', blob, { ...facts, meta })
    }
    return true
  }
}

/** A node's message in OpenAI's chat format; undefined where it is none. */
function blobOf(id: string, message: JsonObject, calls: Calls): JsonObject | undefined {
  const role = objectIn(message.author).role
  const content = objectIn(message.content)
  const instructions = instructionsOf(message)
  if (instructions !== undefined) return { role: 'system', content: instructions }
  const text = textOf(content) ?? (role === 'tool' ? writeJson(content) : undefined)
  if (text === undefined || isHidden(message)) return undefined
  const said = partsOf(content) ?? text
  if (content.content_type === 'thoughts') return { role: 'assistant', content: '', reasoning_content: text }
  if (role === 'user' || role === 'system') return text === '' ? undefined : { role, content: said }
  if (role === 'assistant') {
    const recipient = textIn(message.recipient) ?? 'all'
    if (recipient === 'all') return { role, content: said }
    const called = { name: recipient, arguments: argumentsOf(text) }
    return { role, content: null, tool_calls: [{ id: `call_${id}`, type: 'function', function: called }] }
  }
  if (role !== 'tool') return undefined
  const { name } = objectIn(message.author)
  const asked = calls.get(name) ?? calls.get(undefined)
  return asked === undefined ? undefined : { role, tool_call_id: `call_${asked}`, content: said }
}

/**
 * What the user told of themselves and of the answers that they want, which each model was sent. It stands in the content,
 * or since 2025 beside it.
 */
function instructionsOf({ content, metadata }: JsonObject): string | undefined {
  const { content_type, user_profile, user_instructions, model_set_context } = objectIn(content)
  if (content_type === 'model_editable_context') return textIn(model_set_context)
  if (content_type !== 'user_editable_context') return undefined
  const { about_user_message, about_model_message } = objectIn(objectIn(metadata).user_context_message_data)
  const said = [textIn(about_user_message) ?? user_profile, textIn(about_model_message) ?? user_instructions]
  return textIn(said.filter((one) => textIn(one) !== undefined).join('\n\n'))
}

/** Whether a tool's answer says that it failed. */
function hasFailed({ author, content, metadata }: JsonObject): boolean {
  const { status } = objectIn(objectIn(metadata).aggregate_result)
  const has_failed = objectIn(content).content_type === 'system_error' || /^failed/.test(String(status))
  return objectIn(author).role === 'tool' && has_failed
}

/** OpenAI's messages have no mark of failure. */
function failedResult({ tool_call_id, content }: JsonObject): JsonObject | undefined {
  if (typeof content !== 'string') return undefined
  return {
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: tool_call_id, content, is_error: true }],
  }
}

/** Texts and pictures, if there is a picture. Where it is stands in place of its address until it is read. */
function partsOf({ parts }: JsonObject): JsonObject[] | undefined {
  if (!objectsIn(parts).some(isPicture)) return undefined
  return listIn(parts)
    .map((part) =>
      isPicture(part)
        ? { type: 'image_url', image_url: { url: part.asset_pointer } }
        : { type: 'text', text: textOfPart(part) },
    )
    .filter(({ text }) => text !== '')
}

function isPicture(part: unknown): part is JsonObject {
  const { content_type, asset_pointer } = objectIn(part)
  return content_type === 'image_asset_pointer' && typeof asset_pointer === 'string'
}

/** The last call of each tool, and of any, on a path. */
class Calls {
  private readonly last = new Map<unknown, string>()

  /** `began`: when the conversation did, which is as much as is known of a message without a time. */
  constructor(
    path: readonly string[],
    nodes: Nodes,
    readonly began: unknown,
  ) {
    for (const id of path) this.pass(id, nodes)
  }

  pass(id: string, nodes: Nodes): void {
    const { author, recipient } = objectIn(nodes.get(id)!.value.message)
    if (objectIn(author).role !== 'assistant' || (textIn(recipient) ?? 'all') === 'all') return
    this.last.set(recipient, id)
    this.last.set(undefined, id)
  }

  get(tool: unknown): string | undefined {
    return this.last.get(tool)
  }
}

/** The text of a message's content, with what is no text as JSON; undefined for what no reader would take for a text. */
function textOf(content: JsonObject): string | undefined {
  const { content_type, parts, text, thoughts } = content
  if (Array.isArray(thoughts))
    return objectsIn(thoughts)
      .map((one) => textIn(one.content) ?? textIn(one.summary) ?? '')
      .join('\n\n')
  if (Array.isArray(parts)) return parts.map(textOfPart).join('\n')
  if (typeof text === 'string' && TEXTS.has(content_type as string)) return text
  return textIn(content_type === 'tether_browsing_display' ? content.result : undefined)
}

/** Kinds of content whose text is all that they say. */
const TEXTS = new Set(['code', 'execution_output', 'text', 'tether_quote', 'system_error'])

function textOfPart(part: unknown): string {
  return typeof part === 'string' ? part : (textIn(objectIn(part).text) ?? writeJson(part))
}

/** Fields of a message that are not in its blob. */
function about(message: JsonObject): JsonObject {
  const { content, ...rest } = message
  const { parts, text, ...others } = objectIn(content)
  if (parts === undefined && text !== undefined && typeof text !== 'string') return { ...rest, content }
  const is_plain = listIn(parts).every((part) => typeof part === 'string')
  return { ...rest, content: is_plain ? others : content }
}

function argumentsOf(text: string): string {
  return text.trimStart().startsWith('{') ? text : writeJson({ input: text })
}

function isHidden({ metadata }: JsonObject): boolean {
  return objectIn(metadata).is_visually_hidden_from_conversation === true
}

function kindOf({ author, content }: JsonObject): string {
  return textIn(objectIn(content).content_type) ?? textIn(objectIn(author).role) ?? 'message'
}
