import type { JsonObject } from '../blob_reading.js'
import { countedContent, countedLength } from '../counted_content.js'
import type { MessageFormat } from '../formats.js'
import type { NeutralMessage, Part } from '../parts.js'
import { REASONING_FIELDS } from './openai_shape.js'
import type { Source, SourcePiece, SourceRun } from './pieces.js'

/** Counts the tokens of what is not in a list, from those of each message and its share of the message. */
export class LeftOut {
  private readonly messages = new Map<string, { tokens: number; shown: number }>()

  constructor(private readonly format: MessageFormat) {}

  /** Takes note of a message. `parts`, or `blocks` of its own format, are what the list's format cannot say of it. */
  add(
    { id, format, tokens = 0 }: { id: string; format: MessageFormat; tokens?: number | undefined },
    message: NeutralMessage | undefined,
    blob: unknown,
    { parts, blocks }: { parts: Part[]; blocks: JsonObject[] },
  ): void {
    const of = (content: { parts: Part[] }, whole?: unknown) =>
      countedLength(countedContent(format, content, whole))
    const left = blocks.length > 0 ? this.lengthOf(blocks) : of({ parts })
    const all = blocks.length > 0 ? this.lengthOf(blob) : message ? of(message, blob) : 0
    this.messages.set(id, { tokens, shown: all > 0 ? Math.max(0, 1 - left / all) : 0 })
  }

  /** A message of which nothing is said. */
  addEmpty({ id, tokens = 0 }: { id: string; tokens?: number | undefined }): void {
    this.messages.set(id, { tokens, shown: 0 })
  }

  /** Tokens of all that is not in the list: `left` are those pieces of the runs that are not. */
  tokens(runs: readonly SourceRun[], left: readonly SourcePiece[]): number {
    const lengths = new Map<Source, { all: number; left: number }>()
    for (const { source } of left) lengths.set(source, { all: 0, left: 0 })
    if (lengths.size === 0 && this.messages.size === 0) return 0
    for (const { source, run } of runs) {
      const length = lengths.get(source)
      if (!length) continue
      const beside = reasoningOf(run.head)
      if (Object.keys(beside).length > 0) length.all += this.lengthOf(beside)
      for (const { block, raw } of run.pieces) length.all += raw?.length ?? this.lengthOf(block)
    }
    for (const { source, piece } of left)
      lengths.get(source)!.left += piece.raw?.length ?? this.lengthOf(piece.block)
    for (const [{ id, tokens = 0 }, { all, left }] of lengths) {
      const known = this.messages.get(id) ?? { tokens, shown: 1 }
      this.messages.set(id, { tokens, shown: all > 0 ? known.shown * Math.max(0, 1 - left / all) : 0 })
    }
    let sum = 0
    for (const { tokens, shown } of this.messages.values()) sum += Math.round(tokens * (1 - shown))
    return sum
  }

  private lengthOf(value: unknown): number {
    const meta = { data_type: '', value } as never
    const part: Part = { type: 'data', text: null, asset: null, filename: null, meta }
    return countedLength(countedContent(this.format, { parts: [part] }))
  }
}

/** The model's thoughts that a message has beside its blocks. */
export function reasoningOf(head: JsonObject): JsonObject {
  return Object.fromEntries(REASONING_FIELDS.flatMap((key) => (key in head ? [[key, head[key]]] : [])))
}
