import { bytePlaces, markBlobs, mayReferToBlobs, standardBase64 } from '../attachments.js'
import { isObject, type JsonObject, pushAll } from '../blob_reading.js'
import { onlyText } from '../context/context_message.js'
import { editBlob, type MessageEdit } from '../context/edit_blob.js'
import type { MessageFormat } from '../formats.js'
import { parseJson } from '../json/exact_json.js'
import { withoutEscapes } from '../json/visible.js'
import { MessageReader, writeItems } from '../message_format.js'
import type { NeutralMessage, Part } from '../parts.js'
import { hasToolBlocks } from '../tool_blocks.js'
import type { Omit } from '../turns.js'
import { ACONTEXT_SHAPE } from './acontext_shape.js'
import { ANTHROPIC_SHAPE } from './anthropic_shape.js'
import { withoutCompacted } from './compacted.js'
import { partOfForeign } from './foreign_blocks.js'
import { GEMINI_SHAPE, hasMixedParts } from './gemini_shape.js'
import { LeftOut, reasoningOf } from './left_out.js'
import { OPENAI_SHAPE, REASONING_FIELDS } from './openai_shape.js'
import { putInOrder } from './order.js'
import type { Added, Omitted, PieceIds, Run, Shape, Source, SourcePiece, SourceRun } from './pieces.js'
import { isOfConversations, RESPONSES_SHAPE, withoutReasoningIds } from './responses_shape.js'
import { sentJson } from './sent_json.js'
import { isAddressAt, takeOutImages, writeTrueBytes } from './true_bytes.js'
import { UniqueItems } from './unique_items.js'

const SHAPES: Readonly<Record<MessageFormat, Shape>> = {
  openai: OPENAI_SHAPE,
  anthropic: ANTHROPIC_SHAPE,
  gemini: GEMINI_SHAPE,
  acontext: ACONTEXT_SHAPE,
  responses: RESPONSES_SHAPE,
}

/** Whether a model's thoughts go along: all, none, or those of the turn at hand. */
export type Reasoning = 'keep' | 'drop' | 'last_turn'

export interface FitOptions {
  reasoning?: Reasoning | undefined
  /** Up to where the log was when the list was first asked for; undefined: this is the first time. */
  begun_seq?: number | undefined
  /** Where lists ended that were sent before, ascending: what stood in them does not change. */
  sent_seqs?: readonly number[] | undefined
  /** Hashes of pictures that are too large for the provider: it would refuse the list for one of them. */
  too_large?: readonly string[] | undefined
}

/** A stored message of the list: its blob as JSON text. */
export interface FitMessage {
  id: string
  parent_id: string | null
  seq: number
  format: MessageFormat
  blob: string
  edit?: MessageEdit | undefined
  /** As it is shown, edited or not. */
  tokens?: number | undefined
}

export interface Fitted {
  /** Each as JSON text, with the seq of the message that it begins with. */
  items: Array<{ id: string; seq: number; json: string }>
  omitted: Omitted[]
  added: Added[]
  /** Of what `omitted` names, as far as the messages' tokens are known: an estimate where a message is partly left out. */
  tokens_left_out: number
  /** Of tools whose names had to change: their own by those in the list. */
  names: Record<string, string>
  /** Those of `sent_seqs` that made a difference. */
  sent_seqs: number[]
}

/**
 * Makes a list of messages fit to be sent to a provider: a pass over the whole list, because what a provider refuses is
 * mostly not a message but what stands around it. `docs/messages.md` has the rules.
 */
export class FitToSend {
  private readonly reader = new MessageReader()
  private readonly runs: SourceRun[] = []
  private readonly omitted: Omitted[] = []
  private readonly left: SourcePiece[] = []
  private readonly left_out: LeftOut
  private readonly shape: Shape
  private readonly too_large: ReadonlySet<string>
  private last_id: string | undefined

  constructor(
    private readonly format: MessageFormat,
    private readonly options: FitOptions = {},
  ) {
    this.shape = SHAPES[format]
    this.too_large = new Set(options.too_large)
    this.left_out = new LeftOut(format)
  }

  /** Takes the next message, oldest first. */
  add(message: FitMessage): void {
    const { id, parent_id, seq, format, tokens } = message
    const blob = withoutEscapes(message.blob)
    const is_after_gap = parent_id !== null && parent_id !== this.last_id
    const source: Source = { id, seq, format, tokens, is_after_gap }
    this.last_id = id
    const text = textRun(message, blob, this.format)
    if (text) {
      this.runs.push({ source, run: text })
      return
    }
    const stored = parseSent(format, blob, this.too_large)
    const edited = message.edit ? editBlob(format, stored, message.edit) : stored
    const read = this.reader.read({ id, parent_id, format, blob: edited })
    if (isObject(edited) && typeof edited.id === 'string' && format === 'anthropic')
      source.answer_id = edited.id
    const left: Left = { kinds: new Set(), parts: [], blocks: [] }
    const runs = read ? this.split(format, edited, read, left) : []
    for (const what of left.kinds) this.omitted.push({ id, reason: 'not_in_format', what })
    const said = runs.filter(({ pieces }) => pieces.length > 0)
    if (left.kinds.size > 0) this.left_out.add(message, read, edited, left)
    else if (said.length === 0) {
      this.omitted.push({ id, reason: 'empty' })
      this.left_out.addEmpty(message)
    }
    for (const run of said) this.runs.push({ source, run })
  }

  private split(
    format: MessageFormat,
    blob: unknown,
    message: NeutralMessage,
    { kinds, parts, blocks }: Left,
  ): Run[] {
    const is_own = format === this.format && isObject(blob) && isRequestable(format, blob)
    if (is_own && STANDARD_BASE64.has(format)) writeStandardBase64(format, blob)
    const omitPart: Omit = (what, part) => kinds.add(what) && parts.push(part)
    const thoughts = is_own || this.format !== 'anthropic' ? [] : signedThoughts(format, blob)
    if (!is_own && thoughts.length === 0)
      for (const thought of thoughtsBeside(format, blob)) omitPart('reasoning_content', thought)
    const said = is_own ? message : { ...message, parts: message.parts.map(partOfForeign) }
    const written = is_own ? [blob] : (writeItems(this.format, said, omitPart) as unknown as JsonObject[])
    const items = thoughts.length === 0 ? written : withThoughts(written, thoughts)
    return this.shape.split(items, idsOf(message), (what, block) => kinds.add(what) && blocks.push(block))
  }

  finish(): Fitted {
    const { format, shape, options } = this
    const reasoned = this.withReasoning()
    const runs = format === 'responses' ? this.withUniqueItems(reasoned) : reasoned
    const rest = withoutCompacted(runs, format)
    pushAll(this.left, rest.left)
    const ordered = putInOrder(rest.runs, format, shape, options)
    return {
      items: ordered.items.map(({ item, source, raw }) => ({
        id: source.id,
        seq: source.seq,
        json: raw ?? sentJson(item),
      })),
      omitted: [...this.omitted, ...rest.omitted, ...ordered.omitted],
      added: ordered.added,
      tokens_left_out: this.left_out.tokens(this.runs, [...this.left, ...ordered.left]),
      names: Object.fromEntries(ordered.names),
      sent_seqs: ordered.sent_seqs,
    }
  }

  /** The runs with each of OpenAI's items once. */
  private withUniqueItems(runs: SourceRun[]): SourceRun[] {
    const items = new UniqueItems()
    let last: Source | undefined
    return runs.flatMap(({ source, run }) => {
      if (source.is_after_gap && source !== last) items.loseBeginning()
      last = source
      const pieces = run.pieces.flatMap((piece) => {
        const { shown, reason } = items.take(piece, run.side)
        if (reason) this.omitted.push({ id: source.id, reason, what: String(piece.block.type) })
        if (!shown) this.left.push({ source, piece })
        return shown ?? []
      })
      return pieces.length > 0 ? [{ source, run: { ...run, pieces } }] : []
    })
  }

  /** The runs without the thoughts that are not wanted. */
  private withReasoning(): SourceRun[] {
    const { reasoning = 'keep' } = this.options
    if (reasoning === 'keep') return this.runs
    const says = ({ run }: SourceRun) =>
      run.side === 'user' && run.pieces.some(({ kind }) => kind === 'content')
    const turn = reasoning === 'last_turn' ? this.runs.findLastIndex(says) : this.runs.length
    /** Thoughts of what the model says at this moment are gone. */
    let is_less = false
    return this.runs.flatMap(({ source, run }, index) => {
      if (run.side === 'user') is_less = false
      if (index > turn || run.side === 'user') return [{ source, run }]
      const head = { ...run.head }
      for (const key of REASONING_FIELDS) delete head[key]
      const beside = reasoningOf(run.head)
      const left = run.pieces.filter(({ kind }) => kind === 'thinking')
      if (Object.keys(beside).length > 0) left.push({ kind: 'thinking', block: beside })
      is_less ||= left.length > 0
      const pieces = run.pieces.flatMap((piece) => {
        if (piece.kind === 'thinking') return []
        const shown = is_less && this.format === 'responses' ? withoutReasoningIds(piece) : piece
        if (shown === undefined) left.push(piece)
        return shown ?? []
      })
      if (left.length > 0) this.omitted.push({ id: source.id, reason: 'reasoning' })
      pushAll(
        this.left,
        left.map((piece) => ({ source, piece })),
      )
      return pieces.length > 0 ? [{ source, run: { ...run, head, pieces } }] : []
    })
  }
}

/** Reads a stored message, in which bytes are what they are called. Images that are too large have none. */
function parseSent(format: MessageFormat, text: string, too_large: ReadonlySet<string>): unknown {
  const blob = parseJson(text)
  writeTrueBytes(format, blob)
  if (!mayReferToBlobs(text)) return blob
  if (too_large.size > 0) takeOutImages(format, blob, too_large)
  return markBlobs(format, blob)
}

/** Parts, or blocks of its own format, of a message that its list's format has no form for. */
interface Left {
  kinds: Set<string>
  parts: Part[]
  blocks: JsonObject[]
}

/** Whether a request may have a message in the form in which it was stored in its own format. */
function isRequestable(format: MessageFormat, blob: JsonObject): boolean {
  if (format === 'gemini') return !hasMixedParts(blob)
  if (format === 'openai') return !hasToolBlocks(blob)
  return format !== 'responses' || !isOfConversations(blob)
}

/** A model's thoughts where OpenAI's format has them, and no part does. */
function thoughtsBeside(format: MessageFormat, blob: unknown): Part[] {
  if (format !== 'openai' || !isObject(blob)) return []
  const { reasoning_content, reasoning, reasoning_details } = blob
  const details = Array.isArray(reasoning_details) ? reasoning_details.filter(isObject) : []
  const text =
    reasoning_content ?? reasoning ?? details.map(({ text, summary }) => text ?? summary ?? '').join('')
  if (typeof text !== 'string' || text.trim() === '') return []
  return [{ type: 'thinking', text, asset: null, filename: null, meta: null }]
}

/**
 * Thoughts that Anthropic signed, where LiteLLM and OpenRouter have them beside a message of OpenAI's format: without them
 * Anthropic refuses the calls of the turn at hand.
 */
function signedThoughts(format: MessageFormat, blob: unknown): JsonObject[] {
  if (format !== 'openai' || !isObject(blob)) return []
  const { thinking_blocks, reasoning_details } = blob
  if (Array.isArray(thinking_blocks)) return thinking_blocks.filter(isObject).filter(isSigned)
  const details = Array.isArray(reasoning_details) ? reasoning_details.filter(isObject) : []
  const thoughts = details.flatMap<JsonObject>((detail) => {
    const { type, text, signature, data, format: made_by } = detail
    const isAnthropics = String(made_by ?? '').startsWith('anthropic')
    if (type === 'reasoning.encrypted' && isAnthropics) return { type: 'redacted_thinking', data }
    if (type !== 'reasoning.text' || !(made_by == null || isAnthropics)) return []
    return { type: 'thinking', thinking: text ?? '', signature }
  })
  return thoughts.filter(isSigned)
}

function isSigned({ type, thinking, signature, data }: JsonObject): boolean {
  if (type === 'redacted_thinking') return typeof data === 'string' && data !== ''
  return (
    type === 'thinking' && typeof thinking === 'string' && typeof signature === 'string' && signature !== ''
  )
}

function withThoughts(items: readonly JsonObject[], thoughts: readonly JsonObject[]): JsonObject[] {
  const at = items.findIndex(({ role }) => role === 'assistant')
  return items.map((item, nth) => {
    if (nth !== at) return item
    return { ...item, content: [...thoughts, ...(Array.isArray(item.content) ? item.content : [])] }
  })
}

/** Formats whose providers take no other alphabet. */
const STANDARD_BASE64: ReadonlySet<MessageFormat> = new Set(['openai', 'anthropic', 'responses'])

function writeStandardBase64(format: MessageFormat, blob: JsonObject): void {
  for (const place of bytePlaces(format, blob)) {
    const { holder, key, is_opaque } = place
    const bytes = holder[key]
    if (typeof bytes === 'string' && !is_opaque && !isAddressAt(place)) holder[key] = standardBase64(bytes)
  }
}

function idsOf({ parts }: NeutralMessage): PieceIds {
  const ids: PieceIds = { calls: [], results: [] }
  for (const { type, meta } of parts) {
    if (type === 'tool-call') ids.calls.push({ id: meta.id, name: meta.name })
    if (type === 'tool-result') ids.results.push({ id: meta.tool_call_id, name: meta.name })
  }
  ids.calls.reverse()
  ids.results.reverse()
  return ids
}

/** A letter that is no part of an escape: the text is not blank. The few that escapes are written with do not tell. */
const SAYS_SOMETHING = /[^\s\\0-9a-fA-Fnrtu]/
const LOOKED_AT = 256
/** White space, or an escape of it, at the end of a text. */
const ENDS_WITH_SPACE = /\s$|\\[nrtf]$/

/**
 * A message that is one text and nothing else, as most are, without parsing it: PostgreSQL writes the members of an
 * object in one order. undefined: it has to be parsed.
 */
function textRun({ format, edit }: FitMessage, blob: string, target: MessageFormat): Run | undefined {
  if (format !== target || edit) return undefined
  const text = onlyText(format, blob)
  if (!text) return undefined
  if (format === 'anthropic' && ENDS_WITH_SPACE.test(blob.slice(-4, -2))) return undefined
  const { speaker, begins } = text
  if (!SAYS_SOMETHING.test(blob.slice(begins, Math.min(begins + LOOKED_AT, blob.length) - 2)))
    return undefined
  return {
    side: speaker === 'user' ? 'user' : 'model',
    head: format === 'openai' && speaker === 'user' ? { role: speaker } : {},
    pieces: [{ kind: 'content', block: {}, raw: blob }],
  }
}
