import { isObject, type JsonObject } from '../blob_reading.js'
import { dataUrl, parseDataUrl } from '../media.js'
import { type Part, part } from '../parts.js'
import { textOfMcp } from '../tool_blocks.js'
import { isBlank } from './pieces.js'

/** Blocks of some format, which programs leave in lists of another one. */
const TYPES = new Set([
  'audio',
  'code_execution_tool_result',
  'computer_screenshot',
  'container_upload',
  'document',
  'document_url',
  'file',
  'file-data',
  'file-url',
  'function_call',
  'function_call_output',
  'function_response',
  'image',
  'image-data',
  'image-url',
  'image_url',
  'input_audio',
  'input_file',
  'input_image',
  'input_text',
  'invalid_tool_call',
  'mcp_tool_result',
  'mcp_tool_use',
  'media',
  'non_standard',
  'output_text',
  'reasoning',
  'reasoning_content',
  'redacted_thinking',
  'refusal',
  'resource',
  'resource_link',
  'search_result',
  'server_tool_use',
  'summary_text',
  'text',
  'text-plain',
  'thinking',
  'thought',
  'tool-call',
  'tool-result',
  'tool_call',
  'tool_reference',
  'tool_result',
  'tool_use',
  'video_url',
  'web_fetch_tool_result',
  'web_search_tool_result',
])

/** Whether a block is of a type that a format does not have and another one has. Kinds that are not known here stay. */
export function isForeign({ type }: JsonObject, own: ReadonlySet<string>): boolean {
  const name = String(type)
  return !own.has(name) && (TYPES.has(name) || name.endsWith('_delta'))
}

/** What such a block says: a text, or where a picture or a file is. undefined for anything else. */
export function saidByForeign(block: JsonObject): { text: string } | { url: string } | undefined {
  const { type, text, image_url, source, file } = block
  const told = textOfMcp(block)
  if (told !== undefined) return isBlank(told) ? undefined : { text: told }
  if (['text', 'input_text', 'output_text', 'text-plain'].includes(String(type)))
    return isBlank(text) ? undefined : { text: String(text) }
  const inside = [source, file, block.data].find(isObject) ?? block
  const written = inside.type === 'text' ? (inside.data ?? inside.text) : undefined
  if (!isBlank(written)) return { text: String(written) }
  const url = isObject(image_url) ? image_url.url : image_url
  const data = inside.data ?? inside.base64 ?? inside.image
  const places = [
    url,
    inside.url,
    inside.document_url,
    inside.file_url,
    inside.file_data,
    isPlace(data) ? data : undefined,
  ]
  const place = places.find((one) => typeof one === 'string')
  if (typeof place === 'string') return isPlace(place) ? { url: place } : undefined
  if (typeof data !== 'string' || data === '') return undefined
  const media_type = typeIn(inside) ?? typeIn(block)
  return media_type === undefined ? undefined : { url: dataUrl({ media_type, data }) }
}

function typeIn({ media_type, mime_type, mimeType, mediaType }: JsonObject): string | undefined {
  const given = media_type ?? mime_type ?? mimeType ?? mediaType
  return typeof given === 'string' ? given : undefined
}

function isPlace(text: unknown): boolean {
  return typeof text === 'string' && /^(https?|data):/i.test(text)
}

/** Whether what such a block shows is a picture. */
export function isForeignImage(block: JsonObject, url: string): boolean {
  if (/^data:/i.test(url)) return /^data:image\//i.test(url)
  return /image/.test(String(block.type)) || /^image\b/i.test(typeIn(block) ?? '')
}

/**
 * A thought in such a block. AI SDK has what Anthropic signed beside it, under the provider's name. OpenAI's own has no
 * text that others could go on with.
 */
function thoughtIn({ type, thinking, text, signature, data, providerOptions }: JsonObject): Part | undefined {
  const { anthropic, google, vertex } = isObject(providerOptions) ? providerOptions : {}
  const signed = isObject(anthropic) ? anthropic : {}
  const redacted = type === 'redacted_thinking' ? data : signed.redactedData
  if (typeof redacted === 'string') return part('redacted_thinking', null, { data: redacted })
  const thought = type === 'thinking' ? thinking : type === 'reasoning' ? text : undefined
  if (typeof thought !== 'string') return undefined
  const by = signature ?? signed.signature
  if (isObject(google) || isObject(vertex)) return part('thinking', thought, { type: 'thought' })
  return typeof by === 'string' && by !== '' ? part('thinking', thought, { signature: by }) : undefined
}

/** A part of such a block as what it says. */
export function partOfForeign(given: Part): Part {
  if (given.type !== 'data') return given
  const { data_type, tool_call_id, ...fields } = given.meta
  const block = { ...fields, type: data_type }
  const thought = thoughtIn(block)
  if (thought) return thought
  const said = TYPES.has(data_type) ? saidByForeign(block) : undefined
  if (!said) return given
  if ('text' in said) return part('text', said.text, null)
  const of = typeof tool_call_id === 'string' && { tool_call_id }
  const meta = { ...(parseDataUrl(said.url) ?? { url: said.url }), ...of }
  return isForeignImage(block, said.url) ? part('image', null, meta) : part('file', null, meta)
}
