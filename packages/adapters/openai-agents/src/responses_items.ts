import { isDeepStrictEqual } from 'node:util'
import { readMessage } from '@annals/messages'
import type { AgentInputItem } from '@openai/agents-core'

/**
 * The SDK's items are those of the Responses API under other names. Stored under the API's own, they are read as
 * messages, calls and results by everything that reads a session:
 *
 * | the SDK | as stored |
 * |---|---|
 * | `callId` | `call_id` |
 * | `function_call_result` with `output` | `function_call_output`; a text or another single block in `output` is marked by `output_form` |
 * | `image` of an `input_image` | `image_url` |
 *
 * All else stays as it is. What does not come back exactly so, or is no item of the API, is stored in an item of a type
 * of ours.
 */
const OWN_TYPE = 'openai_agents.item'

type Json = Record<string, unknown>

/** How an item is stored: a message of the format `responses`. */
export function responsesItemOf(item: AgentInputItem): Json {
  const bytes: string[] = []
  const json = jsonOf(item, '', bytes) as Json
  if (bytes.length > 0) return { type: OWN_TYPE, item: json, bytes }
  const renamed = rename(json)
  if (json.type !== OWN_TYPE && isReadable(renamed) && isDeepStrictEqual(restore(renamed), json))
    return renamed
  return { type: OWN_TYPE, item: json }
}

/** The item that was given to `responsesItemOf`, or as which a message reads that another program stored. */
export function itemOf(stored: Json): AgentInputItem {
  if (stored.type !== OWN_TYPE) return restore(stored) as unknown as AgentInputItem
  const { item, bytes = [] } = stored as { item: Json; bytes?: string[] }
  const paths = new Set(bytes)
  return (paths.size === 0 ? item : withBytes(item, '', paths)) as AgentInputItem
}

/** Two items are the same if they say the same, whatever the order of their keys. */
export function isSame(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(jsonOf(one, '', []), jsonOf(other, '', []))
}

function isReadable(blob: Json): boolean {
  try {
    readMessage('responses', blob)
    return true
  } catch {
    return false
  }
}

function rename({ callId, output, ...item }: Json): Json {
  const named = callId === undefined ? item : { ...item, call_id: callId }
  if (item.type === 'function_call_result')
    return { ...named, type: 'function_call_output', ...renameOutput(output) }
  const content = Array.isArray(item.content) ? { content: item.content.map(renameBlock) } : {}
  return { ...named, ...(output !== undefined && { output }), ...content }
}

function renameOutput(output: unknown): Json {
  if (typeof output !== 'object' || output === null) return { output }
  if (Array.isArray(output)) return { output: output.map(renameBlock) }
  const { type, text, ...more } = output as Json
  if (type === 'text' && typeof text === 'string' && Object.keys(more).length === 0)
    return { output: text, output_form: 'text' }
  return { output: [output], output_form: 'block' }
}

function renameBlock(block: unknown): unknown {
  const { type, image, ...more } = (block ?? {}) as Json
  return type === 'input_image' && typeof image === 'string' ? { type, ...more, image_url: image } : block
}

function restore({ call_id, output, output_form, ...item }: Json): Json {
  const named = call_id === undefined ? item : { ...item, callId: call_id }
  if (item.type === 'function_call_output') {
    const { name = '', status = 'completed' } = item
    return {
      ...named,
      type: 'function_call_result',
      name,
      status,
      output: restoreOutput(output, output_form),
    }
  }
  const content = Array.isArray(item.content) ? { content: item.content.map(restoreBlock) } : {}
  return { ...named, ...(output !== undefined && { output }), ...content }
}

function restoreOutput(output: unknown, form: unknown): unknown {
  if (form === 'text') return { type: 'text', text: output }
  if (form === 'block') return (output as unknown[])[0]
  return Array.isArray(output) ? output.map(restoreBlock) : output
}

function restoreBlock(block: unknown): unknown {
  const { type, image_url, ...more } = (block ?? {}) as Json
  return type === 'input_image' && typeof image_url === 'string' ? { type, ...more, image: image_url } : block
}

/** The value as JSON holds it; bytes as base64, with their places as JSON pointers. */
function jsonOf(value: unknown, at: string, bytes: string[]): unknown {
  if (value instanceof Uint8Array) {
    bytes.push(at)
    return Buffer.from(value).toString('base64')
  }
  if (Array.isArray(value)) return value.map((one, index) => jsonOf(one ?? null, `${at}/${index}`, bytes))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(
    members.map(([key, member]) => [key, jsonOf(member, `${at}/${escaped(key)}`, bytes)]),
  )
}

function withBytes(value: unknown, at: string, paths: ReadonlySet<string>): unknown {
  if (paths.has(at)) return new Uint8Array(Buffer.from(value as string, 'base64'))
  if (Array.isArray(value)) return value.map((one, index) => withBytes(one, `${at}/${index}`, paths))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value)
  return Object.fromEntries(
    members.map(([key, member]) => [key, withBytes(member, `${at}/${escaped(key)}`, paths)]),
  )
}

function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1')
}
