/** The blob that has the bytes of a part. */
export interface Asset {
  bucket: string
  s3_key: string
  etag: string
  sha256: string
  mime: string
  /** A mark in place of the number. */
  size_b: string
}

/**
 * The neutral form of a message: the speaker, and its parts. It is derived from the stored blob, never the other way
 * round, so it may omit what no other format could carry.
 *
 * Every part has the same five fields, because clients of this interface read them all. Bytes stay where the message had
 * them, in `meta.data` or behind `meta.url`; `asset` says which blob has them, where messages are read.
 */
interface PartOf<Type extends string, Text, Meta> {
  type: Type
  text: Text
  asset: Asset | null
  filename: string | null
  meta: Meta
}

/** A prompt-cache marker, which only Anthropic has. */
export interface CacheControl {
  type: 'ephemeral'
  ttl?: '5m' | '1h'
}

/**
 * `thought_signature` is Gemini's, and is only sent back to Gemini. `type`, `title` and `source` mark a search
 * result.
 */
export interface TextMeta {
  is_refusal?: boolean
  cache_control?: CacheControl
  thought_signature?: string
  type?: string
  title?: string
  source?: string
}

/**
 * The location of an image's, video's, sound's or file's bytes: in `data` (base64, or plain text if `type` is
 * `text`), behind `url`, or in the provider's own store under `file_id`. `type` is Anthropic's source type; a
 * `file_id` with `type: 'file'` is an Anthropic file, any other `file_id` an OpenAI one. `tool_call_id`: the medium
 * came inside the result of that call.
 */
export interface MediaMeta {
  url?: string
  media_type?: string
  data?: string
  file_id?: string
  type?: string
  tool_call_id?: string
  thought_signature?: string
  cache_control?: CacheControl
}

export interface ImageMeta extends MediaMeta {
  detail?: string
}

/** `id` names a spoken reply that OpenAI keeps; its transcript, if known, is the part's text. */
export interface AudioMeta extends MediaMeta {
  format?: string
  id?: string
}

/** `file_data` is OpenAI's: a data URL, or bare base64. */
export interface FileMeta extends MediaMeta {
  file_data?: string
  filename?: string
}

/** `arguments` is the text that the model wrote: usually a JSON object, but models also write broken ones. */
export interface ToolCallMeta {
  id: string
  name: string
  arguments: string
  type?: string
  thought_signature?: string
  cache_control?: CacheControl
}

export interface ToolResultMeta {
  tool_call_id: string
  name?: string
  is_error?: boolean
  cache_control?: CacheControl
}

/** A block without a neutral form: its type as the provider names it, and its fields. */
export interface DataMeta {
  data_type: string
  [field: string]: unknown
}

/**
 * `type: 'thought'` marks a Gemini thought and `type: 'reasoning'` a reasoning item of OpenAI: a signature is of use
 * to its own provider alone. OpenAI's is the encrypted content, and `id` is the item's.
 */
export interface ThinkingMeta {
  signature?: string
  type?: string
  id?: string
}

export type TextPart = PartOf<'text', string, TextMeta | null>
export type ImagePart = PartOf<'image', null, ImageMeta>
export type AudioPart = PartOf<'audio', string | null, AudioMeta>
export type VideoPart = PartOf<'video', null, MediaMeta>
export type FilePart = PartOf<'file', null, FileMeta>
export type ToolCallPart = PartOf<'tool-call', null, ToolCallMeta>
export type ToolResultPart = PartOf<'tool-result', string, ToolResultMeta>
export type DataPart = PartOf<'data', null, DataMeta>
export type ThinkingPart = PartOf<'thinking', string, ThinkingMeta | null>
export type RedactedThinkingPart = PartOf<'redacted_thinking', null, { data: string }>

/** One content block of a message, in the form that no provider owns. */
export type Part =
  | TextPart
  | ImagePart
  | AudioPart
  | VideoPart
  | FilePart
  | ToolCallPart
  | ToolResultPart
  | DataPart
  | ThinkingPart
  | RedactedThinkingPart

export type PartType = Part['type']

export const PART_TYPES = [
  'text',
  'image',
  'audio',
  'video',
  'file',
  'tool-call',
  'tool-result',
  'data',
  'thinking',
  'redacted_thinking',
] as const satisfies readonly PartType[]

/** The stored roles. A provider's other names are in `NeutralMessage.provider_role`. */
export type Role = 'user' | 'assistant'

export interface NeutralMessage {
  role: Role
  /** The provider's name of the role, if it is neither `user` nor `assistant`. */
  provider_role: string | null
  /** The speaker's name: OpenAI's `name` of a system, developer, user or assistant message. */
  name: string | null
  parts: Part[]
}

/** Creates a part; `meta` must be that of the type. */
export function part<Type extends PartType>(
  type: Type,
  text: Extract<Part, { type: Type }>['text'],
  meta: Extract<Part, { type: Type }>['meta'],
  filename: string | null = null,
): Part {
  return { type, text, asset: null, filename, meta } as Part
}

/** Says of what stands in a result, and is no text of it, which call it came from: it is shown and cleared with it. */
export function linkToCall(part: Part, id: string): void {
  if (part.type === 'image' || part.type === 'file' || part.type === 'data') part.meta.tool_call_id = id
}

/** Creates a part for a block without a neutral form. */
export function dataPart({ type: _, ...fields }: Record<string, unknown>, data_type: string): Part {
  return part('data', null, { ...fields, data_type })
}
