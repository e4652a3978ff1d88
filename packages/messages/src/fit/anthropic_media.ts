import { isMarked, textMark } from '../attachments.js'
import { textOfBase64 } from '../base64.js'
import { isObject, type JsonObject } from '../blob_reading.js'
import { imageType, isTextType, parseDataUrl } from '../media.js'
import { isForeign, isForeignImage, saidByForeign } from './foreign_blocks.js'
import { isBlank, isEmptyMedium, only } from './pieces.js'

/** Members of a source, by its type: the API refuses any other. */
const SOURCE_FIELDS: Readonly<Record<string, ReadonlySet<string>>> = {
  base64: new Set(['type', 'media_type', 'data']),
  text: new Set(['type', 'media_type', 'data']),
  url: new Set(['type', 'url']),
  file: new Set(['type', 'file_id']),
}

/** An image as the API takes it: it knows no `image/jpg`, which programs write. undefined for one that it refuses. */
export function takenImage(block: JsonObject): JsonObject | undefined {
  if (isEmptyMedium(block) || !isObject(block.source)) return undefined
  const source = ownSource(block.source)
  if (source === undefined) return undefined
  if (typeof source.media_type !== 'string') return { ...block, source }
  const media_type = imageType(source.media_type)
  return media_type && { ...block, source: { ...source, media_type } }
}

/**
 * A document as the API takes it: of bytes only a PDF. A text of another type is a text, and a picture a picture. undefined
 * for what the API cannot read.
 */
export function takenDocument(block: JsonObject): JsonObject | undefined {
  if (isEmptyMedium(block) || !isObject(block.source)) return undefined
  const source = ownSource(block.source)
  if (source === undefined) return undefined
  const { title, context, ...rest } = block
  const named = { ...rest, ...(!isBlank(title) && { title }), ...(!isBlank(context) && { context }) }
  const { type, media_type, data } = source
  if (type === 'content') return isEmptyContent(source) ? undefined : { ...named, source }
  if (type === 'text')
    return isBlank(data) ? undefined : { ...named, source: { ...source, media_type: 'text/plain' } }
  if (type !== 'base64' || media_type === 'application/pdf') return { ...named, source }
  if (typeof media_type !== 'string' || typeof data !== 'string') return undefined
  if (imageType(media_type)) {
    const { type: _, title: __, context: ___, citations: ____, ...marks } = named as JsonObject
    return takenImage({ type: 'image', source, ...marks })
  }
  if (!isTextType(media_type)) return undefined
  const text = isMarked(data) ? textMark(data) : textOfBase64(data)
  return isBlank(text)
    ? undefined
    : { ...named, source: { type: 'text', media_type: 'text/plain', data: text } }
}

/** The source as the API takes it. undefined for an address that it cannot read. */
function ownSource(given: JsonObject): JsonObject | undefined {
  const bytes = given.type === 'url' && typeof given.url === 'string' ? parseDataUrl(given.url) : null
  if (given.type === 'url' && !bytes && !/^https?:/i.test(String(given.url))) return undefined
  const source = bytes ? { type: 'base64', ...bytes } : given
  const known = SOURCE_FIELDS[String(source.type)]
  return known ? only(source, known) : source
}

/** Whether a document or a search result that is made of blocks has none, or an empty text. */
export function isEmptyContent({ content }: JsonObject): boolean {
  return Array.isArray(content) ? content.length === 0 : isBlank(content)
}

/** Types of the API's own that another format may have, too, or that programs leave in lists of another one. */
const OWN = new Set([
  'code_execution_tool_result',
  'container_upload',
  'document',
  'image',
  'mcp_tool_result',
  'mcp_tool_use',
  'redacted_thinking',
  'search_result',
  'server_tool_use',
  'text',
  'thinking',
  'tool_reference',
  'tool_result',
  'tool_use',
  'web_fetch_tool_result',
  'web_search_tool_result',
])

/** Whether a block is of a type that the API does not know, or a medium in the form of a framework. */
export function isOfOthers(block: JsonObject): boolean {
  const { type, source } = block
  return isForeign(block, OWN) || ((type === 'image' || type === 'document') && !isObject(source))
}

/** What such a block says: a text, a picture or a document. undefined for anything else. */
export function blockOfOthers(block: JsonObject): JsonObject | undefined {
  const said = saidByForeign(block)
  if (!said || 'text' in said) return said && { type: 'text', ...said }
  const { url } = said
  const bytes = parseDataUrl(url)
  const source = bytes ? { type: 'base64', ...bytes } : { type: 'url', url }
  if (isForeignImage(block, url)) return takenImage({ type: 'image', source })
  return bytes ? takenDocument({ type: 'document', source }) : undefined
}

/**
 * A thought's signature is Anthropic's own: OpenAI's begin with `gAAAA`, MiniMax has 64 hexadecimal digits, and programs
 * write the name of the field that a thought came in (`reasoning_content`).
 */
export function isAnthropicsSignature(signature: unknown): boolean {
  if (typeof signature !== 'string' || isBlank(signature)) return false
  if (isMarked(signature)) return true
  return !/^(gAAAA|reasoning|[0-9a-f]{64}$)/.test(signature) && !/[^A-Za-z0-9+/=_.-]/.test(signature)
}

/** Models of others that answer in Anthropic's format, and sign thoughts that Anthropic refuses. */
const OTHER_MODEL =
  /(^|[/.:])(deepseek|devstral|doubao|ernie|gemini|gemma|glm|gpt|grok|hunyuan|k2|kimi|llama|longcat|magistral|mimo|minimax|mistral|nemotron|nova|o\d|qwen|qwq|seed|step)/i

export function isOfOtherModel({ model }: JsonObject): boolean {
  return typeof model === 'string' && OTHER_MODEL.test(model)
}
