import { isJsonObject, parseJson, writeJson } from '@annals/messages/json'

/** One message of a conversation, whoever's convention it came in. */
export interface Said {
  role: 'system' | 'user' | 'assistant' | 'tool'
  text: string
  /** Blocks that are no text: media, and what is not known. */
  other: unknown[]
  reasoning: string
  calls: Array<{ id: string; name: string; arguments: string }>
  /** Of a result: the call that it answers. */
  call_id: string
}

const ROLES: Readonly<Record<string, Said['role']>> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  human: 'user',
  assistant: 'assistant',
  ai: 'assistant',
  model: 'assistant',
  tool: 'tool',
  function: 'tool',
}

const NOTHING: Omit<Said, 'role'> = { text: '', other: [], reasoning: '', calls: [], call_id: '' }

/**
 * The messages that a value says: a list of messages, one message, an object with `messages`, or a text. `role`: of what
 * does not name any. Results of tools become a message each; what an assistant says in several is one.
 */
export function messagesIn(value: unknown, role: Said['role']): Said[] {
  const read = typeof value === 'string' ? jsonOr(value) : value
  if (typeof read === 'string') return read === '' ? [] : [{ ...NOTHING, role, text: read }]
  if (isJsonObject(read)) {
    const list = read.messages ?? read.choices ?? read.generations
    if (Array.isArray(list)) return messagesIn(list, role)
    return joined(messageIn(read, role))
  }
  if (!Array.isArray(read)) return []
  // A list of lists, as LangChain has it, and a list of blocks, which is one message.
  if (read.every(Array.isArray)) return read.flatMap((list) => messagesIn(list, role))
  const isBlocks = read.length > 0 && read.every((one) => typeof one === 'string' || isBlock(one))
  if (isBlocks) return joined(messageIn({ role, content: read }, role))
  return joined(read.flatMap((one) => (isJsonObject(one) ? messageIn(one, role) : messagesIn(one, role))))
}

function isBlock(one: unknown): boolean {
  if (!isJsonObject(one) || typeof one.type !== 'string' || one.role !== undefined) return false
  // A choice of an answer, and a message of LangChain.
  return !('message' in one) && !('kwargs' in one)
}

/** The messages that one object says. */
function messageIn(given: Record<string, unknown>, otherwise: Said['role']): Said[] {
  // A choice of an answer, and a message of LangChain.
  if (isJsonObject(given.message)) return messageIn({ ...given.message }, otherwise)
  if (isJsonObject(given.kwargs)) {
    const kind = [given.id].flat().at(-1)
    return messageIn(
      {
        role: String(kind)
          .replace(/Message(Chunk)?$/, '')
          .toLowerCase(),
        ...given.kwargs,
      },
      otherwise,
    )
  }
  const role = ROLES[String(given.role ?? given.type ?? '').toLowerCase()] ?? otherwise
  const said: Said = { ...NOTHING, role, other: [], calls: [] }
  const results: Said[] = []
  const { content, parts } = given
  for (const block of [parts ?? content ?? []].flat() as unknown[]) addBlock(said, results, block)
  const reasoning = given.reasoning_content ?? given.reasoning
  if (typeof reasoning === 'string') said.reasoning ||= reasoning
  const { tool_calls, function_call } = given
  for (const call of [tool_calls ?? [], function_call ?? []].flat()) addCall(said, call)
  const id = given.tool_call_id ?? (role === 'tool' ? given.id : undefined)
  if (typeof id === 'string') said.call_id = id
  const is_empty =
    said.text === '' && said.other.length === 0 && said.calls.length === 0 && said.reasoning === ''
  return is_empty && (results.length > 0 || role !== 'tool') ? results : [...results, said]
}

function addBlock(said: Said, results: Said[], given: unknown): void {
  const block = typeof given === 'string' ? { type: 'text', text: given } : given
  if (!isJsonObject(block)) return
  const type = String(block.type ?? '').replaceAll('-', '_')
  const text = block.text ?? block.content
  if (block.thought === true && typeof text === 'string') said.reasoning += text
  else if (isJsonObject(block.functionCall ?? block.function_call)) addCall(said, block)
  else if (isJsonObject(block.functionResponse ?? block.function_response)) addResult(results, block)
  else if (isJsonObject(block.toolUse)) addCall(said, block.toolUse)
  else if (isJsonObject(block.toolResult)) addResult(results, block.toolResult)
  else if (type === 'tool_call' || type === 'tool_use' || type === 'function_call') addCall(said, block)
  else if (/^(tool_call_response|tool_result|function_call_output|tool_response)$/.test(type))
    addResult(results, block)
  else if (type === 'reasoning' || type === 'thinking') {
    const thought = block.content ?? block.text ?? block.thinking
    if (typeof thought === 'string') said.reasoning += thought
  } else if (typeof text === 'string' && ['', 'text', 'input_text', 'output_text'].includes(type))
    addText(said, text)
  else said.other.push(block)
}

function addText(said: Said, text: string): void {
  said.text += said.text === '' || text === '' ? text : `\n${text}`
}

function addCall(said: Said, given: unknown): void {
  if (!isJsonObject(given)) return
  const inner = given.function ?? given.functionCall ?? given.function_call ?? given.tool_call ?? given
  if (!isJsonObject(inner)) return
  const deeper = isJsonObject(inner.function) ? inner.function : inner
  const name = deeper.name ?? deeper.toolName ?? given.toolName
  if (typeof name !== 'string' || name === '') return
  const args = [deeper.arguments, deeper.args, deeper.input, given.args, given.input].find(
    (one) => one != null,
  )
  const id =
    given.id ?? given.call_id ?? given.toolCallId ?? given.toolUseId ?? given.tool_call_id ?? inner.id
  said.calls.push({ id: typeof id === 'string' ? id : '', name, arguments: textIn(args ?? {}) })
}

function addResult(results: Said[], given: Record<string, unknown>): void {
  const inner = (given.functionResponse ?? given.function_response ?? given) as Record<string, unknown>
  const id =
    inner.id ??
    inner.call_id ??
    inner.toolCallId ??
    inner.toolUseId ??
    inner.tool_call_id ??
    inner.tool_use_id ??
    inner.name
  const found = [inner.response, inner.result, inner.output, inner.content].find((one) => one != null)
  // The AI SDK says of what type a result is.
  const value =
    isJsonObject(found) && 'value' in found && typeof found.type === 'string' ? found.value : found
  results.push({
    ...NOTHING,
    role: 'tool',
    call_id: typeof id === 'string' ? id : '',
    text: textOfResult(value),
  })
}

function textOfResult(value: unknown): string {
  const texts = Array.isArray(value) ? value.map((one) => (isJsonObject(one) ? one.text : undefined)) : []
  if (texts.length > 0 && texts.every((text) => typeof text === 'string')) return texts.join('\n')
  return value === undefined ? '' : textIn(value)
}

/** What an assistant says in messages that follow each other is one message: conventions differ in that. */
function joined(list: Said[]): Said[] {
  const messages: Said[] = []
  for (const said of list) {
    const last = messages.at(-1)
    if (said.role !== 'assistant' || last?.role !== 'assistant') {
      messages.push(said)
      continue
    }
    addText(last, said.text)
    last.reasoning ||= said.reasoning
    last.other.push(...said.other)
    last.calls.push(...said.calls)
  }
  return messages
}

/** Two lists that are one conversation. */
export function together(lists: Said[][]): Said[] {
  return joined(lists.flat())
}

/** The value that a text says as JSON, if it is an object or a list; otherwise the text. */
export function jsonOr(text: string): unknown {
  if (!/^\s*[[{"]/.test(text)) return text
  try {
    return parseJson(text)
  } catch {
    return text
  }
}

/** A text unchanged, anything else as JSON. */
export function textIn(value: unknown): string {
  return typeof value === 'string' ? value : writeJson(value)
}

/** What tells a message apart in a conversation, whoever repeats it: without ids, thoughts, and space around. */
export function fingerprint({ role, text, other, calls }: Said): string {
  const called = calls.map(({ name, arguments: given }) => [name, sortedText(jsonOr(given))])
  return writeJson([role, text.trim(), other, called])
}

function sortedText(value: unknown): string {
  return typeof value === 'string' ? value : writeJson(sorted(value))
}

/** What was parsed is of bounded depth. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isJsonObject(value)) return value
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]))
}

/** A message in the format of OpenAI's Chat Completions. */
export function openAiMessage({ role, text, other, reasoning, calls, call_id }: Said): object {
  const blocks = other.map(openAiBlock)
  const content = blocks.length === 0 ? text : [...(text === '' ? [] : [{ type: 'text', text }]), ...blocks]
  if (role === 'tool') {
    const told = blocks.length === 0 ? text : writeJson([text, ...other])
    return { role, tool_call_id: call_id || 'unknown', content: told }
  }
  if (role !== 'assistant') return { role, content }
  const tool_calls = calls.map(({ id, name, arguments: given }, index) => ({
    id: id || `call_${index + 1}`,
    type: 'function',
    function: { name, arguments: given },
  }))
  return {
    role,
    content: text === '' && blocks.length === 0 && calls.length > 0 ? null : flatText(text, other),
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls }),
  }
}

function flatText(text: string, other: unknown[]): string {
  return [...(text === '' ? [] : [text]), ...other.map((block) => writeJson(block))].join('\n')
}

function openAiBlock(block: unknown): object {
  if (!isJsonObject(block)) return { type: 'text', text: writeJson(block) }
  const { type, image_url, image, uri, url } = block
  if (type === 'image_url' && isJsonObject(image_url) && typeof image_url.url === 'string')
    return { type, image_url: { url: image_url.url } }
  const inner = isJsonObject(image_url) ? image_url.url : isJsonObject(image) ? image.url : image
  const where = [image_url, inner, uri, url].find(
    (one) => typeof one === 'string' && /^(https?:|data:)/.test(one),
  )
  if (where !== undefined && /image/.test(`${type} ${block.modality} ${block.mediaType} ${block.mime_type}`))
    return { type: 'image_url', image_url: { url: where } }
  return { type: 'text', text: writeJson(block) }
}
