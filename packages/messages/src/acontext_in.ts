import type { CallIds } from './blob_reading.js'
import {
  asObject,
  InvalidMessage,
  isObject,
  type JsonObject,
  objectAt,
  optionalArrayAt,
  optionalBooleanAt,
  optionalObjectAt,
  optionalTextAt,
  roleAt,
  textAt,
} from './blob_reading.js'
import { type NeutralMessage, PART_TYPES, type Part, type PartType } from './parts.js'

/**
 * Reads a message in the neutral form, `{ role, parts, meta? }`. Fields that this service does not know are
 * kept in the parts' `meta`; an unknown part type is refused, as the types are this form's own. `meta` of the
 * message holds what the renderer of this format puts there: `provider_role` and `name`.
 */
export function readAcontext(value: unknown, ids: CallIds): NeutralMessage {
  const blob = asObject(value, '')
  const role = roleAt(blob, ['user', 'assistant'])
  const items = optionalArrayAt(blob, 'parts', '')
  if (items === undefined) throw new InvalidMessage('/parts', 'is required and must be an array')
  const meta = optionalObjectAt(blob, 'meta', '') ?? {}
  const provider_role = meta.provider_role
  return {
    role,
    provider_role: role === 'user' && isInstructionRole(provider_role) ? provider_role : null,
    name: typeof meta.name === 'string' ? meta.name : null,
    parts: items.map((item, i) => readPart(asObject(item, `/parts/${i}`), `/parts/${i}`, ids)),
  }
}

/** A role that no part tells of, so that the neutral form has to. */
export function isInstructionRole(role: unknown): role is 'system' | 'developer' {
  return role === 'system' || role === 'developer'
}

/** The kinds of field that a part's `meta` may hold; all of them may be absent or null. */
interface MetaFields {
  texts?: readonly string[]
  booleans?: readonly string[]
  required?: readonly string[]
}

const MEDIA_TEXTS = ['url', 'media_type', 'data', 'file_id', 'type', 'tool_call_id', 'thought_signature']

const META_FIELDS: Readonly<Record<PartType, MetaFields>> = {
  text: { texts: ['thought_signature', 'type', 'title', 'source'], booleans: ['is_refusal'] },
  image: { texts: [...MEDIA_TEXTS, 'detail'] },
  audio: { texts: [...MEDIA_TEXTS, 'format', 'id'] },
  video: { texts: MEDIA_TEXTS },
  file: { texts: [...MEDIA_TEXTS, 'file_data', 'filename'] },
  'tool-call': { required: ['id', 'name', 'arguments'], texts: ['type', 'thought_signature'] },
  'tool-result': { required: ['tool_call_id'], texts: ['name'], booleans: ['is_error'] },
  data: { required: ['data_type'] },
  thinking: { texts: ['signature', 'type', 'id'] },
  redacted_thinking: { required: ['data'] },
}

function readPart(item: JsonObject, at: string, ids: CallIds): Part {
  const type = textAt(item, 'type', at) as PartType
  if (!PART_TYPES.includes(type)) {
    throw new InvalidMessage(`${at}/type`, `must be one of ${PART_TYPES.join(', ')}`)
  }
  const text = readText(item, type, at)
  const filename = optionalTextAt(item, 'filename', at) ?? null
  const given = readMeta(item, type, at)
  if (isMedium(type)) requireSource(item, given ?? {}, at)
  return followed({ type, text, asset: null, filename, meta: given } as Part, ids)
}

function readText(item: JsonObject, type: PartType, at: string): string | null {
  if (type === 'text' || type === 'thinking') return textAt(item, 'text', at)
  const text = optionalTextAt(item, 'text', at)
  if (type === 'tool-result') return text ?? ''
  return type === 'audio' ? (text ?? null) : null
}

/** The part's meta without its nulls, so that what is there has the type that it must have. */
function readMeta(item: JsonObject, type: PartType, at: string): JsonObject | null {
  const { texts = [], booleans = [], required = [] } = META_FIELDS[type]
  const isNeeded = required.length > 0 || (isMedium(type) && !isObject(item.asset))
  const given = isNeeded ? objectAt(item, 'meta', at) : optionalObjectAt(item, 'meta', at)
  if (given === undefined) return isMedium(type) ? {} : null
  const here = `${at}/meta`
  for (const key of required) textAt(given, key, here)
  for (const key of texts) optionalTextAt(given, key, here)
  for (const key of booleans) optionalBooleanAt(given, key, here)
  const kept = Object.entries(given).filter(([key, value]) => value !== null && key !== 'cache_control')
  const meta = Object.fromEntries(kept)
  const mark = optionalObjectAt(given, 'cache_control', here)
  if (mark !== undefined) meta.cache_control = readCacheControl(mark, here)
  return meta
}

function readCacheControl(mark: JsonObject, at: string): JsonObject {
  if (mark.type !== 'ephemeral') throw new InvalidMessage(`${at}/cache_control/type`, 'must be ephemeral')
  const { ttl } = mark
  if (ttl == null) return { type: 'ephemeral' }
  if (ttl !== '5m' && ttl !== '1h') throw new InvalidMessage(`${at}/cache_control/ttl`, 'must be 5m or 1h')
  return { type: 'ephemeral', ttl }
}

function isMedium(type: PartType): boolean {
  return type === 'image' || type === 'audio' || type === 'video' || type === 'file'
}

/** A medium must say where it is. One with an asset is another server's: it is kept in the blob and shown no further. */
function requireSource(item: JsonObject, meta: JsonObject, at: string): void {
  if (isObject(item.asset)) return
  const sources = ['data', 'url', 'file_id', ...(item.type === 'file' ? ['file_data'] : [])]
  if (item.type === 'audio') sources.push('id')
  if (sources.some((key) => meta[key] !== undefined)) return
  throw new InvalidMessage(`${at}/meta`, `must have one of ${sources.join(', ')}`)
}

/** Lets the calls and results of a message be matched with those of messages in other formats. */
function followed(part: Part, ids: CallIds): Part {
  if (part.type === 'tool-call') part.meta.id = ids.ofCall(part.meta.id, part.meta.name)
  else if (part.type === 'tool-result') {
    const { id, name } = ids.ofResult(part.meta.tool_call_id, part.meta.name)
    if (part.meta.tool_call_id === '') part.meta.tool_call_id = id
    if (name !== undefined) part.meta.name = name
  }
  return part
}
