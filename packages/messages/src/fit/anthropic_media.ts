import { isMarked, textMark } from '../attachments.js'
import { textOfBase64 } from '../base64.js'
import { isObject, type JsonObject } from '../blob_reading.js'
import { imageType, isTextType, parseDataUrl } from '../media.js'
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
  const { title, context, ...rest } = block
  const named = { ...rest, ...(!isBlank(title) && { title }), ...(!isBlank(context) && { context }) }
  const { type, media_type, data } = source
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

function ownSource(source: JsonObject): JsonObject {
  const known = SOURCE_FIELDS[String(source.type)]
  return known ? only(source, known) : source
}

/** Blocks of other formats and of streams, which programs leave in lists of Anthropic's. */
const OF_OTHERS = new Set([
  'audio',
  'file',
  'function_call',
  'function_response',
  'image_url',
  'input_audio',
  'input_file',
  'input_image',
  'input_text',
  'media',
  'non_standard',
  'output_text',
  'reasoning',
  'reasoning_content',
  'refusal',
  'thought',
  'tool_call',
  'video_url',
])

/** Whether a block is of a type that the API does not know. */
export function isOfOthers({ type }: JsonObject): boolean {
  return OF_OTHERS.has(String(type)) || String(type).endsWith('_delta')
}

/** What such a block says: a text, or a picture. undefined for anything else. */
export function blockOfOthers(block: JsonObject): JsonObject | undefined {
  const { type, text, image_url } = block
  if (type === 'input_text' || type === 'output_text')
    return isBlank(text) ? undefined : { type: 'text', text }
  const url = isObject(image_url) ? image_url.url : image_url
  if (typeof url !== 'string') return undefined
  const bytes = parseDataUrl(url)
  if (bytes) return takenImage({ type: 'image', source: { type: 'base64', ...bytes } })
  return /^https?:/i.test(url) ? { type: 'image', source: { type: 'url', url } } : undefined
}

/** A thought's signature is Anthropic's own: OpenAI's begin with `gAAAA`, MiniMax has 64 hexadecimal digits. */
export function isAnthropicsSignature(signature: unknown): boolean {
  if (typeof signature !== 'string' || isBlank(signature)) return false
  if (isMarked(signature)) return true
  return !/^(gAAAA|[0-9a-f]{64}$)/.test(signature) && !/[^A-Za-z0-9+/=_.-]/.test(signature)
}

/** Models of others that answer in Anthropic's format, and sign thoughts that Anthropic refuses. */
const OTHER_MODEL = /(^|\/)(deepseek|doubao|gemini|glm|gpt|grok|kimi|mimo|minimax|o\d|qwen)/i

export function isOfOtherModel({ model }: JsonObject): boolean {
  return typeof model === 'string' && OTHER_MODEL.test(model)
}
