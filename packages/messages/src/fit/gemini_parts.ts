import { isMarked } from '../attachments.js'
import { isObject, type JsonObject } from '../blob_reading.js'
import { isAddress, isTextType, mediaTypeOf, parseDataUrl } from '../media.js'
import { typeOfBase64 } from '../media_facts.js'
import { isForeign, saidByForeign } from './foreign_blocks.js'
import { withoutNulls } from './pieces.js'

/** Members that a part of a request may have, in both spellings: the API refuses any other ("Unknown name"). */
const PART_FIELDS = spelled(
  'audioTranscription',
  'codeExecutionResult',
  'executableCode',
  'fileData',
  'functionCall',
  'functionResponse',
  'inlineData',
  'mediaProcessing',
  'mediaResolution',
  'partMetadata',
  'speechMetadata',
  'text',
  'thought',
  'thoughtSignature',
  'toolCall',
  'toolResponse',
  'videoMetadata',
)
/** Of which a part has one. Another part is of a kind that is not known here, and stays as it is. */
const KINDS = spelled(
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
)
const CALL_FIELDS = spelled('id', 'name', 'args')
const RESPONSE_FIELDS = spelled('id', 'name', 'response', 'parts', 'scheduling', 'willContinue')
const MEDIA_FIELDS = spelled('mimeType', 'data', 'fileUri')

function spelled(...names: string[]): ReadonlySet<string> {
  const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return new Set(names.flatMap((name) => [name, snake(name)]))
}

/** A part as a request may have it, without what is null in it; undefined for a medium that the API refuses. */
export function takenPart(given: JsonObject): JsonObject | undefined {
  const own = ofForeign(withoutNulls(given))
  if (own === undefined) return undefined
  const part = withBytes(own)
  const isKnown = Object.keys(part).some((key) => KINDS.has(key))
  const taken: JsonObject = {}
  for (const [key, value] of Object.entries(part)) {
    if (isKnown && !PART_FIELDS.has(key)) continue
    if (/^thought_?signature$/i.test(key) && !isSignature(value)) continue
    const field = takenField(key, value)
    if (field === undefined) return undefined
    taken[key] = field
  }
  return taken
}

/** A block of another format as a part. */
function ofForeign(part: JsonObject): JsonObject | undefined {
  if (!isForeign(part, NO_TYPES) || Object.keys(part).some((key) => KINDS.has(key))) return part
  const said = saidByForeign(part)
  if (!said || 'text' in said) return said
  const bytes = parseDataUrl(said.url)
  if (bytes) return { inlineData: { mimeType: bytes.media_type, data: bytes.data } }
  return { fileData: { fileUri: said.url } }
}

const NO_TYPES: ReadonlySet<string> = new Set()

/** The part with bytes where an address of bytes stands in the place of a file's. */
function withBytes(part: JsonObject): JsonObject {
  for (const [key, other, type] of FILES) {
    const file = part[key]
    const uri = isObject(file) ? (file.fileUri ?? file.file_uri) : undefined
    const bytes = typeof uri === 'string' ? parseDataUrl(uri) : null
    if (!bytes) continue
    const { [key]: _, ...rest } = part
    return { ...rest, [other]: { [type]: bytes.media_type, data: bytes.data } }
  }
  return part
}

const FILES = [
  ['fileData', 'inlineData', 'mimeType'],
  ['file_data', 'inline_data', 'mime_type'],
] as const

function takenField(key: string, value: unknown): unknown {
  if (!isObject(value)) return value
  switch (key) {
    case 'inlineData':
    case 'inline_data':
    case 'fileData':
    case 'file_data':
      return takenMedium(value)
    case 'functionCall':
    case 'function_call':
      return withFields(value, CALL_FIELDS)
    case 'functionResponse':
    case 'function_response': {
      const response = withFields(value, RESPONSE_FIELDS)
      if (!Array.isArray(response.parts)) return response
      const { parts, ...rest } = response
      const taken = parts.filter(isObject).flatMap((inner: JsonObject) => takenInside(inner) ?? [])
      return taken.length > 0 ? { ...rest, parts: taken } : rest
    }
    default:
      return value
  }
}

/** A medium of a response may have a name, by which the response refers to it. */
function takenInside(part: JsonObject): JsonObject | undefined {
  const taken = takenPart(part)
  if (!taken) return undefined
  for (const [key, value] of Object.entries(part)) {
    const medium = taken[key]
    if (!isObject(value) || !isObject(medium)) continue
    for (const name of ['displayName', 'display_name']) if (value[name] != null) medium[name] = value[name]
  }
  return taken
}

/** What a part that is left out is. */
export function kindOfPart(part: JsonObject): string {
  const medium = part.inlineData ?? part.inline_data ?? part.fileData ?? part.file_data
  if (!isObject(medium)) return 'data'
  const [kind] = String(medium.mimeType ?? medium.mime_type ?? '').split('/', 1)
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'file'
}

function withFields(object: JsonObject, known: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => known.has(key)))
}

/** A signature is base64: what another provider signed, or a program cut, often is not. */
function isSignature(value: unknown): boolean {
  if (typeof value !== 'string') return false
  return isMarked(value) || !(/[^A-Za-z0-9+/=_-]/.test(value) || /^gAAAA/.test(value))
}

/** Bytes or a file, with a type that the API knows and without a name, which it does not. */
function takenMedium(medium: JsonObject): JsonObject | undefined {
  const field = medium.mimeType === undefined ? 'mime_type' : 'mimeType'
  const said = medium[field]
  const taken = withFields(withoutNulls(medium), MEDIA_FIELDS)
  const uri = taken.fileUri ?? taken.file_uri
  if (uri !== undefined && !isAddress(uri) && !String(uri).startsWith('files/')) return undefined
  if (typeof said !== 'string' || said === '') return taken.data === undefined ? taken : undefined
  const type = takenType(said, medium.data)
  return type === undefined ? undefined : { ...taken, [field]: type }
}

/** https://ai.google.dev/gemini-api/docs/image-understanding: no GIF, and no SVG. */
const IMAGES = /^image\/(png|jpeg|webp|heic|heif|bmp)$/
const TEXTS = /^text\/(plain|html|css|csv|xml|rtf|javascript|markdown|md)$/
const OTHERS = /^(audio|video)\/|^application\/(pdf|rtf)$/

function takenType(said: string, data: unknown): string | undefined {
  const [given = ''] = said.toLowerCase().split(';', 1)
  const named = given.includes('/') ? given.trim() : (mediaTypeOf(`.${given.trim()}`) ?? given)
  const type = named === 'image/jpg' ? 'image/jpeg' : named
  if (OTHERS.test(type)) return given.includes('/') ? said : type
  if (IMAGES.test(type) || TEXTS.test(type)) return type === given ? said : type
  if (isTextType(type)) return 'text/plain'
  const is = typeof data === 'string' && !isMarked(data) ? typeOfBase64(data) : undefined
  return is !== undefined && !type.startsWith('image/') && (IMAGES.test(is) || OTHERS.test(is))
    ? is
    : undefined
}
