import { isObject, type JsonObject } from '../blob_reading.js'
import { parseJson, textOf } from '../json/exact_json.js'
import type { Streamed } from './entry.js'
import type { EntryRecords } from './records.js'

/** The event of the AI SDK's adapter with what came of a stream within a moment. */
export const CHUNKS_TYPE = 'ai_sdk.chunks'

/** A longer text goes on in another one. */
const TEXT_LENGTH_MAX = 1_000_000
/** A longer part of a stream is left out: it is a file. */
const PART_LENGTH_MAX = 1_000_000

const REST_LENGTH_MAX = 65_536

/** A piece that an event adds to a stream: text, a call or a result. */
export type StreamedPiece =
  | { kind: 'text'; text: string; whole: Streamed }
  | { kind: 'records'; records: EntryRecords }
  | { kind: 'data'; value: unknown }

/** Joins the events of a stream: the parts of the protocol end anywhere in them. In linear time. */
export class StreamedAnswer {
  private whole: Streamed | undefined
  /** Text whose part has not ended yet. */
  private pieces: string[] = []
  private length = 0

  /** The beginning of a part that no entry has ended yet; empty where it is too long to be kept. */
  get rest(): string {
    return this.length > REST_LENGTH_MAX ? '' : this.pieces.join('')
  }

  /** Goes on where another reader of the stream was. */
  resume(rest: string): void {
    this.pieces = rest === '' ? [] : [rest]
    this.length = rest.length
  }

  /** The next piece is shown by itself. */
  close(): void {
    this.whole = undefined
  }

  /** What an event says. It begins with the text to which it belongs, and which may have begun in an earlier entry. */
  *read(seq: number, data: JsonObject): Generator<StreamedPiece> {
    const text = textOf(data.text)
    this.whole ??= { seq, is_thinking: false, text: '' }
    yield { kind: 'text', text: '', whole: this.whole }
    for (const part of this.partsIn(text)) yield* this.piecesOf(seq, part)
  }

  private *piecesOf(seq: number, { type, ...part }: JsonObject): Generator<StreamedPiece> {
    switch (type) {
      case 'text-delta':
      case 'reasoning-delta':
        return yield this.added(seq, type === 'reasoning-delta', textOf(part.delta))
      case 'error':
        return yield this.added(seq, false, `Error: ${textOf(part.errorText)}`)
      case 'tool-input-available':
      case 'tool-input-error':
      case 'tool-output-available':
      case 'tool-output-error':
        if (part.preliminary === true) return
        this.close()
        return yield { kind: 'records', records: recordsOf(type, part) }
      default:
        if (typeof type !== 'string' || !/^(?:data-|source-|file$)/.test(type)) return
        yield { kind: 'data', value: { type, ...part } }
    }
  }

  private added(seq: number, is_thinking: boolean, text: string): StreamedPiece {
    const { whole } = this
    if (whole && whole.text === '') whole.is_thinking = is_thinking
    if (!whole || whole.is_thinking !== is_thinking || whole.text.length > TEXT_LENGTH_MAX)
      this.whole = { seq, is_thinking, text: '' }
    this.whole!.text += text
    return { kind: 'text', text, whole: this.whole! }
  }

  /** The parts that end in a text; an empty line ends one. */
  private partsIn(text: string): JsonObject[] {
    const ends = (this.pieces.at(-1)?.endsWith('\n') && text.startsWith('\n')) || text.includes('\n\n')
    if (text === '') return []
    this.pieces.push(text)
    this.length += text.length
    if (!ends && this.length <= PART_LENGTH_MAX) return []
    const parts = ends ? this.pieces.join('').split('\n\n') : ['']
    this.pieces = [parts.pop()!]
    this.length = this.pieces[0]!.length
    return parts.map(partOf).filter((part) => part !== undefined)
  }
}

function partOf(event: string): JsonObject | undefined {
  if (!event.startsWith('data:')) return undefined
  try {
    const part = parseJson(event.slice('data:'.length))
    return isObject(part) ? part : undefined
  } catch {
    // The end, [DONE], or a part whose beginning was left out.
    return undefined
  }
}

function recordsOf(
  type: string,
  { toolCallId, toolName, input, output, errorText }: JsonObject,
): EntryRecords {
  const id = textOf(toolCallId) || undefined
  const is_failed = type.endsWith('-error')
  const text = is_failed ? textOf(errorText) : textOf(output)
  return {
    call: type.startsWith('tool-input-')
      ? { id, name: textOf(toolName), arguments: textOf(input) }
      : undefined,
    result:
      type === 'tool-input-available'
        ? undefined
        : { id, is_certain: true, name: undefined, text, is_failed },
  }
}
