import { isObject, type JsonObject } from '../blob_reading.js'
import { textOf } from '../json/exact_json.js'
import { imageType, isAddress, isRefusedImage, isUnnamedFile, nameOfBytes, parseDataUrl } from '../media.js'
import { itemKind, itemRole } from '../response_items.js'
import { argumentsAsObject, isLongInput, sentArguments, sentObject } from '../tool_arguments.js'
import { isForeign, isForeignImage, saidByForeign } from './foreign_blocks.js'
import {
  cutResult,
  isBlank,
  isEmptyMedium,
  NO_RESULT,
  type OmitBlock,
  only,
  type Piece,
  type PieceIds,
  type Run,
  type Shape,
  withoutNulls,
} from './pieces.js'

/** Calls of the caller's own tools, and their outputs. */
const CALLS = new Set(['function_call', 'custom_tool_call'])
const OUTPUTS = new Set(['function_call_output', 'custom_tool_call_output'])

/** The types of outputs that are not called as the call's is, with `_output`. */
const OUTPUT_OF: Readonly<Record<string, string>> = {
  tool_search_call: 'tool_search_output',
  mcp_approval_request: 'mcp_approval_response',
}

const fields = (...names: string[]): ReadonlySet<string> => new Set(names)

/** Members that items of a request may have, where an answer's have more. Other items stay as they are. */
const RESPONSES_FIELDS: Readonly<Record<string, ReadonlySet<string>>> = {
  message: fields('type', 'id', 'role', 'content', 'status', 'phase'),
  function_call: fields(
    'type',
    'id',
    'call_id',
    'name',
    'arguments',
    'status',
    'caller',
    'namespace',
    'async',
  ),
  function_call_output: fields('type', 'id', 'call_id', 'output', 'status', 'caller'),
  custom_tool_call: fields('type', 'id', 'call_id', 'name', 'input', 'caller', 'namespace', 'async'),
  custom_tool_call_output: fields('type', 'id', 'call_id', 'output', 'caller'),
  reasoning: fields('type', 'id', 'summary', 'content', 'encrypted_content'),
  image_generation_call: fields('type', 'id', 'result', 'status'),
}

export const RESPONSES_SHAPE: Shape = {
  joins_all: false,
  begins_with_user: false,
  says_beside_results: false,
  split: (items, ids, omit) => items.flatMap((item) => runOf(item, ids, omit)),
  turn: (_, pieces) => pieces.map(({ piece, source }) => ({ source, item: piece.block })),
  results: (results) => results.map(({ piece, source }) => ({ source, item: piece.block })),
  said: ({ pieces }, source) => pieces.map(({ block }) => ({ source, item: block })),

  renamed: ({ kind, block }, id, name) =>
    isOfApproval(block)
      ? block
      : {
          ...block,
          call_id: id,
          ...(kind === 'call' && name !== undefined && 'name' in block && { name }),
        },

  // A session in several formats has other outputs than those of its calls. One of a program's call names the program.
  answering({ block }, given) {
    const called = String(block.type)
    const type = OUTPUT_OF[called] ?? `${called}_output`
    const output = isObject(block.caller) ? { ...given, caller: block.caller } : given
    if (output.type === type) return output
    const { status: _, ...said } = output
    return CALLS.has(called) && OUTPUTS.has(String(output.type)) ? { ...said, type } : undefined
  },

  noResult({ block, call }) {
    const output = {
      call_id: call,
      output: NO_RESULT,
      ...(isObject(block.caller) && { caller: block.caller }),
    }
    if (block.type === 'function_call')
      return { type: 'function_call_output', ...output, status: 'incomplete' }
    return block.type === 'custom_tool_call' ? { type: 'custom_tool_call_output', ...output } : undefined
  },

  textOf: ({ output, approve, status }) => {
    if (typeof approve === 'boolean') return approve ? 'Approved.' : 'Refused.'
    if (output === undefined || isScreenshot(output)) return textOf(status ?? '')
    if (!Array.isArray(output)) return textOf(output)
    return output
      .flatMap((block) => (isObject(block) ? [block.text, block.stdout, block.stderr] : []))
      .filter((text) => typeof text === 'string' && text !== '')
      .join('\n')
  },

  mediaOf: ({ output }) =>
    (Array.isArray(output) ? output : [output]).flatMap((block) => {
      if (!isObject(block) || !(MEDIA_FIELDS[String(block.type)] || isScreenshot(block))) return []
      const medium = isScreenshot(block)
        ? takenMedium({ ...block, type: 'input_image', detail: 'auto' })
        : block
      return [{ kind: 'content', block: { type: 'message', role: 'user', content: [medium] } }]
    }),

  text: (text) => ({
    side: 'user',
    head: {},
    pieces: [{ kind: 'content', block: { type: 'message', role: 'user', content: text } }],
  }),
}

/** Items that Codex writes into its transcripts, and the API does not know: names that compactions had before, and its own. */
const COMPACTIONS = new Set(['context_compaction', 'compaction_summary'])
const OF_CODEX = new Set(['ghost_snapshot', 'other'])

function runOf(said: JsonObject, ids: PieceIds, omit: OmitBlock): Run[] {
  const given = COMPACTIONS.has(String(said.type)) ? { ...said, type: 'compaction' } : said
  if (OF_CODEX.has(String(given.type)) || (given !== said && typeof given.encrypted_content !== 'string')) {
    omit(String(said.type), said)
    return []
  }
  const type = typeof given.type === 'string' ? given.type : given.role != null ? 'message' : 'item_reference'
  const known = RESPONSES_FIELDS[type]
  const item = completed(known ? withOnly(given, known) : withoutAuthor(given))
  const piece = pieceOf(item, type, ids, omit)
  if (piece === undefined) return []
  const side = sideOf(piece, item, type)
  return [{ side, head: {}, pieces: [piece] }]
}

/** Members that an item must have, even if null. */
const NULLABLE = new Set(['result', 'code', 'outputs', 'keys'])

/** Programs that store what their SDK returns have null for what is not there, and the API takes it for few fields. */
function withOnly(item: JsonObject, known: ReadonlySet<string>): JsonObject {
  const nulls = Object.entries(item).filter(
    ([key, value]) => value === null && NULLABLE.has(key) && known.has(key),
  )
  return { ...only(item, known), ...Object.fromEntries(nulls) }
}

/** Roles that a request takes. Messages that Conversations return have more. */
const ROLES = new Set(['user', 'assistant', 'system', 'developer'])

/** Whether an item is a message that only an answer of Conversations can be. */
export function isOfConversations({ type, role }: JsonObject): boolean {
  return type === 'message' && !ROLES.has(String(role))
}

/** The item with what the API wants of it, and other services, earlier versions and what SDKs dump leave out. */
function completed(item: JsonObject): JsonObject {
  const withAction = (least: JsonObject) => ({
    ...item,
    action: { ...least, ...(isObject(item.action) && item.action) },
  })
  switch (item.type) {
    case 'tool_search_call':
      return {
        ...item,
        arguments: sentObject(
          isObject(item.arguments) ? item.arguments : argumentsAsObject(textOf(item.arguments ?? '')),
        ),
      }
    case 'tool_search_output':
      return { tools: [], ...item }
    case 'custom_tool_call':
      return { input: '', ...item }
    case 'computer_call_output':
    case 'function_call_output':
      return item.status === 'failed' ? { ...item, status: 'incomplete' } : item
    case 'local_shell_call':
      return withAction({ type: 'exec', command: [], env: {} })
    case 'web_search_call':
      return item.action === undefined ? item : withSearch(withAction({ type: 'search' }))
    default:
      return item
  }
}

const SEARCHES = new Set(['search', 'open_page', 'find_in_page'])

/** A search whose action has a type that the API knows: Codex writes `other`. */
function withSearch(item: { action: JsonObject }): JsonObject {
  return SEARCHES.has(String(item.action.type))
    ? item
    : { ...item, action: { ...item.action, type: 'search' } }
}

/** Only answers say who made an item. */
function withoutAuthor({ created_by: _, ...given }: JsonObject): JsonObject {
  const item = withoutOptionalNulls(given)
  for (const key of ['action', 'output']) if (isObject(item[key])) item[key] = withoutOptionalNulls(item[key])
  if (Array.isArray(item.output))
    item.output = item.output.map((one: unknown) => (isObject(one) ? withoutAuthor(one) : one))
  return item.type === 'additional_tools' ? { ...item, role: 'developer' } : item
}

function withoutOptionalNulls(object: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(object).filter(([key, value]) => value !== null || NULLABLE.has(key)),
  )
}

const TEXT_FIELDS = fields('type', 'text', 'annotations', 'logprobs')
/** The types of a text: which of them the API takes depends on who says it. */
const TEXTS = new Set(['text', 'input_text', 'output_text'])

/** The message with the content that its speaker may have, and without what is null in it. */
function spokenMessage(given: JsonObject, omit: OmitBlock): JsonObject {
  const { status: _, ...rest } = given
  // Only what OpenAI knows by its id has a status.
  const item = given.id === undefined ? rest : given
  if (!Array.isArray(item.content)) return item
  const is_models = item.role === 'assistant'
  const blocks: JsonObject[] = item.content.filter(isObject)
  const content = blocks.flatMap<JsonObject>((block) => {
    const kept = ownForm(withoutNulls(block))
    if (kept === undefined) {
      omit(String(block.type), block)
      return []
    }
    if (isRefused(kept)) {
      omit(String(kept.type).replace(/^input_/, ''), block)
      return []
    }
    if (TEXTS.has(String(kept.type))) return is_models ? outputText(kept) : inputText(kept)
    if (!is_models) return kept.type === 'refusal' ? inputText({ text: kept.refusal }) : takenMedium(kept)
    if (kept.type === 'refusal') return kept
    omit(String(kept.type), block)
    return []
  })
  // Without an id, only a text is of the SDK's type.
  const is_said = is_models && item.id === undefined && content.some(({ type }) => type !== 'refusal')
  return { ...item, content: is_said ? content.map(saidText).join('') : content }
}

const OWN_BLOCKS = new Set([...TEXTS, 'input_image', 'input_file', 'input_audio', 'refusal'])

/** A block of Chat Completions, of another provider or of a framework as the API takes it. */
function ownForm(block: JsonObject): JsonObject | undefined {
  if (!isForeign(block, OWN_BLOCKS)) return block
  const said = saidByForeign(block)
  if (!said || 'text' in said) return said && { type: 'input_text', ...said }
  const { url } = said
  if (isForeignImage(block, url)) return { type: 'input_image', image_url: url, detail: 'auto' }
  return { type: 'input_file', [/^data:/i.test(url) ? 'file_data' : 'file_url']: url }
}

/** Members that a picture and a file may have. */
const MEDIA_FIELDS: Readonly<Record<string, ReadonlySet<string>>> = {
  input_image: fields('type', 'detail', 'file_id', 'image_url', 'prompt_cache_breakpoint'),
  input_file: fields(
    'type',
    'detail',
    'file_data',
    'file_id',
    'file_url',
    'filename',
    'prompt_cache_breakpoint',
  ),
}

/** Whether a picture or a file is of a type, or at a place, that the API cannot read. */
function isRefused(block: JsonObject): boolean {
  const { image_url, file_url } = block
  if (isRefusedImage(image_url) || isEmptyMedium(block)) return true
  return typeof file_url === 'string' && !isAddress(file_url) && !parseDataUrl(file_url)
}

/** A picture or a file with one place where it is, its bytes rather than an id. A file of bytes alone has a name. */
function takenMedium({ cache_control: _, ...given }: JsonObject): JsonObject {
  const known = MEDIA_FIELDS[String(given.type)]
  if (!known) return given
  const block = only(given, known)
  if (typeof block.file_url === 'string' && parseDataUrl(block.file_url)) {
    block.file_data = block.file_url
    delete block.file_url
  }
  const image = typeof block.file_data === 'string' ? parseDataUrl(block.file_data.slice(0, 64)) : null
  if (image && imageType(image.media_type))
    return { type: 'input_image', detail: 'auto', image_url: block.file_data }
  const [place] = ['image_url', 'file_data', 'file_url', 'file_id'].filter((key) => block[key] !== undefined)
  for (const key of ['file_id', 'file_url', 'file_data']) if (key !== place) delete block[key]
  if (place !== 'file_data') delete block.filename
  return isUnnamedFile(block) ? { ...block, filename: nameOfBytes(block.file_data) } : block
}

function outputText(block: JsonObject): JsonObject {
  if (block.type !== 'output_text') return { type: 'output_text', text: block.text, annotations: [] }
  const kept = only(block, TEXT_FIELDS)
  return kept.annotations === undefined ? { ...kept, annotations: [] } : kept
}

/** `cache_control` is what gateways put in for Anthropic. */
function inputText({ cache_control: _, ...block }: JsonObject): JsonObject {
  return block.type === 'input_text' ? block : { type: 'input_text', text: block.text }
}

/** How the ids of these items begin: the API refuses any other. */
const PREFIXES: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fc',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
  web_search_call: 'ws',
  tool_search_call: 'tsc',
  compaction: 'cmp',
}

/** Whether the API takes an item's id, which another service may have made. */
export function isItemId(type: unknown, id: string): boolean {
  const prefix = PREFIXES[String(type)]
  return prefix === undefined || (id.startsWith(prefix) && /^[a-zA-Z0-9_-]{1,64}$/.test(id))
}

function isOpenAisCompaction({ id, encrypted_content }: JsonObject): boolean {
  const isKnown = typeof id !== 'string' || isItemId('compaction', id)
  return isKnown && typeof encrypted_content === 'string' && encrypted_content !== ''
}

/** Items whose id a request need not have, whatever the SDK's types say. */
const WITHOUT_ID = new Set([
  ...CALLS,
  ...OUTPUTS,
  'shell_call',
  'apply_patch_call',
  'web_search_call',
  'tool_search_call',
  'compaction',
])

/**
 * What the model said or called, without the reasoning that led to it. The API refuses an item that it knows by its id to
 * follow a reasoning item, if that is not there: so a message and a call go without an id, and an item that cannot be
 * without is left out.
 */
export function withoutReasoningIds(piece: Piece): Piece | undefined {
  const { id, ...rest } = piece.block
  if (id === undefined || piece.raw !== undefined) return piece
  const { type } = rest
  if (WITHOUT_ID.has(String(type))) return { ...piece, block: rest }
  if (type !== 'message') return undefined
  const texts = Array.isArray(rest.content) ? rest.content.map(saidText) : [rest.content]
  const { status: _, ...message } = rest
  const content = texts.join('')
  return isBlank(content) ? undefined : { ...piece, block: { ...message, content } }
}

function saidText(block: unknown): string {
  if (!isObject(block)) return ''
  return textOf(block.text ?? block.refusal)
}

function pieceOf(
  item: JsonObject,
  type: string,
  { calls, results }: PieceIds,
  omit: OmitBlock,
): Piece | undefined {
  if (type === 'message') {
    const block = spokenMessage(item, omit)
    return isEmptyMessage(block) ? undefined : { kind: 'content', block }
  }
  // The API wants a summary, though it be empty.
  if (type === 'reasoning') return { kind: 'thinking', block: { summary: [], ...item } }
  if (CALLS.has(type)) {
    const ids = calls.pop()
    return ids && { kind: 'call', block: withArguments(item, omit), call: ids.id, name: ids.name }
  }
  if (OUTPUTS.has(type)) {
    const ids = results.pop()
    return (
      ids && {
        kind: 'result',
        block: withOutput(item, omit),
        call: ids.id,
        ...(ids.name !== undefined && { name: ids.name }),
      }
    )
  }
  // Nobody can read what another service encrypted: what it sums up is there.
  if (type === 'compaction' && !isOpenAisCompaction(item)) {
    omit(type, item)
    return undefined
  }
  const kind = itemKind(type)
  // A call that OpenAI had begun to make when the stream ended has nothing that the API could go on with.
  if (kind === 'hosted_call' && UNFINISHED.has(String(item.status)))
    return { kind: 'call', block: item, call: String(item.id) }
  const call = callIdOf(item, type)
  if (call === undefined) return { kind: 'content', block: item }
  // OpenAI runs a program, which waits for the outputs of what it calls.
  if (type === 'program') return { kind: 'hosted_call', block: item, call }
  if (type === 'program_output') return { kind: 'hosted_result', block: item, call }
  if (kind === 'call' || type === 'mcp_approval_request') return { kind: 'call', block: item, call }
  const is_result = type.endsWith('_output') || type === 'mcp_approval_response'
  return is_result ? { kind: 'result', block: item, call } : { kind: 'content', block: item }
}

const UNFINISHED = new Set(['in_progress', 'searching', 'generating', 'interpreting', 'calling'])

/** Items whose own id is that of the call. */
const NAMED_BY_ID = new Set(['local_shell_call_output', 'mcp_approval_request'])

/** A built-in tool's call and its output name each other: a local shell's output by the call's id. */
function callIdOf({ call_id, id, approval_request_id }: JsonObject, type: string): string | undefined {
  const named =
    type === 'mcp_approval_response' ? approval_request_id : call_id || (NAMED_BY_ID.has(type) && id)
  return typeof named === 'string' && named !== '' ? named : undefined
}

function isScreenshot(output: unknown): output is JsonObject {
  return isObject(output) && output.type === 'computer_screenshot'
}

/** Whether an item asks for the approval of a call of an MCP server, or gives it. Neither has a `call_id`. */
function isOfApproval({ type }: JsonObject): boolean {
  return type === 'mcp_approval_request' || type === 'mcp_approval_response'
}

function withArguments(item: JsonObject, omit: OmitBlock): JsonObject {
  if (item.type !== 'function_call') {
    if (!isLongInput(item.input)) return item
    omit('input', { text: item.input })
    return { ...item, input: '' }
  }
  const text = sentArguments(item.arguments)
  if (text === undefined) omit('arguments', { text: item.arguments })
  return { ...item, arguments: text ?? '{}' }
}

function withOutput(item: JsonObject, omit: OmitBlock): JsonObject {
  if (typeof item.output === 'string') return { ...item, output: cutResult(item.output) }
  if (!Array.isArray(item.output)) return item
  const output = item.output.filter(isObject).flatMap((block: JsonObject) => {
    const kept = ownForm(block)
    if (kept && TEXTS.has(String(kept.type))) return inputText(kept)
    if (kept && !isRefused(kept)) return takenMedium(kept)
    omit(String(block.type).replace(/^input_/, ''), block)
    return []
  })
  return { ...item, output: output.length > 0 ? output : '' }
}

function isEmptyMessage({ content }: JsonObject): boolean {
  if (Array.isArray(content)) return content.length === 0
  return isBlank(content)
}

function sideOf({ kind }: Piece, item: JsonObject, type: string): Run['side'] {
  if (kind === 'result') return 'user'
  if (kind !== 'content') return 'model'
  if (type === 'message') return item.role === 'assistant' ? 'model' : 'user'
  return itemRole(type) === 'assistant' ? 'model' : 'user'
}
