import { CallIds, type MessagePlace } from '../blob_reading.js'
import { countedContent, countedLength } from '../counted_content.js'
import type { MessageFormat } from '../formats.js'
import { endOfString } from '../json/json_text.js'
import { readStored } from '../message_format.js'
import type { NeutralMessage } from '../parts.js'
import { itemKind } from '../response_items.js'
import { recordsOfItem } from '../session/item_records.js'
import { parseStored } from '../stored_renderer.js'
import { textLength } from '../text_bytes.js'

/** The speaker, as far as it matters for where a conversation may be cut. `tool`: the message holds results. */
export type Speaker = 'instruction' | 'user' | 'assistant' | 'tool'

/** A tool's result. Where images and files are in it: how many, and how long its text is without them. */
interface ContextResult {
  id: string
  name: string | null
  length: number
  attached?: { media: number; characters: number }
}

/** A message, as far as planning a context needs it. Lengths are in characters. */
export interface ContextMessage {
  seq: number
  /** As it is stored, whole. */
  tokens: number
  speaker: Speaker
  calls: ReadonlyArray<{ id: string; name: string; length: number }>
  results: readonly ContextResult[]
  /** Of all that was counted as tokens. */
  length: number
}

/** A stored message: its blob as JSON text. */
export interface StoredSeq extends MessagePlace {
  seq: number
  tokens: number
  format: MessageFormat
  blob: string
}

const TEXT_FORMATS: ReadonlySet<MessageFormat> = new Set(['openai', 'anthropic', 'responses'])
const TEXT_STARTS = (['user', 'assistant'] as const).map(
  (speaker) => [speaker, `{"role": "${speaker}", "content": "`] as const,
)

/**
 * Who says a message that is one text and nothing else, as most are, and where its text begins; found without parsing
 * it: PostgreSQL writes the members of an object in one order. undefined: it may be anything else.
 */
export function onlyText(
  format: MessageFormat,
  blob: string,
): { speaker: 'user' | 'assistant'; begins: number } | undefined {
  if (!TEXT_FORMATS.has(format)) return undefined
  for (const [speaker, start] of TEXT_STARTS)
    if (blob.startsWith(start))
      return endOfString(blob, start.length - 1) === blob.length - 1
        ? { speaker, begins: start.length }
        : undefined
  return undefined
}

const NONE: readonly never[] = []

/** Reads what planning has to know of a message that is one text and nothing else. undefined: it may be anything else. */
export function textMessage({ seq, tokens, format, blob }: StoredSeq): ContextMessage | undefined {
  const text = onlyText(format, blob)
  // The length is only asked for where a part of a message is cleared: here there is none.
  return (
    text && {
      seq,
      tokens,
      speaker: text.speaker,
      calls: NONE,
      results: NONE,
      length: blob.length - text.begins - 2,
    }
  )
}

/** Reads what planning has to know. A blob that is no message of its format is somebody's who said nothing. */
export function contextMessage({ seq, tokens, format, blob, ...place }: StoredSeq): ContextMessage {
  const ids = new CallIds()
  ids.enter(place)
  const parsed = parseStored(format, blob)
  const message = readStored(format, parsed, ids)
  const calls: Array<ContextMessage['calls'][number]> = []
  const results: ContextResult[] = []
  const answered = new Map<string, ContextResult>()
  for (const part of message?.parts ?? []) {
    const { type, text, meta } = part
    if (type === 'tool-call') calls.push({ id: meta.id, name: meta.name, length: textLength(meta.arguments) })
    if (type === 'tool-result') {
      const result: ContextResult = {
        id: meta.tool_call_id,
        name: meta.name ?? null,
        length: textLength(text),
      }
      results.push(result)
      answered.set(result.id, result)
    }
    const isInside =
      type === 'image' || type === 'file' || type === 'audio' || type === 'video' || type === 'data'
    const holder = isInside ? answered.get(String(meta.tool_call_id ?? '')) : undefined
    // A medium in a result is part of it, and goes with it.
    if (holder) {
      holder.attached ??= { media: 0, characters: holder.length }
      holder.length += countedLength(countedContent(format, { parts: [part] }))
      holder.attached.media += 1
    }
    if (type !== 'data' || format !== 'responses') continue
    // The call of a built-in tool and its output stay together, too; neither is ever shortened.
    const kind = itemKind(meta.data_type)
    if (kind !== 'call' && kind !== 'output') continue
    const { call, result } = recordsOfItem(meta)
    if (call) calls.push({ id: call.id ?? '', name: call.name, length: 0 })
    if (result?.id !== undefined) results.push({ id: result.id, name: null, length: 0 })
  }
  const speaker = message ? speakerOf(message, results.length > 0) : 'user'
  const length = countedLength(countedContent(format, message ?? { parts: [] }, parsed))
  return { seq, tokens, speaker, calls, results, length }
}

function speakerOf({ role, provider_role }: NeutralMessage, hasResults: boolean): Speaker {
  if (provider_role === 'system' || provider_role === 'developer') return 'instruction'
  if (hasResults) return 'tool'
  return role
}
