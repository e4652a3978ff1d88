import { standardBase64 } from './attachments.js'
import { base64OfText } from './base64.js'
import type { AudioMeta, FileMeta, FilePart, MediaMeta } from './parts.js'

/** Bytes in base64, and what they are. */
export interface MediaBytes {
  media_type: string
  data: string
}

const MEDIA_TYPES_BY_EXTENSION: Readonly<Record<string, string>> = {
  csv: 'text/csv',
  gif: 'image/gif',
  htm: 'text/html',
  html: 'text/html',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  json: 'application/json',
  md: 'text/markdown',
  mov: 'video/quicktime',
  mp3: 'audio/mpeg',
  mp4: 'video/mp4',
  pdf: 'application/pdf',
  png: 'image/png',
  txt: 'text/plain',
  wav: 'audio/wav',
  webm: 'video/webm',
  webp: 'image/webp',
}

/** The media type that the extension of a file name or the path of a URL stands for. */
export function mediaTypeOf(name: string): string | undefined {
  const path = name.slice(0, 2048).split(/[?#]/, 1)[0] ?? ''
  const dot = path.lastIndexOf('.')
  return dot < 0 ? undefined : MEDIA_TYPES_BY_EXTENSION[path.slice(dot + 1).toLowerCase()]
}

/** The bytes of a `data:` URL, or null if it is not one or is malformed. */
export function parseDataUrl(url: string): MediaBytes | null {
  const comma = url.indexOf(',')
  if (comma < 0 || url.slice(0, 5).toLowerCase() !== 'data:') return null
  const [media_type, ...parameters] = url.slice(5, comma).split(';')
  const body = url.slice(comma + 1)
  if (parameters.at(-1)?.trim().toLowerCase() === 'base64') {
    return { media_type: media_type || 'text/plain', data: standardBase64(body) }
  }
  try {
    return { media_type: media_type || 'text/plain', data: base64OfText(decodeURIComponent(body)) }
  } catch {
    return null // a stray percent sign
  }
}

/** Types of texts that are not called so. */
const TEXT_TYPES =
  /^(text\/|application\/(?:[\w.-]+\+)?(json|json5|jsonl|x-ndjson|xml|yaml|x-yaml|toml|javascript|x-javascript|typescript|x-python|x-sh|sql)\b)/i

/** Whether bytes of a type are a text. */
export function isTextType(media_type: string): boolean {
  return TEXT_TYPES.test(media_type.slice(0, 128))
}

/** Types that Anthropic and OpenAI accept. */
const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'] as const
export type ImageType = (typeof IMAGE_TYPES)[number]

/** The media type of an image as Anthropic and OpenAI take it; undefined for an image that they do not take. */
export function imageType(media_type: string): ImageType | undefined {
  const given = media_type.toLowerCase()
  return IMAGE_TYPES.find((known) => known === (given === 'image/jpg' ? 'image/jpeg' : given))
}

/** Whether a URL is of an image that OpenAI does not take, or at a place where it does not look. */
export function isRefusedImage(url: unknown): boolean {
  if (typeof url !== 'string') return false
  const media_type = /^data:([^;,]*)/i.exec(url.slice(0, 128))?.[1]
  return media_type === undefined ? !/^https?:/i.test(url) : imageType(media_type) === undefined
}

export function dataUrl(bytes: MediaBytes): string {
  return `data:${bytes.media_type};base64,${bytes.data}`
}

/** Whether a text is an address that somebody else may read: no place on the sender's machine, and no bytes. */
export function isAddress(url: unknown): url is string {
  return (
    typeof url === 'string' && /^(?!(?:data|file|blob|sandbox):)[a-z][a-z\d+.-]+:/i.test(url.slice(0, 64))
  )
}

/** Gemini's file store serves a file only to the key that uploaded it. */
const PRIVATE_STORE = /^https:\/\/generativelanguage\.googleapis\.com\//i

/** The URL where any provider can fetch it; null for `gs://` and the like. */
export function publicUrl(meta: MediaMeta): string | null {
  const { url } = meta
  return url !== undefined && /^https?:\/\//i.test(url) && !PRIVATE_STORE.test(url) ? url : null
}

/** An image as OpenAI takes it; null for one that it does not take. */
export function imageUrl(meta: MediaMeta): string | null {
  const bytes = bytesOf(meta, 'image/png')
  if (bytes === null) return publicUrl(meta)
  const media_type = imageType(bytes.media_type)
  return media_type === undefined ? null : dataUrl({ ...bytes, media_type })
}

/** The bytes of a part, or null if it only refers to them. `fallback` is their type if the part has none. */
export function bytesOf(meta: MediaMeta, fallback: string): MediaBytes | null {
  if (meta.data !== undefined) {
    const data = meta.type === 'text' ? base64OfText(meta.data) : standardBase64(meta.data)
    return { media_type: meta.media_type || fallback, data }
  }
  return meta.url === undefined ? null : parseDataUrl(meta.url)
}

/** The bytes of a file: as `bytesOf`, or OpenAI's `file_data`, whose media type may only be in the file's name. */
export function fileBytes(file: FilePart): MediaBytes | null {
  const { meta } = file
  const fallback = mediaTypeOf(fileName(file) ?? '') ?? 'application/octet-stream'
  if (meta.file_data === undefined) return bytesOf(meta, fallback)
  return parseDataUrl(meta.file_data) ?? { media_type: fallback, data: standardBase64(meta.file_data) }
}

export function fileName(file: FilePart): string | undefined {
  return file.filename ?? file.meta.filename
}

/** A file as OpenAI takes it: by its id in OpenAI's own store, or by its bytes; null where it has neither. */
export function openAiFile(
  file: FilePart,
): { file_id: string } | { file_data: string; filename: string } | null {
  const { file_id, type } = file.meta
  if (file_id !== undefined && type !== 'file') return { file_id }
  const bytes = fileBytes(file)
  if (bytes === null) return null
  const filename = fileName(file) ?? defaultName(bytes.media_type)
  return { file_data: dataUrl(bytes), filename }
}

function defaultName(media_type: string | undefined): string {
  return media_type === 'application/pdf' ? 'file.pdf' : 'file'
}

/** Whether a file of OpenAI's has bytes and no name, which it refuses. */
export function isUnnamedFile({ file_data, filename }: Record<string, unknown>): boolean {
  return typeof file_data === 'string' && (typeof filename !== 'string' || filename === '')
}

/** A name for bytes: in a `data:` URL, or a PDF in base64. */
export function nameOfBytes(file_data: unknown): string {
  const text = String(file_data).slice(0, 128)
  return defaultName(text.startsWith('JVBERi0') ? 'application/pdf' : /^data:([^;,]*)/i.exec(text)?.[1])
}

/** The bytes of a sound, whose media type may only be in its `format`. */
export function audioBytes(meta: AudioMeta): MediaBytes | null {
  return bytesOf(meta, meta.format === 'mp3' ? 'audio/mpeg' : `audio/${meta.format ?? 'wav'}`)
}

/** The short name of a sound's media type, as OpenAI writes it: `wav`, `mp3`, … */
export function audioFormat(media_type: string): string {
  const subtype = media_type.slice(media_type.indexOf('/') + 1).split(';', 1)[0] ?? ''
  if (subtype === 'mpeg' || subtype === 'mpeg3' || subtype === 'x-mp3') return 'mp3'
  return subtype === 'x-wav' || subtype === 'wave' || subtype === 'vnd.wave' ? 'wav' : subtype
}

/** A file that has neither bytes nor a place to get them from. */
export function isEmptyFile(meta: FileMeta): boolean {
  return (
    meta.file_data === undefined &&
    meta.file_id === undefined &&
    meta.data === undefined &&
    meta.url === undefined
  )
}
