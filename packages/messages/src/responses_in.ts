import type { CallIds } from './blob_reading.js'
import {
  asObject,
  InvalidMessage,
  isObject,
  type JsonObject,
  objectAt,
  optionalArrayAt,
  optionalTextAt,
  roleAt,
  textAt,
} from './blob_reading.js'
import { parseDataUrl } from './media.js'
import { readAudio, readFile } from './openai_in.js'
import {
  dataPart,
  type ImageMeta,
  linkToCall,
  type NeutralMessage,
  type Part,
  part,
  type Role,
  type ThinkingMeta,
  type ToolResultMeta,
} from './parts.js'
import { itemRole } from './response_items.js'
import { writeMarkedJson } from './text_bytes.js'
import { textOfMcpPart } from './tool_blocks.js'

const ROLES = ['user', 'assistant', 'system', 'developer'] as const
/** Roles of messages in Conversations, which always have a type. What they say is nobody's reply. */
const CONVERSATION_ROLES = [...ROLES, 'tool', 'critic', 'discriminator', 'unknown'] as const

/**
 * Reads an item of the Responses API, of a request's `input` or of a response's `output`. An item without a `type`
 * is a message, or a reference where it has no `role`.
 *
 * | item | parts |
 * |---|---|
 * | `message` | its text, refusals, images, files and sound; any other block is `data` |
 * | `function_call`, `custom_tool_call` | `tool-call`; a custom tool's free text is `{"input": …}` |
 * | `function_call_output`, `custom_tool_call_output` | `tool-result`, its texts joined by line feeds; its images and files follow, and name the call |
 * | `reasoning` | `thinking`: summaries and texts, with the encrypted content as signature |
 * | `image_generation_call`, `computer_call_output` | `data`, and the picture as `image` |
 * | any other | `data` |
 *
 * An array of items is one message of the model's: what it said and called in one turn.
 */
export function readResponses(value: unknown, ids: CallIds): NeutralMessage {
  if (!Array.isArray(value)) return readItem(asObject(value, ''), '', ids)
  const items = value.map((item, i) => readItem(asObject(item, `/${i}`), `/${i}`, ids))
  return message(
    'assistant',
    null,
    items.flatMap(({ parts }) => parts),
  )
}

function readItem(item: JsonObject, at: string, ids: CallIds): NeutralMessage {
  const type = typeOf(item, at)
  switch (type) {
    case 'message': {
      const role = roleAt(item, item.type == null ? ROLES : CONVERSATION_ROLES, at)
      const isSpeaker = role === 'user' || role === 'assistant'
      return message(isSpeaker ? role : 'user', isSpeaker ? null : role, readContent(item, 'content', at))
    }
    case 'function_call':
      return message('assistant', null, [
        readCall(item, optionalTextAt(item, 'arguments', at) ?? '{}', 'function', at, ids),
      ])
    case 'custom_tool_call': {
      const input = writeMarkedJson({ input: optionalTextAt(item, 'input', at) ?? '' })
      return message('assistant', null, [readCall(item, input, 'custom', at, ids)])
    }
    case 'function_call_output':
    case 'custom_tool_call_output':
      return message('user', 'tool', readResult(item, at, ids))
    case 'reasoning':
      return message('assistant', null, [readReasoning(item, at)])
    case 'image_generation_call':
      return message('assistant', null, readGeneratedImage(item))
    case 'computer_call_output':
      return message('user', 'tool', readScreenshot(item, at))
    default:
      return message(itemRole(type), null, [dataPart(item, type)])
  }
}

function message(role: Role, provider_role: string | null, parts: Part[]): NeutralMessage {
  return { role, provider_role, name: null, parts }
}

function typeOf(item: JsonObject, at: string): string {
  const type = optionalTextAt(item, 'type', at)
  if (type !== undefined) return type
  if (item.role != null) return 'message'
  if (item.id != null) return 'item_reference'
  throw new InvalidMessage(`${at}/type`, 'is required, except of a message, which has a `role`')
}

function readContent(item: JsonObject, key: 'content' | 'output', at: string): Part[] {
  const content = item[key]
  if (typeof content === 'string') return [part('text', content, null)]
  if (Array.isArray(content)) return content.map((block, i) => readBlock(block, `${at}/${key}/${i}`))
  const missing = content === undefined ? 'is required and ' : ''
  throw new InvalidMessage(`${at}/${key}`, `${missing}must be a string or an array of content parts`)
}

function readBlock(value: unknown, at: string): Part {
  const block = asObject(value, at)
  const type = textAt(block, 'type', at)
  switch (type) {
    case 'input_text':
    case 'output_text':
    case 'text':
    case 'summary_text':
      return part('text', textAt(block, 'text', at), null)
    case 'refusal':
      return part('text', textAt(block, 'refusal', at), { is_refusal: true })
    case 'reasoning_text':
      return part('thinking', textAt(block, 'text', at), { type: 'reasoning' })
    case 'input_image':
    case 'computer_screenshot':
      return readImage(block, at) ?? dataPart(block, type)
    case 'input_audio':
      return readAudio(objectAt(block, type, at), `${at}/${type}`)
    case 'input_file':
      return readFile(block, at, type)
    default:
      return dataPart(block, type)
  }
}

/** An image behind a URL or in OpenAI's own store; null if it is in neither. */
function readImage(block: JsonObject, at: string): Part | null {
  const url = optionalTextAt(block, 'image_url', at)
  const file_id = optionalTextAt(block, 'file_id', at)
  if (url === undefined && file_id === undefined) return null
  const meta: ImageMeta = url === undefined ? { file_id: file_id! } : (parseDataUrl(url) ?? { url })
  const detail = optionalTextAt(block, 'detail', at)
  if (detail !== undefined) meta.detail = detail
  return part('image', null, meta)
}

function readCall(item: JsonObject, text: string, type: string, at: string, ids: CallIds): Part {
  const name = textAt(item, 'name', at)
  const id = ids.ofCall(textAt(item, 'call_id', at), name)
  return part('tool-call', null, { id, name, arguments: text, type })
}

function readResult(item: JsonObject, at: string, ids: CallIds): Part[] {
  const call = ids.ofResult(optionalTextAt(item, 'call_id', at), optionalTextAt(item, 'name', at))
  const texts: string[] = []
  const media: Part[] = []
  for (const piece of readContent(item, 'output', at)) {
    const text = piece.type === 'text' ? piece.text : textOfMcpPart(piece)
    if (text !== undefined) texts.push(text)
    else {
      linkToCall(piece, call.id)
      media.push(piece)
    }
  }
  const meta: ToolResultMeta = { tool_call_id: call.id }
  if (call.name !== undefined) meta.name = call.name
  if (isUnfinished(item)) meta.is_error = true
  return [part('tool-result', texts.join('\n'), meta), ...media]
}

/** Whether an item says that it was not completed. */
export function isUnfinished({ status }: JsonObject): boolean {
  return status === 'failed' || status === 'incomplete'
}

function readReasoning(item: JsonObject, at: string): Part {
  const texts = ['summary', 'content'].flatMap((key) =>
    (optionalArrayAt(item, key, at) ?? []).map((piece, i) => {
      const place = `${at}/${key}/${i}`
      return textAt(asObject(piece, place), 'text', place)
    }),
  )
  const meta: ThinkingMeta = { type: 'reasoning' }
  const id = optionalTextAt(item, 'id', at)
  if (id !== undefined) meta.id = id
  const signature = optionalTextAt(item, 'encrypted_content', at)
  if (signature !== undefined) meta.signature = signature
  return part('thinking', texts.join('\n\n'), meta)
}

function readGeneratedImage(item: JsonObject): Part[] {
  const { result, output_format, ...call } = item
  if (typeof result !== 'string') return [dataPart(item, 'image_generation_call')]
  const media_type = `image/${typeof output_format === 'string' ? output_format : 'png'}`
  return [dataPart(call, 'image_generation_call'), part('image', null, { media_type, data: result })]
}

function readScreenshot(item: JsonObject, at: string): Part[] {
  const { output, ...rest } = item
  const image = isObject(output) ? readImage(output, `${at}/output`) : null
  if (image?.type !== 'image') return [dataPart(item, 'computer_call_output')]
  if (typeof item.call_id === 'string') image.meta.tool_call_id = item.call_id
  return [dataPart(rest, 'computer_call_output'), image]
}
