import type { CallIds } from './blob_reading.js'
import {
  asObject,
  InvalidMessage,
  isObject,
  type JsonObject,
  objectAt,
  optionalArrayAt,
  optionalBooleanAt,
  optionalTextAt,
  roleAt,
  textAt,
} from './blob_reading.js'
import {
  type CacheControl,
  dataPart,
  type FileMeta,
  type ImageMeta,
  linkToCall,
  type MediaMeta,
  type NeutralMessage,
  type Part,
  part,
  type TextMeta,
  type ToolCallMeta,
  type ToolResultMeta,
} from './parts.js'
import { argumentsAsText } from './tool_arguments.js'
import { textOfMcpPart } from './tool_blocks.js'

/**
 * Reads a message of the Messages API: one that goes into a request (`MessageParam`) or a response (`Message`).
 *
 * | block | part |
 * |---|---|
 * | `text`, or `content` as a string | `text` |
 * | `image` | `image` |
 * | `document` | `file`; one made of blocks is a text file, and its images follow as `image` |
 * | `search_result` | `text`, with `title` and `source` in its meta |
 * | `tool_use` | `tool-call` |
 * | `tool_result` | `tool-result`, its texts joined by line feeds; its images and files follow, and name the call |
 * | `thinking`, `redacted_thinking` | the same |
 * | `output_config` of a system message without content | `data` |
 * | any other: server tools and their results, container uploads, what is yet to come | `data` |
 */
export function readAnthropic(value: unknown, ids: CallIds): NeutralMessage {
  const blob = asObject(value, '')
  const role = roleAt(blob, ['user', 'assistant', 'system'])
  return {
    role: role === 'assistant' ? role : 'user',
    provider_role: role === 'system' ? role : null,
    name: null,
    parts: role === 'system' ? readSystem(blob, ids) : readContent(blob.content, '/content', ids),
  }
}

/** A system message may have nothing to say but how to answer from here on. */
function readSystem({ content, output_config }: JsonObject, ids: CallIds): Part[] {
  const parts = content == null ? [] : readContent(content, '/content', ids)
  return parts.length === 0 && isObject(output_config) ? [dataPart(output_config, 'output_config')] : parts
}

function readContent(content: unknown, at: string, ids: CallIds): Part[] {
  if (typeof content === 'string') return [part('text', content, null)]
  if (!Array.isArray(content)) {
    const missing = content === undefined ? 'is required and ' : ''
    throw new InvalidMessage(at, `${missing}must be a string or an array of content blocks`)
  }
  const parts: Part[] = []
  for (const [i, block] of content.entries())
    readBlock(asObject(block, `${at}/${i}`), `${at}/${i}`, ids, parts)
  return parts
}

function readBlock(block: JsonObject, at: string, ids: CallIds, parts: Part[]): void {
  const type = textAt(block, 'type', at)
  switch (type) {
    case 'text':
      parts.push(part('text', textAt(block, 'text', at), marked<TextMeta>({}, block) ?? null))
      return
    case 'image':
      parts.push(readImage(block, at))
      return
    case 'document':
      readDocument(block, at, ids, parts)
      return
    case 'search_result':
      parts.push(readSearchResult(block, at, ids))
      return
    case 'tool_use':
      parts.push(readCall(block, at, ids))
      return
    case 'tool_result':
      readResult(block, at, ids, parts)
      return
    case 'thinking': {
      const signature = optionalTextAt(block, 'signature', at)
      // Programs that collect a stream leave out the text of a thought that has none.
      const text = signature && block.thinking === undefined ? '' : textAt(block, 'thinking', at)
      parts.push(part('thinking', text, signature === undefined ? null : { signature }))
      return
    }
    case 'redacted_thinking':
      parts.push(part('redacted_thinking', null, { data: textAt(block, 'data', at) }))
      return
    default:
      parts.push(dataPart(block, type))
  }
}

function readImage(block: JsonObject, at: string): Part {
  const source = objectAt(block, 'source', at)
  const meta = source.type === 'text' ? null : readSource<ImageMeta>(source, `${at}/source`, {})
  return meta === null ? dataPart(block, 'image') : part('image', null, withMark(meta, block))
}

function readDocument(block: JsonObject, at: string, ids: CallIds, parts: Part[]): void {
  const source = objectAt(block, 'source', at)
  const title = optionalTextAt(block, 'title', at) ?? null
  if (source.type === 'content') {
    const { text, media } = readText(source.content, `${at}/source/content`, ids)
    const meta: FileMeta = { type: 'text', media_type: 'text/plain', data: text }
    parts.push(part('file', null, withMark(meta, block), title), ...media)
    return
  }
  const meta = readSource<FileMeta>(source, `${at}/source`, { media_type: 'application/pdf' })
  parts.push(meta === null ? dataPart(block, 'document') : part('file', null, withMark(meta, block), title))
}

/**
 * Where the bytes are, or null for a kind of source that is not known here. `linked` is what is known of bytes
 * behind a URL: a document there is always a PDF.
 */
function readSource<Meta extends MediaMeta>(
  source: JsonObject,
  at: string,
  linked: { media_type?: string },
): Meta | null {
  const type = textAt(source, 'type', at)
  switch (type) {
    case 'base64':
      return { type, media_type: textAt(source, 'media_type', at), data: textAt(source, 'data', at) } as Meta
    case 'text':
      return { type, media_type: 'text/plain', data: textAt(source, 'data', at) } as Meta
    case 'url':
      return { type, url: textAt(source, 'url', at), ...linked } as Meta
    case 'file':
      return { type, file_id: textAt(source, 'file_id', at) } as Meta
    default:
      return null
  }
}

function readSearchResult(block: JsonObject, at: string, ids: CallIds): Part {
  const content = optionalArrayAt(block, 'content', at) ?? []
  const { text } = readText(content, `${at}/content`, ids)
  const meta: TextMeta = { type: 'search_result' }
  const title = optionalTextAt(block, 'title', at)
  const source = optionalTextAt(block, 'source', at)
  if (title !== undefined) meta.title = title
  if (source !== undefined) meta.source = source
  return part('text', text, withMark(meta, block))
}

function readCall(block: JsonObject, at: string, ids: CallIds): Part {
  const name = textAt(block, 'name', at)
  const id = textAt(block, 'id', at)
  if (block.input === undefined) throw new InvalidMessage(`${at}/input`, 'is required')
  const input = block.input ?? {}
  const meta: ToolCallMeta = {
    id: ids.ofCall(id, name),
    name,
    // A collected stream may have left the input as text.
    arguments: typeof input === 'string' ? input || '{}' : argumentsAsText(input),
    type: 'tool_use',
  }
  return part('tool-call', null, withMark(meta, block))
}

function readResult(block: JsonObject, at: string, ids: CallIds, parts: Part[]): void {
  const call = ids.ofResult(textAt(block, 'tool_use_id', at), undefined)
  const content = block.content ?? ''
  const { text, media } = readText(content, `${at}/content`, ids)
  const meta: ToolResultMeta = { tool_call_id: call.id }
  if (call.name !== undefined) meta.name = call.name
  if (optionalBooleanAt(block, 'is_error', at) === true) meta.is_error = true
  parts.push(part('tool-result', text, withMark(meta, block)))
  for (const piece of media) {
    linkToCall(piece, call.id)
    parts.push(piece)
  }
}

/** Content as one text, and what in it is not text. */
function readText(content: unknown, at: string, ids: CallIds): { text: string; media: Part[] } {
  const texts: string[] = []
  const media: Part[] = []
  for (const piece of readContent(content, at, ids)) {
    const text = piece.type === 'text' ? piece.text : textOfMcpPart(piece)
    if (text === undefined) media.push(piece)
    else texts.push(text)
  }
  return { text: texts.join('\n'), media }
}

function withMark<Meta extends { cache_control?: CacheControl }>(meta: Meta, block: JsonObject): Meta {
  return marked(meta, block) ?? meta
}

/** The meta with the block's cache mark; undefined where there is none. */
function marked<Meta extends { cache_control?: CacheControl }>(
  meta: Meta,
  block: JsonObject,
): Meta | undefined {
  const mark = block.cache_control
  if (!isObject(mark) || mark.type !== 'ephemeral') return undefined
  const { ttl } = mark
  meta.cache_control = { type: 'ephemeral', ...((ttl === '5m' || ttl === '1h') && { ttl }) }
  return meta
}
