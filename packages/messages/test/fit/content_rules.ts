import type { MessageFormat } from '../../src/index.js'

// biome-ignore lint/suspicious/noExplicitAny: it looks into JSON that may be anything
type Json = any

/**
 * What each provider refuses within a message: kinds of blocks, their members, and bytes that are not what they are called.
 * Written from the pages that `docs/messages.md` names, as `provider_rules.ts` is.
 */
export function brokenContent(format: MessageFormat, items: readonly Json[]): string[] {
  const broken: string[] = []
  if (format !== 'acontext')
    walk(items, (value) => {
      broken.push(...RULES[format](value))
    })
  if (format === 'anthropic') broken.push(...mixedCitations(items))
  if (format === 'responses') broken.push(...approvalsAndPrograms(items))
  return broken
}

/** Items of OpenAI's that need each other: requests for approval and answers, programs and what they call. */
function approvalsAndPrograms(items: readonly Json[]): string[] {
  const broken: string[] = []
  const approvals = items.flatMap(({ type, approval_request_id }) =>
    type === 'mcp_approval_response' ? approval_request_id : [],
  )
  if (new Set(approvals).size < approvals.length) broken.push(`answered twice: ${approvals}`)
  const programs = new Set<string>()
  const open = new Set<string>()
  for (const [at, { type, id, call_id, role, caller }] of items.entries()) {
    if (type === 'mcp_approval_request' && !approvals.includes(id))
      broken.push(`[${at}] MCP approval requests do not have an approval: ${id}`)
    if (caller?.type === 'program' && !programs.has(caller.caller_id))
      broken.push(`[${at}] caller ${caller.caller_id} not found`)
    if (type === 'program') programs.add(call_id)
    if (type === 'program') open.add(call_id)
    if (type === 'program_output' && !open.delete(call_id)) broken.push(`[${at}] ends no program`)
    if (role !== undefined && open.size > 0) broken.push(`[${at}] is said while ${[...open]} runs`)
  }
  const last = items.findLast(({ type }) => type === 'function_call')
  for (const id of open) if (last?.caller?.caller_id !== id) broken.push(`${id} waits for nothing`)
  return broken
}

function walk(value: Json, hear: (object: Json) => void): void {
  if (Array.isArray(value)) for (const one of value) walk(one, hear)
  else if (typeof value === 'object' && value !== null) {
    hear(value)
    // What a tool is asked and answers is its own.
    const OF_TOOLS = ['input', 'args', 'response', 'arguments', 'partMetadata', 'action']
    for (const [key, member] of Object.entries(value)) if (!OF_TOOLS.includes(key)) walk(member, hear)
  }
}

const RULES: Readonly<Record<Exclude<MessageFormat, 'acontext'>, (value: Json) => string[]>> = {
  openai: openaiContent,
  anthropic: anthropicContent,
  gemini: geminiContent,
  responses: responsesContent,
}

function unknown(value: Json, ...known: string[]): string[] {
  const extra = Object.keys(value ?? {}).filter((key) => !known.includes(key))
  return extra.length > 0 ? [`Extra inputs are not permitted: ${extra}`] : []
}

const isBase64 = (text: unknown) => typeof text === 'string' && /^[A-Za-z0-9+/_=-]*$/.test(text)
const HTML = /^PGh0bWw|^PCFET0NUWVBF|^PEVycm9y|^eyJ|^dmVyc2lvbiBodHRwczovL2dpdC1sZnM/

const OF_SERVICES = ['cache_control', 'extra_content', 'provider_specific_fields']
const REASONING = ['reasoning', 'reasoning_content', 'reasoning_details', 'thinking_blocks']
const MESSAGE = [
  'role',
  'content',
  'name',
  'refusal',
  'audio',
  'tool_calls',
  'tool_call_id',
  'images',
  'prefix',
]
const INNER: Record<string, string[]> = {
  text: [],
  image_url: ['url', 'detail'],
  input_audio: ['data', 'format'],
  file: ['file_data', 'file_id', 'filename'],
}

/** Members that the API does not know, and no service that speaks its format. */
function unknownInOpenai(value: Json): string[] {
  if (value.role !== undefined) return unknown(value, ...MESSAGE, 'partial', ...OF_SERVICES, ...REASONING)
  const asked = value.type === 'function' || value.type === 'custom' ? value.type : undefined
  if (asked && value.id) {
    const inner = unknown(value[asked], 'name', 'arguments', 'input', 'provider_specific_fields')
    return [...inner, ...unknown(value, 'id', 'type', asked, ...OF_SERVICES)]
  }
  const inside = INNER[value.type]
  if (!inside) return []
  const inner = typeof value[value.type] === 'object' ? unknown(value[value.type], ...inside) : []
  return [...inner, ...unknown(value, 'type', value.type, 'cache_control', 'prompt_cache_breakpoint')]
}

function openaiContent(value: Json): string[] {
  const broken: string[] = unknownInOpenai(value)
  if (value.tool_calls?.length > 128) broken.push('tool_calls: array too long')
  const { file_data } = value.file ?? {}
  if (value.type === 'file' && file_data !== undefined && !file_data.startsWith('data:application/pdf;'))
    broken.push('Expected a base64-encoded data URL with an application/pdf MIME type')
  if (value.file && 'file_id' in value.file) broken.push(...unknown(value.file, 'file_id'))
  if (value.type === 'input_audio' && !['wav', 'mp3'].includes(value.input_audio.format))
    broken.push(`Invalid value: ${value.input_audio.format}`)
  if (value.type === 'input_audio' && !isBase64(value.input_audio.data)) broken.push('no base64')
  if (value.type === 'image_url' && !/^(https?|data):/.test(value.image_url.url))
    broken.push('Invalid image_url')
  if (value.type === 'image_url' && /^data:(?!image\/(jpe?g|png|gif|webp);base64,)/.test(value.image_url.url))
    broken.push('You uploaded an unsupported image')
  if (value.function?.arguments?.length > 1_048_576) broken.push('arguments: string too long')
  if (value.role === 'tool' && value.content.length > 10_485_760) broken.push('content: string too long')
  return broken
}

function responsesContent(value: Json): string[] {
  const broken: string[] = []
  const action = value.type === 'web_search_call' ? value.action?.type : undefined
  if (action !== undefined && !['search', 'open_page', 'find_in_page'].includes(action))
    broken.push(`Invalid value: ${action}`)
  if (value.input?.length > 1_048_576) broken.push('input: string too long')
  if (value.type === 'tool_search_call' && Object.keys(value.arguments).some((name) => name.length > 256))
    broken.push('property_name_above_max_length')
  if ('created_by' in value) broken.push('Unknown parameter: created_by')
  if (value.role !== undefined && 'status' in value && value.id === undefined)
    broken.push('Unknown parameter: status')
  if (value.type === 'computer_screenshot' && value.image_url === null) broken.push('image_url: got null')
  const places = ['file_id', 'file_url', 'file_data', 'image_url'].filter((key) => value[key] !== undefined)
  if (/^input_(file|image)$/.test(value.type) && places.length > 1)
    broken.push(`Mutually exclusive parameters: ${places}`)
  if (value.type === 'input_file') {
    if (value.filename !== undefined && value.file_data === undefined)
      broken.push(`Mutually exclusive parameters: filename and ${places}`)
    broken.push(...unknown(value, 'type', 'detail', 'file_data', 'file_id', 'file_url', 'filename'))
    if (value.file_url !== undefined && !/^https?:/.test(value.file_url)) broken.push(`url ${value.file_url}`)
    if (value.file_data !== undefined && !value.file_data.startsWith('data:'))
      broken.push('Expected a base64-encoded data URL')
  }
  if (value.type === 'input_image' && /^data:(?!image\/(jpeg|png|gif|webp);)/.test(value.image_url ?? ''))
    broken.push('unsupported image')
  if (value.type === 'input_image' && !/^(https?|data):/.test(value.image_url ?? 'data:'))
    broken.push('no URL')
  if (value.type === 'input_image') broken.push(...unknown(value, 'type', 'detail', 'file_id', 'image_url'))
  if (value.arguments?.length > 1_048_576) broken.push('arguments: string too long')
  if (value.output?.length > 10_485_760) broken.push('output: string too long')
  return broken
}

const SOURCES: Record<string, string[]> = {
  base64: ['type', 'media_type', 'data'],
  text: ['type', 'media_type', 'data'],
  url: ['type', 'url'],
  file: ['type', 'file_id'],
  content: ['type', 'content'],
}
const NO_TAGS = ['image_url', 'input_text', 'output_text', 'input_image', 'input_file', 'reasoning', 'file']

function anthropicContent(value: Json): string[] {
  const broken: string[] = []
  const { type, source, cache_control } = value
  for (const { type } of Array.isArray(value.content) ? value.content : [])
    if (NO_TAGS.includes(type) || /_delta$/.test(type))
      broken.push(`Input tag '${type}' found using 'type' does not match any of the expected tags`)
  if (cache_control && typeof cache_control !== 'object') broken.push('cache_control: no object')
  if (cache_control) broken.push(...unknown(cache_control, 'type', 'ttl'))
  if (type === 'image' || type === 'document') {
    broken.push(...unknown(source, ...(SOURCES[source.type] ?? [])))
    if (source.type === 'base64' && !isBase64(source.data)) broken.push('invalid base64 data')
    if (source.type === 'url' && !/^https?:/.test(source.url)) broken.push(`no URL: ${source.url}`)
    if (source.type === 'content' && source.content.length === 0) broken.push('a document of nothing')
    if (source.type === 'base64' && HTML.test(source.data)) broken.push(`Could not process ${type}`)
  }
  if (type === 'image' && source.type === 'base64' && !/^image\/(jpeg|png|gif|webp)$/.test(source.media_type))
    broken.push(`media_type ${source.media_type}`)
  if (type === 'document') {
    if (source.type === 'base64' && source.media_type !== 'application/pdf')
      broken.push(`media_type: Input should be 'application/pdf', not ${source.media_type}`)
    if (source.type === 'text' && !(source.media_type === 'text/plain' && source.data?.trim()))
      broken.push('a text of nothing, or of another type')
    if (value.title === '' || value.context === '') broken.push('String should have at least 1 character')
  }
  if (type === 'web_search_result' && !value.encrypted_content)
    broken.push('Invalid encrypted_content in search_result block')
  if (type === 'search_result' && value.content.length === 0) broken.push('a search result of nothing')
  if (type === 'thinking' && value.thinking === undefined) broken.push('thinking.thinking: Field required')
  if (type === 'thinking' && /^gAAAA|^reasoning|^[0-9a-f]{64}$|[^A-Za-z0-9+/=_.-]/.test(value.signature))
    broken.push('Invalid `signature` in `thinking` block')
  return broken
}

/** "Currently, citations must be enabled on all or none of the documents within a request." */
function mixedCitations(items: readonly Json[]): string[] {
  return ['document', 'search_result'].filter((wanted) => {
    const all = items.flatMap(({ content }) => (Array.isArray(content) ? content : []))
    const inside = all.flatMap(({ type, content }) =>
      type === 'tool_result' && Array.isArray(content) ? content : [],
    )
    const documents = [...all, ...inside].filter(({ type }) => type === wanted)
    return new Set(documents.map(({ citations }) => citations?.enabled === true)).size > 1
  })
}

const PART = [
  'text thought thoughtSignature inlineData fileData functionCall functionResponse executableCode codeExecutionResult',
  'videoMetadata mediaResolution partMetadata toolCall toolResponse audioTranscription mediaProcessing speechMetadata',
].flatMap((names) => names.split(' '))
const TAKEN =
  /^(image\/(png|jpeg|webp|heic|heif|bmp)|audio\/.+|video\/.+|application\/(pdf|rtf)|text\/(plain|html|css|csv|xml|rtf|javascript|markdown|md))$/i

function geminiContent(value: Json): string[] {
  const broken: string[] = []
  const response = value.functionResponse ?? value.function_response
  if (Array.isArray(response?.response)) broken.push('Unknown name "response": cannot start list')
  for (const part of response?.parts ?? []) {
    const type =
      (part.inlineData ?? part.inline_data)?.mimeType ?? (part.inlineData ?? part.inline_data)?.mime_type
    if (!/^(image\/(png|jpeg|webp)|application\/pdf|text\/plain)\b/.test(type))
      broken.push(`mime_type: ${type} is not supported in function_response.parts`)
  }
  if (Array.isArray(value.parts) && value.role !== undefined)
    for (const part of value.parts)
      broken.push(
        ...unknown(
          part,
          ...PART,
          ...PART.map((name) => name.replace(/[A-Z]/g, (a) => `_${a.toLowerCase()}`)),
        ),
      )
  const signature = value.thoughtSignature ?? value.thought_signature
  if (signature !== undefined && !isBase64(signature))
    broken.push('thought_signature: Base64 decoding failed')
  const medium = value.inlineData ?? value.inline_data ?? value.fileData ?? value.file_data
  if (typeof medium !== 'object') return broken
  const uri = medium.fileUri ?? medium.file_uri
  if (uri !== undefined && !/^(https?|gs):|^files\//.test(uri))
    broken.push(`Cannot fetch content from ${uri}`)
  const type = medium.mimeType ?? medium.mime_type
  if (type !== undefined && !TAKEN.test(type)) broken.push(`Unsupported MIME type: ${type}`)
  if (medium.data !== undefined && !isBase64(medium.data)) broken.push('inline_data: Base64 decoding failed')
  if (medium.data !== undefined && type === undefined) broken.push('inline_data: no mime_type')
  if (medium.data !== undefined && HTML.test(medium.data) && /^image/.test(type)) broken.push('no image')
  return broken
}
