import { isMarked, textMark } from './attachments.js'
import { textOfBase64 } from './base64.js'
import {
  bytesOf,
  fileBytes,
  fileName,
  type ImageType,
  imageType,
  isTextType,
  mediaTypeOf,
  publicUrl,
} from './media.js'
import type { CacheControl, FilePart, ImagePart, NeutralMessage, Part, ToolResultPart } from './parts.js'
import { argumentsAsObject } from './tool_arguments.js'
import { NO_CONTENT, type Omit, omitPart, type Turn, turnsOf } from './turns.js'

interface Cached {
  cache_control?: CacheControl
}
interface TextBlock extends Cached {
  type: 'text'
  text: string
}
interface ImageBlock extends Cached {
  type: 'image'
  source:
    | { type: 'base64'; media_type: ImageType; data: string }
    | { type: 'url'; url: string }
    | { type: 'file'; file_id: string }
}
interface DocumentBlock extends Cached {
  type: 'document'
  source:
    | { type: 'base64'; media_type: 'application/pdf'; data: string }
    | { type: 'text'; media_type: 'text/plain'; data: string }
    | { type: 'url'; url: string }
    | { type: 'file'; file_id: string }
  title?: string
}
interface ToolUseBlock extends Cached {
  type: 'tool_use'
  id: string
  name: string
  input: Record<string, unknown>
}
interface ToolResultBlock extends Cached {
  type: 'tool_result'
  tool_use_id: string
  content: string | (TextBlock | ImageBlock | DocumentBlock)[]
  is_error?: boolean
}
type Block =
  | TextBlock
  | ImageBlock
  | DocumentBlock
  | ToolUseBlock
  | ToolResultBlock
  | { type: 'thinking'; thinking: string; signature: string }
  | { type: 'redacted_thinking'; data: string }

/** A message as the renderer writes it: a subset of the SDK's `MessageParam`. */
export interface AnthropicMessage {
  role: 'user' | 'assistant'
  content: Block[]
}

/**
 * Writes a message for the Messages API. It becomes several only where one message holds what both sides said.
 *
 * System and developer messages become the user's, their text untouched: the API takes no system message as the
 * first one, older models take none at all, and a label inside the text is one that any user can write too.
 *
 * Left out: blank text, which the API refuses; thinking that Anthropic did not sign, which it refuses as well;
 * images and files in a reply, which it refuses, too; `data`; audio (its transcript is kept) and video; images other than JPEG, PNG, GIF and WebP; files other than
 * PDF and text, and text that is in a blob; files in another provider's store; names; refusals are kept as plain text.
 */
export function writeAnthropic(message: NeutralMessage, omit: Omit): AnthropicMessage[] {
  const messages: AnthropicMessage[] = []
  for (const turn of turnsOf(message)) {
    const content = writeBlocks(turn, omit)
    if (content.length > 0) messages.push({ role: turn.role, content })
  }
  return messages
}

/** A message with nothing that the format can carry. */
export function emptyAnthropic({ role }: NeutralMessage): AnthropicMessage {
  return { role, content: [{ type: 'text', text: NO_CONTENT }] }
}

const MEDIA: ReadonlySet<string> = new Set(['image', 'document'])

function writeBlocks({ role, parts }: Turn, omit: Omit): Block[] {
  const blocks: Block[] = []
  const results = new Map<string, ToolResultBlock>()
  for (const part of parts) {
    if (part.type === 'tool-result') {
      const block = writeResult(part)
      results.set(part.meta.tool_call_id, block)
      blocks.push(block)
      continue
    }
    const block = writeBlock(part)
    // The API takes neither images nor documents from the assistant.
    if (block === null || (role === 'assistant' && MEDIA.has(block.type))) {
      omitPart(part, omit)
      continue
    }
    const result =
      part.type === 'image' || part.type === 'file' ? results.get(part.meta.tool_call_id ?? '') : undefined
    // In an error it takes only text.
    const isInside = result !== undefined && result.is_error !== true
    if (isInside && (block.type === 'image' || block.type === 'document')) addTo(result, block)
    else blocks.push(block)
  }
  return blocks
}

/** A result's images and files go back into it. */
function addTo(result: ToolResultBlock, block: ImageBlock | DocumentBlock): void {
  if (typeof result.content !== 'string') result.content.push(block)
  else if (isBlank(result.content)) result.content = [block]
  else result.content = [{ type: 'text', text: result.content }, block]
}

function writeResult({ meta, text }: ToolResultPart): ToolResultBlock {
  const isError = meta.is_error === true
  return {
    type: 'tool_result',
    tool_use_id: meta.tool_call_id,
    // The API takes an empty result, but no empty error.
    content: isError && isBlank(text) ? NO_CONTENT : text,
    ...(isError && { is_error: true }),
    ...cached(meta),
  }
}

function writeBlock(part: Part): Block | null {
  switch (part.type) {
    case 'text':
      return isBlank(part.text) ? null : { type: 'text', text: part.text, ...cached(part.meta) }
    case 'image':
      return writeImage(part)
    case 'file':
      return writeFile(part)
    case 'audio':
      return isBlank(part.text ?? '') ? null : { type: 'text', text: part.text as string }
    case 'tool-call': {
      const { id, name } = part.meta
      const input = argumentsAsObject(part.meta.arguments)
      return { type: 'tool_use', id, name, input, ...cached(part.meta) }
    }
    case 'thinking': {
      const { signature, type } = part.meta ?? {}
      return signature && type !== 'thought' && type !== 'reasoning'
        ? { type: 'thinking', thinking: part.text, signature }
        : null
    }
    case 'redacted_thinking':
      return { type: 'redacted_thinking', data: part.meta.data }
    default:
      return null
  }
}

function writeImage({ meta }: ImagePart): ImageBlock | null {
  if (meta.file_id !== undefined) {
    if (meta.type !== 'file') return null
    return { type: 'image', source: { type: 'file', file_id: meta.file_id }, ...cached(meta) }
  }
  const bytes = bytesOf(meta, 'image/png')
  if (bytes === null) {
    const url = publicUrl(meta)
    return url === null ? null : { type: 'image', source: { type: 'url', url }, ...cached(meta) }
  }
  const media_type = imageType(bytes.media_type)
  if (media_type === undefined) return null
  return { type: 'image', source: { type: 'base64', media_type, data: bytes.data }, ...cached(meta) }
}

function writeFile(file: FilePart): Block | null {
  const { meta } = file
  const name = fileName(file)
  const rest = { ...(name ? { title: name } : {}), ...cached(meta) }
  if (meta.file_id !== undefined && meta.type === 'file') {
    return { type: 'document', source: { type: 'file', file_id: meta.file_id }, ...rest }
  }
  const bytes = fileBytes(file)
  if (bytes === null) return writeLinkedFile(file, rest)
  const { media_type, data } = bytes
  if (media_type === 'application/pdf') {
    return { type: 'document', source: { type: 'base64', media_type, data }, ...rest }
  }
  if (media_type.startsWith('image/')) {
    const { tool_call_id } = meta
    const image = { media_type, data, ...(tool_call_id !== undefined && { tool_call_id }) }
    return writeImage({ ...file, type: 'image', meta: image })
  }
  if (!isTextType(media_type)) return null
  const text = meta.type === 'text' ? (meta.data ?? '') : isMarked(data) ? textMark(data) : textOfBase64(data)
  if (isBlank(text)) return null
  return { type: 'document', source: { type: 'text', media_type: 'text/plain', data: text }, ...rest }
}

function writeLinkedFile({ meta }: FilePart, rest: Cached & { title?: string }): DocumentBlock | null {
  const url = publicUrl(meta)
  if (url === null) return null
  const isPdf = (meta.media_type || mediaTypeOf(url)) === 'application/pdf'
  return isPdf ? { type: 'document', source: { type: 'url', url }, ...rest } : null
}

function cached(meta: Cached | null): Cached {
  return meta?.cache_control === undefined ? {} : { cache_control: meta.cache_control }
}

function isBlank(text: string): boolean {
  return text.trim() === ''
}
