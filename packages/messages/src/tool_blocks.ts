import { isObject, type JsonObject } from './blob_reading.js'
import type { Part } from './parts.js'
import { argumentsAsText } from './tool_arguments.js'

/**
 * Calls and results that programs leave as blocks in the content of OpenAI's messages: those of Anthropic's, as gateways
 * take them, of the Responses API's, LangChain's and AI SDK's.
 */
const CALLS: ReadonlySet<unknown> = new Set([
  'tool_use',
  'tool_call',
  'invalid_tool_call',
  'tool-call',
  'function_call',
])
const RESULTS: ReadonlySet<unknown> = new Set(['tool_result', 'tool-result', 'function_call_output'])

export interface CallBlock {
  id: string
  name: string
  arguments: string
  thought_signature?: string
}

export interface ResultBlock {
  id: string
  content: unknown
  is_error: boolean
}

export const NONE: ReadonlySet<unknown> = new Set()

/** The call that a block is; undefined if it is none, or one that `tool_calls` beside it has, too. */
export function callIn(block: unknown, known: ReadonlySet<unknown>): CallBlock | undefined {
  if (!isObject(block) || !CALLS.has(block.type)) return undefined
  const id = block.call_id ?? block.toolCallId ?? block.id
  const name = block.name ?? block.toolName
  if (typeof id !== 'string' || typeof name !== 'string' || known.has(id)) return undefined
  const text = argumentsAsText(block.input ?? block.args ?? block.arguments ?? {})
  return { id, name, arguments: text, ...signatureBeside(block) }
}

/** Gemini's signature of a call where AI SDK has it, under the provider's name. */
function signatureBeside({ providerOptions }: JsonObject): { thought_signature?: string } {
  const { google, vertex } = isObject(providerOptions) ? providerOptions : {}
  const signature = [google, vertex].filter(isObject).map(({ thoughtSignature }) => thoughtSignature)[0]
  return typeof signature === 'string' && signature !== '' ? { thought_signature: signature } : {}
}

/** The ids of the calls that a message has where OpenAI has them. */
export function idsOfCalls({ tool_calls }: JsonObject): ReadonlySet<unknown> {
  return new Set(Array.isArray(tool_calls) ? tool_calls.map((call) => isObject(call) && call.id) : [])
}

/** The result that a block is. */
export function resultIn(block: unknown): ResultBlock | undefined {
  if (!isObject(block) || !RESULTS.has(block.type)) return undefined
  const id = block.tool_use_id ?? block.call_id ?? block.toolCallId
  if (typeof id !== 'string') return undefined
  const { output } = block
  // AI SDK says of an output what kind of value it is.
  const typed = block.type === 'tool-result' && isObject(output) ? output : undefined
  const content =
    typed?.type === DENIED ? (typed.reason ?? NOT_ALLOWED) : (typed?.value ?? block.content ?? output ?? '')
  return { id, content, is_error: block.is_error === true || String(typed?.type).startsWith('error') }
}

const DENIED = 'execution-denied'
const NOT_ALLOWED = 'The call was not allowed.'

/** Whether a tool's message is AI SDK's, which has all results of a turn as blocks, each with the id of its call. */
export function isTurnOfResults({ tool_call_id, content }: JsonObject): boolean {
  if (tool_call_id != null || !Array.isArray(content)) return false
  return content.some((block) => resultIn(block) ?? (isObject(block) && block.type === APPROVAL))
}

const APPROVAL = 'tool-approval-response'

/** Whether a message of OpenAI's has calls or results as blocks, or calls as LangChain has them. */
export function hasToolBlocks(blob: JsonObject): boolean {
  const { content, tool_calls } = blob
  if (Array.isArray(tool_calls) && tool_calls.some((call) => callIn(call, NONE))) return true
  if (!Array.isArray(content)) return false
  const known = idsOfCalls(blob)
  return content.some((block) => resultIn(block) ?? (blob.role === 'assistant' && callIn(block, known)))
}

/** What a resource of MCP's, or a link to one, says as a text; undefined for bytes and for any other block. */
export function textOfMcp({ type, uri, name, resource }: JsonObject): string | undefined {
  if (type === 'resource_link')
    return [name, uri].filter((one) => typeof one === 'string' && one !== '').join(': ')
  const text = type === 'resource' && isObject(resource) ? resource.text : undefined
  return typeof text === 'string' ? text : undefined
}

/** The same of a part that it became. */
export function textOfMcpPart({ type, meta }: Part): string | undefined {
  return type === 'data' ? textOfMcp({ ...meta, type: meta.data_type }) : undefined
}
