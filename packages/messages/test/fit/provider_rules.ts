import type { MessageFormat } from '../../src/index.js'
import { brokenContent } from './content_rules.js'

/**
 * What each provider refuses in a list of messages, written from the pages that `docs/messages.md` names, and not from the
 * code that keeps to it.
 * @returns a sentence for each rule that is broken, with the place
 */
export function brokenRules(format: MessageFormat, items: readonly unknown[]): string[] {
  const broken = [...RULES[format](items as readonly Json[]), ...brokenContent(format, items)]
  const isStrict = format === 'openai' || format === 'anthropic' || format === 'responses'
  const text = JSON.stringify(items)
  if (isStrict && URL_SAFE.test(text)) broken.push('bytes in the URL-safe alphabet')
  if (/(?<!\\)(?:\\\\)*\\ud[89a-f]/i.test(text)) broken.push('half a character')
  if (isStrict && EMPTY_MEDIUM.test(text)) broken.push('a picture or a file of nothing')
  for (const [, type, data] of text.matchAll(IMAGE)) {
    const is = Object.entries(BEGINNINGS).find(([, begins]) => data!.startsWith(begins))?.[0]
    if (is && is !== type) broken.push(`specified using ${type}, but appears to be ${is}`)
  }
  return broken
}

/** A `data:` URL, or Anthropic's `data`, that no decoder of the standard alphabet takes. */
const URL_SAFE = /(?:;base64,|"data":")[A-Za-z0-9+/]*[-_][A-Za-z0-9_-]*={0,2}"/

const EMPTY_MEDIUM =
  /"(?:image_url|file_data)":""|"image_url":\{"url":""|"source":\{"type":"(?:url","url|base64","media_type":"[^"]*","data)":""/

/** An image with what it is said to be, and how its base64 begins. */
const IMAGE =
  /(?:data:|"(?:media_type|mimeType|mime_type)":")(image\/[a-z+-]+)(?:;base64,|","data":")([A-Za-z0-9+/=]{4,16})/g
const BEGINNINGS = {
  'image/png': 'iVBORw0KGgo',
  'image/jpeg': '/9j/',
  'image/gif': 'R0lGOD',
  'image/webp': 'UklGR',
  'image/x-icon': 'AAABAA',
}

// biome-ignore lint/suspicious/noExplicitAny: it looks into JSON that may be anything
type Json = any

const RULES: Readonly<Record<MessageFormat, (items: readonly Json[]) => string[]>> = {
  openai: openaiRules,
  anthropic: anthropicRules,
  gemini: geminiRules,
  acontext: acontextRules,
  responses: responsesRules,
}

function isObjectText(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

const NAME = /^[a-zA-Z0-9_-]{1,64}$/
const ANSWERS_ONLY = ['id', 'model', 'usage', 'stop_reason', 'annotations']
const isText = ({ type, text }: Json): boolean => type === 'text' && text !== ''

/** Fields that are null, but for the content of a reply and what other services have beside it. */
function nullsIn({ reasoning_details: _, content, ...rest }: Json): string[] {
  const broken: string[] = []
  JSON.stringify({ ...rest, content: content ?? undefined }, (key, value: unknown) => {
    if (value === null) broken.push(`${key}: got null`)
    return value
  })
  return broken
}

function openaiRules(items: readonly Json[]): string[] {
  const broken: string[] = items.flatMap(nullsIn)
  const known = new Set<string>()
  let open: string[] = []
  for (const [at, item] of items.entries()) {
    if (item.role === 'tool') {
      if (!open.includes(item.tool_call_id))
        broken.push(`[${at}] answers ${item.tool_call_id}, which is not open`)
      open = open.filter((id) => id !== item.tool_call_id)
      if (item.content == null) broken.push(`[${at}] has no content`)
      for (const key of ANSWERS_ONLY) if (key in item) broken.push(`[${at}] has ${key}`)
      if ('name' in item && !NAME.test(item.name)) broken.push(`[${at}] name ${item.name}`)
      if (Array.isArray(item.content) && !(item.content.length > 0 && item.content.every(isText)))
        broken.push(`[${at}] takes a list of texts`)
      continue
    }
    if (open.length > 0) broken.push(`[${at}] ${item.role} while ${open} are unanswered`)
    open = []
    if (item.role === 'function' || item.function_call !== undefined)
      broken.push(`[${at}] is of a form that is no more`)
    for (const key of ANSWERS_ONLY) if (key in item) broken.push(`[${at}] has ${key}`)
    const blocks = Array.isArray(item.content) ? item.content : []
    if (Array.isArray(item.content) && blocks.length === 0) broken.push(`[${at}] has an empty list`)
    for (const block of blocks) {
      if (block.type === 'file' && block.file.file_data && !block.file.filename)
        broken.push(`[${at}] Missing required parameter: file.filename`)
      if (block.type === 'text' && block.text === '') broken.push(`[${at}] has an empty text`)
      if (item.role !== 'user' && !['text', 'refusal'].includes(block.type))
        broken.push(`[${at}] ${block.type} is only allowed for messages with role user`)
      if (!['text', 'refusal', 'image_url', 'input_audio', 'file', 'video_url'].includes(block.type))
        broken.push(`[${at}] Invalid value: '${block.type}'`)
    }
    if ('name' in item && !/^[^\s<|\\/>]{1,64}$/.test(item.name)) broken.push(`[${at}] name ${item.name}`)
    const calls = item.tool_calls
    if (calls !== undefined && !(calls.length > 0)) broken.push(`[${at}] has an empty list of calls`)
    const says = item.content != null || calls !== undefined || item.refusal != null || item.audio != null
    if (item.role !== 'assistant' && item.content == null) broken.push(`[${at}] has no content`)
    if (!says) broken.push(`[${at}] says nothing`)
    for (const call of calls ?? []) {
      if (known.has(call.id)) broken.push(`[${at}] id ${call.id} is not unique`)
      if (call.id === '' || call.id.length > 40) broken.push(`[${at}] id ${call.id}`)
      if (!NAME.test((call.function ?? call.custom).name)) broken.push(`[${at}] name ${call.function?.name}`)
      if (call.function && 'parsed_arguments' in call.function)
        broken.push(`[${at}] Unknown parameter: parsed_arguments`)
      if (call.function && !isObjectText(call.function.arguments))
        broken.push(`[${at}] arguments must be a valid JSON object string: ${call.function.arguments}`)
      known.add(call.id)
      open.push(call.id)
    }
  }
  if (open.length > 0) broken.push(`${open} are unanswered`)
  return broken
}

const HOSTED = { server_tool_use: 1, mcp_tool_use: 1 }
const ANTHROPIC_ID = /^[a-zA-Z0-9_-]+$/
const ANTHROPIC_NAME = /^[a-zA-Z0-9_-]{1,128}$/

/** A list begins with the user, or with a compaction, of which there is one at most. */
function wrongBeginnings(items: readonly Json[]): string[] {
  const summaries = items.flatMap((item, at) =>
    blocksOf(item.content).flatMap(({ type, content }: Json, nth: number) =>
      type === 'compaction' && content ? [at === 0 && nth === 0] : [],
    ),
  )
  const broken: string[] = []
  if (summaries.length > 1) broken.push('compaction_block_ambiguous')
  if (summaries.includes(false)) broken.push('compaction_block_misplaced')
  const begins = summaries.length > 0 || ['user', 'system', undefined].includes(items[0]?.role)
  return begins ? broken : [...broken, 'does not begin with the user']
}

function anthropicRules(items: readonly Json[]): string[] {
  const broken: string[] = []
  const known = new Set<string>()
  const hosted = new Set<string>()
  broken.push(...wrongBeginnings(items))
  broken.push(...misplacedSystemMessages(items), ...refusedTexts(items), ...refusedBlocks(items))
  for (const [at, item] of items.entries()) {
    const extra = Object.keys(item).filter(
      (key) =>
        !['role', 'content', ...(item.role === 'system' ? ['output_config', 'clear_at'] : [])].includes(key),
    )
    if (extra.length > 0) broken.push(`[${at}] Extra inputs are not permitted: ${extra}`)
    const blocks = blocksOf(item.content)
    if (item.role !== 'system' && blocks.length === 0) broken.push(`[${at}] is empty`)
    // Claude's code waits for the tools that it called: nobody speaks in between.
    const goes_on = item.role === 'user' && blocks.every(({ type }) => type === 'tool_result')
    if (item.role === 'user' && !goes_on) hosted.clear()
    for (const block of blocks) {
      if (item.role === 'assistant' && (block.type === 'image' || block.type === 'document'))
        broken.push(`[${at}] '${block.type}' blocks are not permitted within assistant turns`)
      if (block.type === 'thinking' && !block.signature) broken.push(`[${at}] thinking without a signature`)
      if (block.type === 'server_tool_use' || block.type === 'mcp_tool_use') {
        if (known.has(block.id)) broken.push(`[${at}] tool_use ids must be unique: ${block.id}`)
        hosted.add(block.id)
        known.add(block.id)
      }
      if (block.caller?.tool_id !== undefined && !known.has(block.caller.tool_id))
        broken.push(`[${at}] caller ${block.caller.tool_id} not found`)
      if (/_tool_result$/.test(block.type) && !hosted.delete(block.tool_use_id))
        broken.push(`[${at}] ${block.type} without its call`)
      if (block.type === 'tool_use') {
        if (item.role !== 'assistant') broken.push(`[${at}] tool_use of the user`)
        if (!ANTHROPIC_ID.test(block.id)) broken.push(`[${at}] tool_use.id ${block.id}`)
        if (known.has(block.id)) broken.push(`[${at}] tool_use ids must be unique: ${block.id}`)
        if (!ANTHROPIC_NAME.test(block.name)) broken.push(`[${at}] name ${block.name}`)
        if (typeof block.input !== 'object' || block.input === null || Array.isArray(block.input))
          broken.push(`[${at}] input`)
        known.add(block.id)
      }
      if (block.type === 'tool_result') {
        if (item.role !== 'user') broken.push(`[${at}] tool_result of the assistant`)
      }
    }
    const waits = blocks.some(({ type }) => type === 'tool_use')
    // A paused turn goes on if it stays the last one, until the next part of it.
    const is_paused = (blocks.at(-1)?.type ?? '') in HOSTED && items[at + 1]?.role !== 'user'
    if (item.role === 'assistant' && !waits && !is_paused && hosted.size > 0)
      broken.push(`[${at}] ${[...hosted]} without a result`)
    const later = items.slice(at + 1).flatMap(({ content }) => blocksOf(content))
    const is_open = (id: string) =>
      later.some(({ tool_use_id }) => tool_use_id === id) ||
      (at >= items.length - 2 && blocks.some(({ caller }) => caller?.tool_id === id)) ||
      (at >= items.length - 2 && waits && blocks.some((one) => one.id === id)) ||
      (at === items.length - 1 && is_paused)
    for (const id of item.role === 'assistant' ? hosted : [])
      if (!is_open(id)) broken.push(`[${at}] ${id} is never answered`)
    // Among the calls are thoughts alone, and what was said after such a thought.
    const call = blocks.findIndex(({ type }) => type === 'tool_use')
    const after = call < 0 ? [] : blocks.slice(call).filter(({ type }) => type !== 'tool_use')
    if (call >= 0 && blocks.at(-1).type !== 'tool_use') broken.push(`[${at}] content behind a call`)
    else if (after.length > 0 && !/thinking/.test(after[0].type)) broken.push(`[${at}] content behind a call`)
    broken.push(...unpairedInAnthropic(items, at, blocks))
  }
  const end = items.at(-1)?.role === 'assistant' ? blocksOf(items.at(-1).content).at(-1) : undefined
  if (end?.type === 'text' && /\s$/.test(end.text))
    broken.push('final assistant content cannot end with trailing whitespace')
  return broken
}

/** Thoughts at the end, errors that are no text, images of another type than the four, and ids of Anthropic's own tools that another service made. */
function refusedBlocks(items: readonly Json[]): string[] {
  const broken: string[] = []
  for (const [at, { role, content }] of items.entries()) {
    if (role === 'assistant' && /^(redacted_)?thinking$/.test(blocksOf(content).at(-1)?.type))
      broken.push(`[${at}] ends with thinking`)
    for (const block of blocksOf(content)) {
      if (block.is_error === true && (block.content === undefined || block.content.length === 0))
        broken.push(`[${at}] an error without content`)
      if (block.is_error === true && blocksOf(block.content).some((one) => !isText(one)))
        broken.push(`[${at}] all content must be type text if is_error is true`)
      const inside = Array.isArray(block.content) ? block.content : []
      const isOwn = block.type === 'server_tool_use' || /^(?!mcp_).*._tool_result$/.test(block.type)
      const id = isOwn ? (block.id ?? block.tool_use_id) : block.caller?.tool_id
      if (id !== undefined && !/^srvtoolu_[a-zA-Z0-9_]+$/.test(id))
        broken.push(`[${at}] server_tool_use.id ${id}`)
      for (const { type } of block.type === 'tool_result' ? inside : [])
        if (!['text', 'image', 'document', 'search_result', 'tool_reference'].includes(type))
          broken.push(`[${at}] a result takes no ${type}`)
      if (block.type !== 'compaction')
        for (const [key, value] of Object.entries(block))
          if (value === null) broken.push(`[${at}] ${key} is null`)
    }
  }
  return broken
}

/** Blank texts, fields of citations, and marks of the cache. */
function refusedTexts(items: readonly Json[]): string[] {
  const broken: string[] = []
  let marks = 0
  let has_short_mark = false
  for (const [at, { content }] of items.entries())
    for (const block of blocksOf(content))
      for (const one of [block, ...(Array.isArray(block.content) ? block.content : [])]) {
        if (one.type === 'text' && String(one.text).trim() === '') broken.push(`[${at}] blank text`)
        for (const { file_id } of Array.isArray(one.citations) ? one.citations : [])
          if (file_id !== undefined) broken.push(`[${at}] citations.file_id: Extra inputs are not permitted`)
        if (!one.cache_control) continue
        marks++
        if (one.cache_control.ttl === '1h' && has_short_mark)
          broken.push(`[${at}] a mark of 1h after one of 5m`)
        has_short_mark ||= one.cache_control.ttl !== '1h'
      }
  if (marks > 4) broken.push(`A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`)
  return broken
}

/** One with content follows the user or a result of Anthropic's tools, and an answer or nothing follows it. */
function misplacedSystemMessages(items: readonly Json[]): string[] {
  const sections = items.filter(({ role, content }) => role !== 'system' || content !== undefined)
  return sections.flatMap(({ role }, at) => {
    if (role !== 'system') return []
    const [before, after] = [sections[at - 1], sections[at + 1]]
    const last = before && blocksOf(before.content).at(-1)
    const follows =
      before?.role === 'user' || before?.role === 'system' || /._tool_result$/.test(last?.type ?? '')
    return follows && after?.role !== 'user' ? [] : [`a system message may not be at ${at}`]
  })
}

function unpairedInAnthropic(items: readonly Json[], at: number, blocks: Json[]): string[] {
  const broken: string[] = []
  const calls = blocks.filter(({ type }) => type === 'tool_use').map(({ id }) => id)
  const answers = blocksOf(items[at + 1]?.content)
    .filter(({ type }) => type === 'tool_result')
    .map((block) => block.tool_use_id)
  for (const id of calls)
    if (!answers.includes(id)) broken.push(`[${at}] tool_use ${id} without tool_result in the next message`)
  const results = blocks.filter(({ type }) => type === 'tool_result').map((block) => block.tool_use_id)
  const asked = blocksOf(items[at - 1]?.content).flatMap((block: Json) =>
    block.type === 'tool_use' ? [block.id] : [],
  )
  for (const id of results)
    if (!asked.includes(id)) broken.push(`[${at}] tool_result ${id} without tool_use in the previous message`)
  if (new Set(results).size < results.length) broken.push(`[${at}] several results of one call`)
  const first = blocks.findIndex(({ type }) => type !== 'tool_result')
  if (first >= 0 && blocks.slice(first).some(({ type }) => type === 'tool_result'))
    broken.push(`[${at}] content ahead of a result`)
  return broken
}

function blocksOf(content: Json): Json[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])
}

function geminiRules(items: readonly Json[]): string[] {
  const broken: string[] = []
  const known = new Set<string>()
  if (items.length > 0 && items[0].role !== 'user') broken.push('does not begin with the user')
  for (const [at, item] of items.entries()) {
    if (item.role !== 'user' && item.role !== 'model') broken.push(`[${at}] role ${item.role}`)
    if (!(item.parts?.length > 0)) broken.push(`[${at}] has no parts`)
    const calls = callsOf(item)
    const results = resultsOf(item)
    if (calls.length > 0) {
      if (item.role !== 'model') broken.push(`[${at}] calls of the user`)
      const first = item.parts.findIndex((part: Json) => (part.functionCall ?? part.function_call) != null)
      if (!(item.parts[first].thoughtSignature ?? item.parts[first].thought_signature))
        broken.push(`[${at}] the first call is not signed`)
      if (calls.some((call) => call.partialArgs || call.partial_args)) broken.push(`[${at}] partialArgs`)
      if (calls.some(({ args }) => typeof args !== 'object' || args === null)) broken.push(`[${at}] args`)
      if (items[at - 1]?.role !== 'user') broken.push(`[${at}] a call's turn must come after one of the user`)
      const answers = resultsOf(items[at + 1] ?? {})
      if (answers.length !== calls.length)
        broken.push(`[${at}] ${calls.length} calls, ${answers.length} responses in the next turn`)
      for (const [nth, call] of calls.entries()) {
        if (answers[nth] && call.id !== undefined && answers[nth].id !== call.id)
          broken.push(`[${at}] ${call.id} is answered as ${answers[nth].id}`)
        if (!/^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/.test(call.name)) broken.push(`[${at}] name ${call.name}`)
        if (call.id !== undefined && known.has(call.id)) broken.push(`[${at}] id ${call.id} is not unique`)
        known.add(call.id)
      }
    }
    if (results.length > 0 && callsOf(items[at - 1] ?? {}).length !== results.length)
      broken.push(`[${at}] responses without their calls`)
    for (const { name, response } of results) {
      if (!name) broken.push(`[${at}] a response without a name`)
      if (typeof response !== 'object' || response === null) broken.push(`[${at}] response`)
    }
    const hosted = (item.parts ?? []).flatMap(({ toolCall }: Json) => toolCall?.id ?? [])
    const returned = (item.parts ?? []).flatMap(({ toolResponse }: Json) => toolResponse?.id ?? [])
    if (hosted.join() !== returned.join()) broken.push(`[${at}] ${hosted} are answered by ${returned}`)
    broken.push(...unsignedPictures(item, at))
    for (const part of item.parts ?? []) {
      if ('thoughtSignature' in part && 'thought_signature' in part) broken.push(`[${at}] two signatures`)
      if (part.text === '' && Object.keys(part).length === 1) broken.push(`[${at}] an empty text`)
      const data = [
        'text',
        'inlineData',
        'inline_data',
        'fileData',
        'file_data',
        'functionCall',
        'function_call',
        'functionResponse',
        'function_response',
      ]
      if (data.filter((key) => part[key] != null).length > 1)
        broken.push(`[${at}] a part with several fields`)
    }
  }
  return broken
}

/** Models that draw want each picture of theirs signed, and the text ahead of the first one. */
function unsignedPictures({ role, parts = [] }: Json, at: number): string[] {
  if (role !== 'model') return []
  const isPicture = (part: Json) =>
    /^image/.test((part.inlineData ?? part.inline_data)?.mimeType ?? part.inline_data?.mime_type ?? '') &&
    part.thought !== true
  const said = parts.filter((part: Json) => part.thought !== true)
  const wanted = said.filter(
    (part: Json, nth: number) => isPicture(part) || (nth === 0 && part.text && said.some(isPicture)),
  )
  return wanted.some((part: Json) => !(part.thoughtSignature ?? part.thought_signature))
    ? [`[${at}] Image part is missing a thought_signature`]
    : []
}

const callsOf = ({ parts = [] }: Json): Json[] =>
  parts.flatMap((part: Json) => part.functionCall ?? part.function_call ?? [])
const resultsOf = ({ parts = [] }: Json): Json[] =>
  parts.flatMap((part: Json) => part.functionResponse ?? part.function_response ?? [])

const INPUTS = ['input_text', 'input_image', 'input_file', 'input_audio']
const ID_PREFIXES = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
  web_search_call: 'ws',
  tool_search_call: 'tsc',
  compaction: 'cmp',
}
/** Members that an item has to have, and their types. */
const WANTED = {
  tool_search_call: { arguments: 'object' },
  tool_search_output: { tools: 'object' },
  custom_tool_call: { input: 'string' },
  local_shell_call: { env: 'object' },
  compaction: { encrypted_content: 'string' },
}
const CALLERS_TOOLS = [
  'function_call',
  'custom_tool_call',
  'computer_call',
  'shell_call',
  'apply_patch_call',
  'local_shell_call',
]

/** What an item itself has to have, and must not have. */
function memberRules(item: Json): string[] {
  const broken: string[] = []
  const prefix = ID_PREFIXES[item.type as keyof typeof ID_PREFIXES]
  if (prefix && item.id !== undefined && !(item.id.startsWith(prefix) && /^[\w-]{1,64}$/.test(item.id)))
    broken.push(`Expected an ID that begins with '${prefix}': ${item.id}`)
  const action = { ...item, ...item.action } as Record<string, unknown>
  for (const [key, type] of Object.entries(WANTED[item.type as keyof typeof WANTED] ?? {}))
    if (typeof action[key] !== type) broken.push(`Missing required parameter: ${key}`)
  if (item.type === 'web_search_call' && item.action && !item.action.type)
    broken.push(`Missing required parameter: action.type`)
  if (JSON.stringify(item.content ?? []).includes('"cache_control"'))
    broken.push(`Unknown parameter: cache_control`)
  if (item.type === 'reasoning' && 'status' in item) broken.push(`Unknown parameter: status`)
  if ('created_by' in item) broken.push(`Unknown parameter: created_by`)
  for (const [key, value] of Object.entries({ ...item, ...item.action }))
    if (value === null && !['result', 'code', 'outputs', 'keys'].includes(key))
      broken.push(`${key}: got null`)
  return broken
}

function responsesRules(items: readonly Json[]): string[] {
  const broken: string[] = []
  const open = new Map<string, number>()
  const known = new Set<string>()
  const ids = new Set<string>()
  for (const [at, item] of items.entries()) {
    if (item.id !== undefined && ids.has(item.id))
      broken.push(`[${at}] Duplicate item found with id ${item.id}`)
    if (item.type === 'mcp_approval_response' && !ids.has(item.approval_request_id))
      broken.push(`[${at}] approval request ${item.approval_request_id} not found`)
    if (item.id !== undefined) ids.add(item.id)
    if (CALLERS_TOOLS.includes(item.type) && item.call_id) {
      if (item.call_id.length > 64) broken.push(`[${at}] call_id of ${item.call_id.length}`)
      if (known.has(item.call_id)) broken.push(`[${at}] call_id ${item.call_id} is not unique`)
      if ('name' in item && !NAME.test(item.name)) broken.push(`[${at}] name ${item.name}`)
      open.set(item.call_id, at)
      known.add(item.call_id)
    }
    if (item.type?.endsWith('_call_output') && !open.delete(item.call_id ?? item.id))
      broken.push(`[${at}] No tool call found for the output of ${item.call_id}`)
    if (item.type === 'reasoning') {
      if (Array.isArray(item.content) && item.content.length > 0)
        broken.push(`[${at}] Invalid content: array too long`)
      if (item.summary === undefined) broken.push(`[${at}] Missing required parameter: summary`)
      const next = items[at + 1]
      const is_followed =
        next &&
        (next.type === 'reasoning' ||
          next.role === 'assistant' ||
          /_call$/.test(next.type ?? '') ||
          !('role' in next))
      if (!is_followed || /_output$/.test(next.type ?? ''))
        broken.push(`[${at}] reasoning without its required following item`)
    }
    if ('arguments' in item && item.type === 'function_call' && !isObjectText(item.arguments))
      broken.push(`[${at}] arguments ${item.arguments}`)
    broken.push(...memberRules(item).map((rule) => `[${at}] ${rule}`))
    const isMessage = item.type === 'message' || (item.type === undefined && item.role)
    for (const block of isMessage && Array.isArray(item.content) ? item.content : []) {
      const takes = item.role === 'assistant' ? ['output_text', 'refusal'] : INPUTS
      if (!takes.includes(block.type)) broken.push(`[${at}] Invalid value: '${block.type}'`)
      if (block.type === 'input_file' && block.file_data && !block.filename)
        broken.push(`[${at}] Missing required parameter: filename`)
      if ('parsed' in block) broken.push(`[${at}] Unknown parameter: parsed`)
    }
    for (const block of Array.isArray(item.output) && item.type === 'function_call_output' ? item.output : [])
      if (!INPUTS.includes(block.type)) broken.push(`[${at}] Invalid value: '${block.type}'`)
    if (isMessage && !['user', 'assistant', 'system', 'developer'].includes(item.role))
      broken.push(`[${at}] role ${item.role}`)
    if ((item.type === 'message' || item.role) && (item.content === '' || item.content?.length === 0))
      broken.push(`[${at}] is empty`)
  }
  for (const id of open.keys()) broken.push(`No tool output found for ${id}`)
  return broken
}

function acontextRules(items: readonly Json[]): string[] {
  const broken: string[] = []
  for (const [at, { parts }] of items.entries()) {
    if (!(parts?.length > 0)) broken.push(`[${at}] has no parts`)
    const calls = parts.filter(({ type }: Json) => type === 'tool-call').map(({ meta }: Json) => meta.id)
    const answers = (items[at + 1]?.parts ?? [])
      .filter(({ type }: Json) => type === 'tool-result')
      .map(({ meta }: Json) => meta.tool_call_id)
    if (calls.some((id: string, nth: number) => answers[nth] !== id))
      broken.push(`[${at}] ${calls} are answered by ${answers}`)
    const results = parts.filter(({ type }: Json) => type === 'tool-result')
    const asked = (items[at - 1]?.parts ?? []).filter(({ type }: Json) => type === 'tool-call')
    if (results.length > asked.length) broken.push(`[${at}] more results than calls`)
  }
  return broken
}
