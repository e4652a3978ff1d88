import { standardBase64 } from './attachments.js'
import type { CallIds } from './blob_reading.js'
import {
  asObject,
  InvalidMessage,
  type JsonObject,
  optionalArrayAt,
  optionalObjectAt,
  optionalTextAt,
} from './blob_reading.js'
import { FOREIGN_SIGNATURE } from './gemini_out.js'
import { audioFormat, mediaTypeOf } from './media.js'
import { type MediaMeta, type NeutralMessage, type Part, part, type ToolCallMeta } from './parts.js'
import { writeMarkedJson } from './text_bytes.js'
import { argumentsAsText } from './tool_arguments.js'

const ROLES = ['user', 'model', 'function', 'tool', 'system']
/** Other formats have what was said there: such a blob is one of theirs. */
const FOREIGN_FIELDS = ['content', 'type', 'text']

/**
 * Reads a Gemini `Content`, its fields spelt as the JavaScript SDK spells them or as the Python one does
 * (`functionCall`, `function_call`).
 *
 * | field of a part | part |
 * |---|---|
 * | `text` | `text`, or `thinking` where `thought` is true |
 * | `inlineData`, `fileData` | `image`, `audio`, `video` or `file`, by the media type |
 * | `functionCall` | `tool-call` |
 * | `functionResponse` | `tool-result`; its `parts` follow, and name the call |
 * | any other: `executableCode`, `codeExecutionResult`, `toolCall`, `toolResponse`, … | `data` |
 *
 * A `functionResponse` of `{ output }` or `{ error }` is read as that one value, any other as JSON.
 */
export function readGemini(value: unknown, ids: CallIds): NeutralMessage {
  const blob = asObject(value, '')
  const role = blob.role ?? 'user'
  if (typeof role !== 'string' || !ROLES.includes(role)) {
    throw new InvalidMessage('/role', `must be one of ${ROLES.join(', ')}`)
  }
  const items = optionalArrayAt(blob, 'parts', '')
  // A blocked answer is `{}` or has only a role.
  if (items === undefined && FOREIGN_FIELDS.some((name) => blob[name] !== undefined))
    throw new InvalidMessage('/parts', 'is required and must be an array')
  const parts: Part[] = []
  for (const [i, item] of (items ?? []).entries())
    readPart(asObject(item, `/parts/${i}`), `/parts/${i}`, ids, parts)
  return {
    role: role === 'model' ? 'assistant' : 'user',
    provider_role: role === 'user' ? null : role,
    name: null,
    parts,
  }
}

function readPart(item: JsonObject, at: string, ids: CallIds, parts: Part[]): void {
  const known = parts.length
  const given = optionalTextAt(item, spelling(item, 'thoughtSignature', 'thought_signature'), at)
  const signature = given === FOREIGN_SIGNATURE ? undefined : given
  const text = optionalTextAt(item, 'text', at)
  if (text !== undefined) parts.push(readText(text, item.thought === true, signature))
  for (const [camel, snake, read] of FIELDS) {
    const key = spelling(item, camel, snake)
    const field = optionalObjectAt(item, key, at)
    if (field !== undefined) read(field, `${at}/${key}`, ids, parts, signature)
  }
  if (parts.length === known) parts.push(readUnknown(item))
}

type ReadField = (
  field: JsonObject,
  at: string,
  ids: CallIds,
  parts: Part[],
  signature: string | undefined,
) => void

const FIELDS: readonly [camel: string, snake: string, read: ReadField][] = [
  ['inlineData', 'inline_data', readInlineData],
  ['fileData', 'file_data', readFileData],
  ['functionCall', 'function_call', readCall],
  ['functionResponse', 'function_response', readResult],
]

/** The spelling that the object uses: `camel` unless only `snake` is there. */
function spelling(object: JsonObject, camel: string, snake: string): string {
  return object[camel] == null && object[snake] != null ? snake : camel
}

function readText(text: string, isThought: boolean, signature: string | undefined): Part {
  if (isThought)
    return part('thinking', text, { ...(signature !== undefined && { signature }), type: 'thought' })
  return part('text', text, signature === undefined ? null : { thought_signature: signature })
}

function readInlineData(...[field, at, _, parts, signature]: Parameters<ReadField>): void {
  const given = optionalTextAt(field, 'data', at)
  // The Python SDK writes bytes in the URL-safe alphabet.
  const data = given === undefined ? undefined : standardBase64(given)
  const media_type = optionalTextAt(field, spelling(field, 'mimeType', 'mime_type'), at)
  const filename = optionalTextAt(field, spelling(field, 'displayName', 'display_name'), at) ?? null
  if (data === undefined) parts.push(part('data', null, { ...field, data_type: 'inline_data' }))
  else parts.push(medium({ media_type: media_type || 'application/octet-stream', data }, filename, signature))
}

function readFileData(...[field, at, _, parts, signature]: Parameters<ReadField>): void {
  const url = optionalTextAt(field, spelling(field, 'fileUri', 'file_uri'), at)
  const media_type = optionalTextAt(field, spelling(field, 'mimeType', 'mime_type'), at)
  const filename = optionalTextAt(field, spelling(field, 'displayName', 'display_name'), at) ?? null
  if (url === undefined) parts.push(part('data', null, { ...field, data_type: 'file_data' }))
  else parts.push(medium({ url, ...(media_type && { media_type }) }, filename, signature))
}

/** A page that Gemini looks at as a film; to others it is no file. */
const FILM = /^https?:\/\/((www|m)\.)?(youtube\.com|youtu\.be)\//i

function medium(given: MediaMeta, filename: string | null, thought_signature?: string): Part {
  const meta = thought_signature === undefined ? given : { ...given, thought_signature }
  const { url = '' } = meta
  const media_type = (meta.media_type ?? mediaTypeOf(url) ?? (FILM.test(url) ? 'video/*' : '')).toLowerCase()
  switch (media_type.slice(0, media_type.indexOf('/'))) {
    case 'image':
      return part('image', null, meta, filename)
    case 'audio':
      return part('audio', null, { ...meta, format: audioFormat(media_type) }, filename)
    case 'video':
      return part('video', null, meta, filename)
    default:
      return part('file', null, meta, filename)
  }
}

function readCall(
  field: JsonObject,
  at: string,
  ids: CallIds,
  parts: Part[],
  signature: string | undefined,
): void {
  const name = optionalTextAt(field, 'name', at) ?? ''
  const id = ids.ofCall(optionalTextAt(field, 'id', at), name)
  const meta: ToolCallMeta = {
    id,
    name,
    arguments: argumentsAsText(optionalObjectAt(field, 'args', at) ?? {}),
  }
  if (signature !== undefined) meta.thought_signature = signature
  parts.push(part('tool-call', null, meta))
}

function readResult(field: JsonObject, at: string, ids: CallIds, parts: Part[]): void {
  const call = ids.ofResult(optionalTextAt(field, 'id', at), optionalTextAt(field, 'name', at))
  // A tool's list, which ADK handed on as it was: Google takes an object.
  const response = Array.isArray(field.response)
    ? { output: field.response }
    : (optionalObjectAt(field, 'response', at) ?? {})
  const keys = Object.keys(response)
  const only = keys.length === 1 ? keys[0] : undefined
  const isError = only === 'error'
  const said = only === 'output' || isError ? response[only] : response
  const text = typeof said === 'string' ? said : keys.length === 0 ? '' : writeMarkedJson(said)
  const meta = {
    tool_call_id: call.id,
    ...(call.name !== undefined && { name: call.name }),
    ...(isError && { is_error: true }),
  }
  parts.push(part('tool-result', text, meta))
  const media: Part[] = []
  for (const [i, item] of (optionalArrayAt(field, 'parts', at) ?? []).entries()) {
    readPart(asObject(item, `${at}/parts/${i}`), `${at}/parts/${i}`, ids, media)
  }
  for (const piece of media) {
    if (piece.type === 'image' || piece.type === 'audio' || piece.type === 'video' || piece.type === 'file') {
      piece.meta.tool_call_id = call.id
    }
    parts.push(piece)
  }
}

/** A part without a neutral form, under the name of its first field. */
function readUnknown(item: JsonObject): Part {
  const type = Object.keys(item).find((key) => item[key] != null) ?? 'part'
  const snake = type.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return part('data', null, { ...item, data_type: snake })
}
