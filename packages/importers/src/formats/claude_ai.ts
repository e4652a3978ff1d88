import { isJsonObject } from '@annals/messages/json'
import type { Format, Parser } from '../format.js'
import { objectsIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'
import { branchesOf, type TreeNode } from '../tree.js'

/** The parent of the first messages. */
const NOBODY = '00000000-0000-4000-8000-000000000000'

export const CLAUDE_AI: Format = {
  name: 'claude-ai',
  title: 'the export of Claude (the zip, or its conversations.json)',
  knows: ({ chat_messages, uuid }) => Array.isArray(chat_messages) && typeof uuid === 'string',
  open: (output) => new ClaudeAiParser(output),
}

class ClaudeAiParser implements Parser {
  constructor(private readonly out: Output) {}

  read(value: unknown): void {
    if (!isJsonObject(value) || !Array.isArray(value.chat_messages)) return
    const { chat_messages, ...about } = value
    const key = String(about.uuid)
    const configs = { agent: 'claude.ai', title: about.name, model: about.model }
    this.out.session(key, { configs, changed_at: about.updated_at })
    const { nodes, messages } = treeOf(chat_messages)
    const { current, others } = branchesOf(
      nodes,
      textIn(about.current_leaf_message_uuid) ?? [...nodes.keys()].at(-1),
    )
    for (const id of current) this.message(key, id, messages.get(id)!)
    const written = new Set(current)
    this.out.raw(key, 'conversation', about, { native: 'conversation', at: about.updated_at, noise: true })
    for (const { leaf, at, nodes: own } of others) {
      const fork_key = `${key}/${leaf}`
      const facts = { configs: { ...configs, branch: leaf } }
      if (at === undefined) this.out.session(fork_key, facts)
      else this.out.fork(fork_key, key, at, facts)
      for (const id of own) {
        written.add(id)
        this.message(fork_key, id, messages.get(id)!)
      }
      this.out.end(fork_key)
    }
    for (const [id, message] of messages)
      if (!written.has(id)) this.out.raw(key, 'message', message, { native: id })
    for (const [index, one] of chat_messages.entries())
      if (!isJsonObject(one)) this.out.raw(key, 'message', one, { native: `item ${index}` })
    this.out.end(key)
  }

  /** Writes a message. Results of tools stand among the model's own blocks, and become messages of the user's side. */
  private message(key: string, id: string, message: JsonObject): void {
    const { content, text, sender, created_at, ...rest } = message
    const role = sender === 'human' ? 'user' : 'assistant'
    const given = objectsIn(content)
    const blocks = given.length > 0 ? withIds(id, given) : [{ type: 'text', text: textIn(text) ?? '' }]
    const turns = turnsOf(role, [...blocks, ...attached(rest)])
    // The text repeats the blocks.
    const repeats =
      given.length > 0 &&
      given
        .map((block) => textIn(block.text) ?? '')
        .join('\n')
        .includes(textIn(text) ?? '')
    const meta = { claude_ai: { ...without(rest), ...(!repeats && given.length > 0 && { text }) } }
    for (const [index, turn] of turns.entries())
      this.out.message(key, 'anthropic', turn, {
        // The first one has the message's own name, where a branch may leave.
        native: index === turns.length - 1 ? id : `${id}/${index}`,
        at: created_at,
        ...(index === 0 && { meta }),
      })
  }
}

function treeOf(list: unknown[]): { nodes: Map<string, TreeNode>; messages: Map<string, JsonObject> } {
  const nodes = new Map<string, TreeNode>()
  const messages = new Map<string, JsonObject>()
  let previous: string | undefined
  for (const [index, message] of list.entries()) {
    if (!isJsonObject(message)) continue
    const id = textIn(message.uuid) ?? `message ${index}`
    const named = textIn(message.parent_message_uuid)
    // Older exports say nothing of branches.
    nodes.set(id, { id, parent: named === undefined ? previous : named === NOBODY ? undefined : named })
    messages.set(id, message)
    previous = id
  }
  return { nodes, messages }
}

/** Older exports have calls and results without ids: each result answers the call before it. */
function withIds(message_id: string, blocks: JsonObject[]): JsonObject[] {
  let count = 0
  let last = ''
  return blocks.map((block) => {
    if (block.type === 'tool_use') {
      last = textIn(block.id) ?? `toolu_${message_id}_${count++}`
      return { ...block, id: last }
    }
    return block.type === 'tool_result' ? { ...block, tool_use_id: textIn(block.tool_use_id) ?? last } : block
  })
}

function turnsOf(role: string, blocks: JsonObject[]): JsonObject[] {
  const turns: { role: string; content: JsonObject[] }[] = []
  for (const block of blocks) {
    const speaker = block.type === 'tool_result' ? 'user' : role
    const turn = turns.at(-1)
    if (turn && turn.role === speaker) turn.content.push(block)
    else turns.push({ role: speaker, content: [block] })
  }
  return turns.length > 0 ? turns : [{ role, content: [] }]
}

/** The text of what the user attached. */
function attached({ attachments }: JsonObject): JsonObject[] {
  return objectsIn(attachments).flatMap(({ extracted_content, file_name }) => {
    const text = textIn(extracted_content)
    return text === undefined
      ? []
      : [{ type: 'text', text: `${textIn(file_name) ?? 'attachment'}:\n${text}` }]
  })
}
