import { isMarked, markedHash } from './attachments.js'
import { isObject, type JsonObject } from './blob_reading.js'
import type { MessageFormat } from './formats.js'
import { ExactNumber } from './json/exact_json.js'
import { mediaTypeOf, parseDataUrl } from './media.js'
import { type FactsOf, factsOfBase64, type MediaFacts, type Medium, mediaTokens } from './media_facts.js'
import type { FileMeta, MediaMeta, NeutralMessage, Part } from './parts.js'
import { plainMark, withoutBase64 } from './text_bytes.js'

/** The content that token counting counts: a text, and the tokens of everything else. */
export interface CountedContent {
  text: string
  tokens: number
}

/** Characters that stand for a token where something is compared with a text. */
const TOKEN_LENGTH = 4
/** Fields whose text is encrypted, and stands for as many tokens as its bytes would as text. */
const ENCRYPTED = /^encrypted_/

/**
 * All of a message that is sent: its text, thinking, tool calls (name and arguments), results, and what has no neutral
 * form, a line each; and the tokens of images, documents and recordings, by the formulas of the format's provider.
 * `blob` is the message itself: OpenAI's format has thoughts that no part has.
 */
export function countedContent(
  format: MessageFormat,
  { parts }: Pick<NeutralMessage, 'parts'>,
  blob?: unknown,
  factsOf?: FactsOf,
): CountedContent {
  const counted = new Counted(format, factsOf)
  if (format === 'openai' && isObject(blob)) counted.addThoughtsBeside(blob)
  for (const part of parts) counted.add(part)
  const { text, tokens } = withoutBase64(counted.lines.join('\n'))
  return { text, tokens: tokens + counted.tokens }
}

/** How long all of that is, in characters, as if what is no text were a text of as many tokens. */
export function countedLength(content: CountedContent): number {
  return content.text.length + TOKEN_LENGTH * content.tokens
}

class Counted {
  readonly lines: string[] = []
  tokens = 0

  constructor(
    private readonly format: MessageFormat,
    private readonly factsOf: FactsOf | undefined,
  ) {}

  add(part: Part): void {
    switch (part.type) {
      case 'text':
      case 'tool-result':
        this.lines.push(part.text)
        return
      case 'tool-call':
        this.lines.push(part.meta.name, part.meta.arguments)
        return
      case 'thinking':
        this.lines.push(part.text)
        if (part.meta?.type === 'reasoning') this.addEncrypted(part.meta.signature ?? '')
        return
      case 'redacted_thinking':
        this.addEncrypted(part.meta.data)
        return
      case 'data': {
        // Of which call it is, the result says.
        const { tool_call_id: _, ...said } = part.meta
        this.addValue(said)
        return
      }
      case 'audio':
        if (part.text) this.lines.push(part.text)
        else this.addMedium('audio', part.meta)
        return
      case 'file':
        this.addFile(part.meta, part.filename)
        return
      default:
        this.addMedium(part.type, part.meta, (part.meta as { detail?: string }).detail)
    }
  }

  /** A message has the same thoughts under several names where it passed a gateway: one text of them counts. */
  addThoughtsBeside({ reasoning_content, reasoning, thinking_blocks, reasoning_details }: JsonObject): void {
    const details = Array.isArray(thinking_blocks) ? thinking_blocks : reasoning_details
    const blocks = (Array.isArray(details) ? details : []).filter(isObject)
    const told = reasoning_content || reasoning
    const texts = told ? [told] : blocks.map(({ thinking, text, summary }) => thinking ?? text ?? summary)
    for (const text of texts) if (typeof text === 'string' && text !== '') this.lines.push(text)
    for (const { data } of blocks) if (typeof data === 'string') this.addEncrypted(data)
  }

  private addEncrypted(text: string): void {
    const sha256 = markedHash(text)
    const bytes = sha256 === undefined ? undefined : this.factsOf?.(sha256)?.bytes
    const length = bytes === undefined ? text.length : Math.ceil(bytes / 3) * 4
    this.tokens += Math.ceil(length / 4 / TOKEN_LENGTH) * 3
  }

  private addMedium(medium: Medium, meta: MediaMeta & { file_data?: string }, detail?: string): void {
    this.tokens += mediaTokens(
      medium,
      this.format,
      this.factsIn(meta.data ?? meta.file_data ?? meta.url),
      detail,
    )
  }

  private addFile(meta: FileMeta, filename: string | null): void {
    const type = meta.media_type ?? mediaTypeOf(filename ?? meta.filename ?? '') ?? ''
    const given = meta.data ?? meta.file_data
    if (meta.type === 'text' && given !== undefined && !isMarked(given)) this.lines.push(given)
    else if (given !== undefined && type.startsWith('text/'))
      this.tokens += Math.ceil((this.factsIn(given)?.bytes ?? 0) / TOKEN_LENGTH)
    else this.addMedium(/^image(\/|$)/.test(type) ? 'image' : 'file', meta)
  }

  /** What is known of bytes: in base64, in a `data:` URL, or in the blob that a mark stands for. */
  private factsIn(given: string | undefined): MediaFacts | undefined {
    if (given === undefined) return undefined
    const sha256 = markedHash(plainMark(given))
    if (sha256 !== undefined) return this.factsOf?.(sha256)
    const data =
      parseDataUrl(given)?.data ?? (/^[a-z][a-z\d+.-]*:/i.test(given.slice(0, 32)) ? undefined : given)
    return data === undefined ? undefined : factsOfBase64(data)
  }

  /** Names and values of what has no neutral form. Bytes in it count as what they are. A loop: it may nest deeper than the stack. */
  private addValue(root: unknown): void {
    const left: unknown[] = [root]
    while (left.length > 0) {
      const value = left.pop()
      if (typeof value === 'string') this.addString(value)
      else if (typeof value === 'number' || typeof value === 'boolean') this.lines.push(String(value))
      else if (value instanceof ExactNumber) this.lines.push(value.digits)
      else if (Array.isArray(value)) for (let at = value.length - 1; at >= 0; at--) left.push(value[at])
      else if (isObject(value)) this.addObject(value, left)
    }
  }

  private addObject(value: JsonObject, left: unknown[]): void {
    const type = value.media_type ?? value.mime_type ?? value.mimeType ?? value.mediaType
    for (const [name, member] of Object.entries(value).reverse()) {
      if (member === null) continue
      if (typeof member === 'string' && ENCRYPTED.test(name)) this.addEncrypted(member)
      else if (typeof type === 'string' && /^(data|blob|base64|image)$/.test(name)) {
        // AI SDK says of a file's data what they are.
        const inner = isObject(member) ? member : { type: value.type, data: member }
        const is_text = inner.type === 'text' && { type: 'text' }
        if (typeof inner.data === 'string')
          this.addFile({ data: inner.data, media_type: type, ...is_text }, null)
        else left.push(member, name)
      } else if (name === 'image' && typeof member === 'string' && value.data_type === name)
        this.addMedium('image', { data: member })
      else left.push(member, name)
    }
  }

  private addString(value: string): void {
    const isBytes = value.startsWith('data:') || markedHash(value) !== undefined
    const medium = isBytes ? parseDataUrl(value)?.media_type : undefined
    if (!isBytes) this.lines.push(value)
    else if (medium === undefined) this.addMedium('image', { url: value })
    else this.addFile({ file_data: value, media_type: medium }, null)
  }
}
