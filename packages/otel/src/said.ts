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
  /** Of a result: the call failed, as the convention says. */
  is_error?: true
  /** It is a whole answer: another one that follows it is one more to choose from. */
  is_whole?: true
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
  toolresult: 'tool',
  tool_result: 'tool',
  gpt: 'assistant',
  chatgpt: 'assistant',
  bot: 'assistant',
  agent: 'assistant',
  observation: 'tool',
  human_message: 'user',
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
    const list = read.messages ?? read.choices ?? read.generations ?? read.replies
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
  // A choice of an answer, and messages of LangChain.
  if ('message' in one || 'kwargs' in one) return false
  return !(Object.hasOwn(ROLES, one.type.toLowerCase()) && ('content' in one || 'data' in one))
}

/** The messages that one object says. */
function messageIn(given: Record<string, unknown>, otherwise: Said['role']): Said[] {
  // A choice of an answer, and a message of LangChain.
  if (isJsonObject(given.message)) {
    const { finish_reason } = given
    return messageIn(
      { ...(typeof finish_reason === 'string' && { finish_reason }), ...given.message },
      otherwise,
    )
  }
  if (isJsonObject(given.data) && typeof given.type === 'string' && !('content' in given))
    return messageIn({ role: given.type, ...given.data }, otherwise)
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
  const speaker = given.role ?? given.from ?? given.type
  const role = ROLES[String(speaker ?? '').toLowerCase()] ?? otherwise
  const said: Said = { ...NOTHING, role, other: [], calls: [] }
  const results: Said[] = []
  // `value` is ShareGPT's.
  const content = given.content ?? given.value ?? given.text
  for (const block of [given.parts ?? content ?? []].flat() as unknown[]) addBlock(said, results, block)
  if (typeof given.finish_reason === 'string' && given.finish_reason !== '') said.is_whole = true
  const reasoning = given.reasoning_content ?? given.reasoning
  if (typeof reasoning === 'string') said.reasoning ||= reasoning
  const { function_call, function_call_name: name, function_call_arguments_json: args } = given
  const called = typeof name === 'string' ? { name, arguments: args } : function_call
  for (const call of [given.tool_calls ?? given.toolCalls ?? [], called ?? []].flat()) addCall(said, call)
  const id = given.tool_call_id ?? given.toolCallId ?? (role === 'tool' ? given.id : undefined)
  if (typeof id === 'string') said.call_id = id
  if (role === 'tool' && hasFailed(given)) said.is_error = true
  // Koog says calls that it repeats as the tool.
  if (said.role === 'tool' && said.calls.length > 0) said.role = 'assistant'
  const is_empty =
    said.text === '' && said.other.length === 0 && said.calls.length === 0 && said.reasoning === ''
  if (is_empty && (results.length > 0 || role !== 'tool')) return results
  // What an assistant has beside its calls answers these.
  return role === 'assistant' ? [said, ...results] : [...results, said]
}

function addBlock(said: Said, results: Said[], given: unknown): void {
  const block = typeof given === 'string' ? { type: 'text', text: given } : given
  if (!isJsonObject(block)) return
  const type = String(block.type ?? '').replaceAll('-', '_')
  const text = block.text ?? block.content
  // A part of the AI SDK's pages has a call and its result.
  if (typeof block.toolCallId === 'string' && typeof block.state === 'string')
    addUiTool(said, results, block, type)
  else if (isJsonObject(block.toolInvocation))
    addBlock(said, results, { ...block.toolInvocation, type: 'dynamic_tool' })
  else if (block.thought === true && typeof text === 'string') said.reasoning += text
  else if (isJsonObject(block.functionCall ?? block.function_call)) addCall(said, block)
  else if (isJsonObject(block.functionResponse ?? block.function_response)) addResult(results, block)
  else if (isJsonObject(block.toolUse)) addCall(said, block.toolUse)
  else if (isJsonObject(block.toolResult) && type !== 'toolResponse') addResult(results, block.toolResult)
  else if (isJsonObject(block.toolRequest)) addCall(said, block.toolRequest)
  else if (isJsonObject(block.toolResponse)) addResult(results, block.toolResponse)
  else if (isJsonObject(block.tool_call_result)) addResult(results, block.tool_call_result)
  else if (type === 'toolRequest' && isJsonObject(block.toolCall))
    addCall(said, { id: block.id, ...objectOr(block.toolCall.value) })
  else if (type === 'toolResponse' && isJsonObject(block.toolResult))
    addResult(results, {
      id: block.id,
      result: block.toolResult.value ?? block.toolResult.error,
      status: block.toolResult.status,
    })
  else if (
    /^(tool_call|tool_use|function_call|toolCall)$/.test(type) ||
    (type === 'function' && isJsonObject(block.function)) ||
    (type === '' && isJsonObject(block.tool_call))
  )
    addCall(said, block)
  else if (/^(tool_call_response|tool_result|function_call_output|tool_response)$/.test(type))
    addResult(results, block)
  else if (type === 'reasoning' || type === 'thinking' || type === 'think') {
    const thought = block.content ?? block.text ?? block.thinking ?? block.think
    if (typeof thought === 'string') said.reasoning += thought
  } else if (typeof text === 'string' && ['', 'text', 'input_text', 'output_text'].includes(type))
    addText(said, text)
  else said.other.push(block)
}

/** `tool-weather` or `dynamic-tool`, with what it was called with, and what it returned. */
function addUiTool(said: Said, results: Said[], part: Record<string, unknown>, type: string): void {
  const { toolCallId: id, state, output, result, errorText } = part
  const input = part.input ?? part.args ?? part.rawInput
  addCall(said, { id, name: part.toolName ?? type.replace(/^tool_/, ''), arguments: input })
  const found = errorText ?? output ?? result
  if (found === undefined && !/^(output-|result)/.test(String(state))) return
  addResult(results, { id, result: found ?? null, ...(state === 'output-error' && { status: 'error' }) })
}

/** By whatever flag conventions say that a call failed. */
function hasFailed({ is_error, isError, error, status }: Record<string, unknown>): boolean {
  return is_error === true || isError === true || error === true || status === 'error'
}

function objectOr(value: unknown): Record<string, unknown> {
  return isJsonObject(value) ? value : {}
}

function addText(said: Said, text: string): void {
  said.text += said.text === '' || text === '' ? text : `\n${text}`
}

function addCall(said: Said, given: unknown): void {
  if (!isJsonObject(given)) return
  const inner = given.function ?? given.functionCall ?? given.function_call ?? given.tool_call ?? given
  if (!isJsonObject(inner)) return
  const deeper = isJsonObject(inner.function) ? inner.function : inner
  const name = deeper.name ?? deeper.toolName ?? deeper.tool_name ?? given.toolName
  if (typeof name !== 'string' || name === '') return
  const args = [deeper.arguments, deeper.args, deeper.input, given.args, given.input].find(
    (one) => one != null,
  )
  // An item of Responses has an id of its own besides.
  const id =
    given.call_id ??
    given.id ??
    given.toolCallId ??
    given.toolUseId ??
    given.tool_call_id ??
    given.ref ??
    inner.id
  said.calls.push({ id: idIn(id), name, arguments: textIn(args ?? {}) })
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
    inner.toolUseID ??
    inner.ref ??
    objectOr(inner.origin).id ??
    inner.name
  const found = [inner.response, inner.result, inner.output, inner.content].find((one) => one != null)
  // The AI SDK says of what type a result is.
  const value =
    isJsonObject(found) && 'value' in found && typeof found.type === 'string' ? found.value : found
  results.push({
    ...NOTHING,
    role: 'tool',
    call_id: idIn(id),
    text: textOfResult(value),
    ...(hasFailed(inner) && { is_error: true }),
  })
}

/** Microsoft's agents have those of a run and of the call. */
function idIn(id: unknown): string {
  const own: unknown = Array.isArray(id) ? id.at(-1) : id
  return typeof own === 'string' ? own : ''
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
    // Of several whole answers, each is one to choose.
    if (said.role !== 'assistant' || last?.role !== 'assistant' || areChoices(last, said)) {
      messages.push(said)
      continue
    }
    addText(last, said.text)
    last.reasoning ||= said.reasoning
    last.other.push(...said.other)
    last.calls.push(...said.calls)
    if (said.is_whole) last.is_whole = true
  }
  return messages
}

/** Some conventions write the texts and calls of one answer as several, too. */
function areChoices(one: Said, other: Said): boolean {
  return one.is_whole === true && other.is_whole === true && one.text !== '' && other.text !== ''
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
  const { type, image_url } = block
  if (type === 'image_url' && isJsonObject(image_url) && typeof image_url.url === 'string')
    return { type, image_url: { url: image_url.url } }
  const url = imageIn(block)
  return url === undefined
    ? { type: 'text', text: writeJson(block) }
    : { type: 'image_url', image_url: { url } }
}

/** Where the picture of a block is, or the picture itself as a data URL. */
function imageIn(block: Record<string, unknown>): string | undefined {
  const { type, image_url, uri, url } = block
  const image = objectOr(block.image)
  const from = {
    ...objectOr(block.source),
    ...objectOr(image.source),
    ...objectOr(block.inlineData ?? block.inline_data),
  }
  const media = [block, from].flatMap((one) => [one.mime_type, one.mimeType, one.mediaType, one.media_type])
  const format = typeof image.format === 'string' ? `image/${image.format}` : undefined
  const media_type = [...media, format].find((one) => typeof one === 'string' && one.startsWith('image/'))
  const is_image = media_type !== undefined || /image/.test(`${type} ${block.modality}`)
  if (!is_image) return undefined
  const places = [
    image_url,
    objectOr(image_url).url,
    image.url,
    objectOr(image.image).url,
    block.image,
    uri,
    url,
    from.url,
    block.data,
  ]
  const where = places.find((one) => typeof one === 'string' && /^(https?:|data:)/.test(one))
  if (where !== undefined) return where as string
  const bytes = [block.content, block.data, block.image, from.data, from.bytes].find(
    (one) => typeof one === 'string',
  )
  // A name of a file is none of its bytes.
  const is_base64 =
    typeof bytes === 'string' && bytes.length % 4 === 0 && /^[A-Za-z0-9+/]{8,}={0,2}$/.test(bytes)
  return is_base64 ? `data:${media_type ?? 'image/png'};base64,${bytes}` : undefined
}
