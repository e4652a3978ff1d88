import { bytesOfBase64 } from './base64.js'
import type { MessageFormat } from './formats.js'

/** Known facts about the bytes of an image, a document or a recording. */
export interface MediaFacts {
  bytes: number
  /** Of an image, in pixels. */
  width?: number
  height?: number
  /** Of a PDF. */
  pages?: number
}

/** The facts of a blob, by its SHA-256; undefined where they are not known. */
export type FactsOf = (sha256: string) => MediaFacts | undefined

export type Medium = 'image' | 'audio' | 'video' | 'file'

/** The header of an image says its size; a photo's may come after this much other data. */
const HEADER_BYTES = 128 * 1024

/** Reads what the bytes themselves say: the size of PNG, GIF, JPEG and WebP, the pages of a PDF. One look at each byte. */
export function mediaFacts(bytes: Uint8Array): MediaFacts {
  const size = sizeOf(bytes.subarray(0, HEADER_BYTES))
  const pages = textAt(bytes, 0, '%PDF-') ? countPages(bytes) : 0
  return { bytes: bytes.length, ...size, ...(pages > 0 && { pages }) }
}

/** The same of base64, in either alphabet. Of a long one only the header is decoded, unless it is a PDF's. */
export function factsOfBase64(data: string): MediaFacts {
  const bytes = Math.floor((data.length * 3) / 4)
  const isPdf = data.startsWith('JVBERi0')
  const known = mediaFacts(bytesOfBase64(data, isPdf ? bytes : HEADER_BYTES))
  return { ...known, bytes }
}

/** How the formats of images begin, and other files that are taken for them or for PDFs. */
const BEGINNINGS: ReadonlyArray<readonly [at: number, text: string, type: string]> = [
  [0, '\x89PNG\r\n\x1a\n', 'image/png'],
  [0, '\xff\xd8\xff', 'image/jpeg'],
  [0, 'GIF8', 'image/gif'],
  [8, 'WEBP', 'image/webp'],
  [0, '\0\0\x01\0', 'image/x-icon'],
  [0, 'II*\0', 'image/tiff'],
  [0, 'MM\0*', 'image/tiff'],
  [4, 'ftypavif', 'image/avif'],
  [4, 'ftypheic', 'image/heic'],
  [4, 'ftypmif1', 'image/heif'],
  [0, 'BM', 'image/bmp'],
  [0, '%PDF-', 'application/pdf'],
  [0, '<!DOCTYPE html', 'text/html'],
  [0, '<!doctype html', 'text/html'],
  [0, '<html', 'text/html'],
  [0, '<svg', 'image/svg+xml'],
  [0, '<?xml', 'image/svg+xml'],
  // Of what a server answered in place of a picture, and what Git has in place of a large file.
  [0, '<', 'text/html'],
  [0, '{"', 'application/json'],
  [0, 'version https:', 'text/plain'],
]

/** The type of an image or a PDF by what it begins with, whatever it is called; undefined for what is not known. */
export function typeOfBytes(bytes: Uint8Array): string | undefined {
  return BEGINNINGS.find(([at, text]) => textAt(bytes, at, text))?.[2]
}

/** The same of base64. */
export function typeOfBase64(data: string): string | undefined {
  return typeOfBytes(bytesOfBase64(data.slice(0, 32), 24))
}

interface Size {
  width: number
  height: number
}

function sizeOf(bytes: Uint8Array): Size | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  try {
    if (textAt(bytes, 1, 'PNG')) return { width: view.getUint32(16), height: view.getUint32(20) }
    if (textAt(bytes, 0, 'GIF8')) return { width: view.getUint16(6, true), height: view.getUint16(8, true) }
    if (textAt(bytes, 0, 'RIFF') && textAt(bytes, 8, 'WEBP')) return sizeOfWebp(bytes, view)
    return bytes[0] === 0xff && bytes[1] === 0xd8 ? sizeOfJpeg(view) : undefined
  } catch (error) {
    // It ends ahead of what it should say.
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function sizeOfWebp(bytes: Uint8Array, view: DataView): Size | undefined {
  if (textAt(bytes, 12, 'VP8X')) {
    const at = (place: number) => 1 + (view.getUint16(place, true) | (view.getUint8(place + 2) << 16))
    return { width: at(24), height: at(27) }
  }
  if (textAt(bytes, 12, 'VP8L')) {
    const bits = view.getUint32(21, true)
    return { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) }
  }
  if (!textAt(bytes, 12, 'VP8 ')) return undefined
  return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff }
}

/** Goes from segment to segment up to the frame's. */
function sizeOfJpeg(view: DataView): Size | undefined {
  for (let at = 2; view.getUint8(at) === 0xff; ) {
    const marker = view.getUint8(at + 1)
    if (marker === 0xff) {
      at += 1
      continue
    }
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
    if (isFrame) return { height: view.getUint16(at + 5), width: view.getUint16(at + 7) }
    at += 2 + Math.max(2, view.getUint16(at + 2))
  }
  return undefined
}

/** How often `/Type /Page` stands in it. In a PDF that compresses its objects that is never. */
function countPages(bytes: Uint8Array): number {
  let pages = 0
  for (let at = bytes.indexOf(SLASH); at >= 0; at = bytes.indexOf(SLASH, at + 1)) {
    if (!textAt(bytes, at, '/Type')) continue
    let next = at + 5
    while (next < at + 8 && (bytes[next] === 0x20 || bytes[next] === 0x0a || bytes[next] === 0x0d)) next++
    if (textAt(bytes, next, '/Page') && !isLetter(bytes[next + 5])) pages++
  }
  return pages
}

const SLASH = 0x2f

function isLetter(code: number | undefined): boolean {
  return code !== undefined && (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a
}

function textAt(bytes: Uint8Array, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text.charCodeAt(i)) return false
  return true
}

/** Bytes that stand for a page of a PDF which does not say how many it has. */
const PAGE_BYTES = 50_000
/**
 * Tokens of a page of a PDF. Anthropic: 1,500 to 3,000 for its text, and those of its picture
 * (https://docs.anthropic.com/en/docs/build-with-claude/pdf-support). OpenAI sends text and picture, too. Google: 258
 * (https://ai.google.dev/gemini-api/docs/document-processing).
 */
const PAGE_TOKENS = { gemini: 258, others: 3_000 }
/** Google: 32 tokens a second of sound, 263 of video (https://ai.google.dev/gemini-api/docs/tokens). */
const SECOND_TOKENS = { audio: 32, video: 263 }
/** Usual bytes of a second: sound of 128 kbit/s, video of 1 Mbit/s. */
const SECOND_BYTES = { audio: 16_000, video: 125_000 }
/** For media of unknown length: behind a link, or in a provider's store. */
const UNKNOWN_SECONDS = 60

/** The tokens that a medium has for the provider of the format that it is in, by its published formula, else by bytes. */
export function mediaTokens(
  medium: Medium,
  format: MessageFormat,
  facts: MediaFacts | undefined,
  detail?: string,
): number {
  if (medium === 'image') return imageTokens(format, facts, detail)
  if (medium === 'file') {
    const pages = facts?.pages ?? Math.ceil((facts?.bytes ?? 1) / PAGE_BYTES)
    return pages * (format === 'gemini' ? PAGE_TOKENS.gemini : PAGE_TOKENS.others)
  }
  const seconds = facts === undefined ? UNKNOWN_SECONDS : facts.bytes / SECOND_BYTES[medium]
  return Math.ceil(seconds * SECOND_TOKENS[medium])
}

function imageTokens(
  format: MessageFormat,
  facts: MediaFacts | undefined,
  detail: string | undefined,
): number {
  const { width = 0, height = 0 } = facts ?? {}
  const isKnown = width > 0 && height > 0
  switch (format) {
    case 'openai':
    case 'responses':
      if (detail === 'low') return OPENAI_IMAGE.base
      return isKnown ? openAiImageTokens(width, height) : OPENAI_IMAGE.max
    case 'gemini':
      // https://ai.google.dev/gemini-api/docs/image-understanding: tiles of 768 pixels, or one for a small image.
      if (!isKnown) return 4 * 258
      return width <= 384 && height <= 384
        ? 258
        : 258 * Math.min(64, Math.ceil(width / 768) * Math.ceil(height / 768))
    default: {
      // https://docs.anthropic.com/en/docs/build-with-claude/vision: width times height through 750, of an image that is
      // made smaller where its longer edge has more than 1,568 pixels or it has more than about 1,600 tokens.
      if (!isKnown) return 1_600
      const scale = Math.min(1, 1_568 / Math.max(width, height))
      return Math.min(1_600, Math.ceil((width * scale * height * scale) / 750))
    }
  }
}

/**
 * https://platform.openai.com/docs/guides/images-vision: an image is made to fit into 2,048 pixels and to have no more than
 * 768 on its shorter edge; then each tile of 512 pixels has 170 tokens, besides 85 for the whole.
 */
const OPENAI_IMAGE = { base: 85, tile: 170, max: 85 + 8 * 170 }

function openAiImageTokens(width: number, height: number): number {
  const fitting = Math.min(1, 2_048 / Math.max(width, height))
  const scale = fitting * Math.min(1, 768 / (Math.min(width, height) * fitting))
  const tiles = Math.ceil((width * scale) / 512) * Math.ceil((height * scale) / 512)
  return OPENAI_IMAGE.base + OPENAI_IMAGE.tile * tiles
}
