import { isObject, type JsonObject, pushAll } from '../blob_reading.js'
import { COMPACTION_TYPE } from '../context/compaction.js'
import { MESSAGE_FORMATS, type MessageFormat } from '../formats.js'
import { parseJson, textOf, writeJson } from '../json/exact_json.js'
import { mayHaveEscapes, withoutEscapes } from '../json/visible.js'
import { MessageReader } from '../message_format.js'
import type { DataMeta, NeutralMessage, Part, ToolResultMeta } from '../parts.js'
import { CallJoiner } from './call_joiner.js'
import type { Block, LogEntry, LoggedEvent, LoggedMessage, ReadEntry, Streamed } from './entry.js'
import { recordsOf } from './event_records.js'
import { textSaysFailed } from './failures.js'
import { frameworkMessages } from './framework_messages.js'
import { recordsOfItem } from './item_records.js'
import { keptState } from './kept_state.js'
import {
  type CallRecord,
  type EntryRecords,
  type Place,
  type ResultRecord,
  type Source,
  textOfContent,
} from './records.js'
import { CHUNKS_TYPE, StreamedAnswer } from './streamed_answer.js'
import type { TrackedCall } from './waiting_calls.js'

/**
 * Reads the entries of one session in order of `seq`, whatever format each message has, and links results to their
 * calls. A later entry may change the calls of an earlier one. It takes linear time, and remembers no more of a long
 * session than of a short one.
 */
export class SessionReader {
  private readonly messages = new MessageReader()
  private readonly stream = new StreamedAnswer()
  private last_seq = 0

  constructor(private readonly joiner = new CallJoiner()) {}

  /** Goes on where another reader of the session was: after an entry, with the calls and the stream that it knew. */
  resume(last_seq: number, calls: readonly TrackedCall[], stream: string): void {
    this.last_seq = last_seq
    this.joiner.resume(calls)
    const open = calls.filter(({ recorded, answered }) => recorded.message && !answered.message)
    this.messages.resume(
      open.flatMap(({ call: { name, seq }, ids: { message: id } }) =>
        id === undefined ? [] : [{ id, name, seq }],
      ),
    )
    this.stream.resume(stream)
  }

  /** The beginning of a part of a stream that no entry has ended yet. */
  get unended(): string {
    return this.stream.rest
  }

  read(stored: LogEntry): ReadEntry {
    if (stored.seq !== this.last_seq + 1) this.joiner.stopCounting()
    this.last_seq = stored.seq
    const entry = shown(stored.occurred_at ? { ...stored, created_at: stored.occurred_at } : stored)
    if (entry.kind === 'event' && entry.type === CHUNKS_TYPE) return this.readChunks(entry)
    this.stream.close()
    return entry.kind === 'message' ? this.readMessage(entry) : this.readEvent(entry)
  }

  private readMessage(entry: LoggedMessage): ReadEntry {
    const { seq, created_at, blob } = entry
    const message = this.messages.read(entry)
    const blocks: Block[] = thoughtsOf(entry)
    // Anything not understood is shown unchanged, never dropped.
    if (message === undefined) blocks.push({ kind: 'data', value: blob })
    else {
      const marks = explicitMarks(entry, message)
      for (const part of message.parts) pushAll(blocks, this.readPart(part, entry, marks))
    }
    return { seq, created_at, kind: 'message', ...speakerOf(entry, message, blocks), blocks }
  }

  private readPart(part: Part, place: Place, marks: Iterator<boolean | undefined>): Block[] {
    switch (part.type) {
      case 'text':
        return part.text === '' ? [] : [{ kind: 'text', text: part.text }]
      case 'thinking':
        // A provider that hides a thought sends only its signature.
        return [{ kind: 'thinking', text: part.text || null }]
      case 'redacted_thinking':
        return [{ kind: 'thinking', text: null }]
      case 'tool-call':
        return [this.call('message', part.meta, place)]
      case 'tool-result': {
        const { tool_call_id, name, is_error } = part.meta as ToolResultMeta
        const is_failed = is_error ?? marks.next().value ?? textSaysFailed(part.text)
        const id = tool_call_id === '' ? undefined : tool_call_id
        return [this.result('message', { id, is_certain: true, name, text: part.text, is_failed }, place)]
      }
      case 'data':
        return this.readData(part.meta, place)
      default:
        return [{ kind: 'medium', part }]
    }
  }

  /** Blocks of their own hold the calls and results of tools that the provider runs. */
  private readData(meta: DataMeta, place: Place): Block[] {
    const { data_type, id, name, input, tool_use_id, content } = meta
    if ((data_type === 'server_tool_use' || data_type === 'mcp_tool_use') && typeof name === 'string') {
      const record = { id: typeof id === 'string' ? id : undefined, name, arguments: writeJson(input ?? {}) }
      return [this.call('message', record, place)]
    }
    if (data_type.endsWith('_tool_result') && typeof tool_use_id === 'string') {
      const refused = isObject(content) && typeof content.type === 'string' && content.type.endsWith('_error')
      const record = {
        id: tool_use_id,
        is_certain: true,
        name: undefined,
        text: textOfContent(content),
        is_failed: meta.is_error === true || refused,
      }
      return [this.result('message', record, place)]
    }
    const blocks = this.readRecords('message', recordsOfItem(meta), place)
    return blocks.length > 0 ? blocks : [{ kind: 'data', value: meta }]
  }

  private readEvent(entry: LoggedEvent): ReadEntry {
    const { seq, created_at, type, data } = entry
    if (type === COMPACTION_TYPE) return this.readCompaction(entry)
    const [said, ...more] = frameworkMessages(type, data)
    if (said) {
      const parts = [said, ...more].flatMap((message) => message.parts)
      const blocks = parts.flatMap((part) => this.readPart(part, entry, NO_MARKS))
      return { seq, created_at, kind: 'message', speaker: said.speaker, name: null, blocks }
    }
    const blocks = this.readRecords('event', recordsOf(type, data), entry)
    const state = keptState(type, data)
    if (blocks.length === 0) blocks.push(state ? { kind: 'state', ...state } : { kind: 'data', value: data })
    return { seq, created_at, kind: 'event', speaker: type, name: null, blocks }
  }

  /** The entries that a compaction covers, in one line, and its summary. */
  private readCompaction(entry: LoggedEvent): ReadEntry {
    const { seq, created_at, type, data } = entry
    const { from_seq, to_seq, entries, by, model, summary } = data
    const said = [
      `seq ${textOf(from_seq)} to ${textOf(to_seq)}`,
      entries === 1 ? '1 entry' : `${textOf(entries)} entries`,
      by,
      model,
    ]
    const line = said.filter(isText).join(' · ')
    const state = { title: 'summary', summary: line, is_failed: false, value: data }
    const messages = Array.isArray(summary) ? summary.filter(isObject) : []
    const reader = new MessageReader()
    const parts = messages.flatMap(({ format, blob }) => {
      if (!MESSAGE_FORMATS.includes(format as MessageFormat)) return []
      const stored = { id: '', parent_id: null, format: format as MessageFormat, blob }
      return reader.read(stored)?.parts ?? []
    })
    // Calls in a summary are no calls of the session.
    const blocks = parts
      .filter(({ type }) => type !== 'tool-call' && type !== 'tool-result')
      .flatMap((part) => this.readPart(part, entry, NO_MARKS))
    return {
      seq,
      created_at,
      kind: 'event',
      speaker: type,
      name: null,
      blocks: [{ kind: 'state', ...state }, ...blocks],
    }
  }

  private readChunks(entry: LoggedEvent): ReadEntry {
    const { seq, created_at, data } = entry
    const blocks: Block[] = []
    for (const piece of this.stream.read(seq, data)) {
      if (piece.kind === 'records') pushAll(blocks, this.readRecords('event', piece.records, entry))
      else if (piece.kind === 'data') blocks.push(piece)
      else addPiece(blocks, piece.whole, piece.text, seq)
    }
    return { seq, created_at, kind: 'message', speaker: 'assistant', name: null, blocks }
  }

  private readRecords(source: Source, { call, result }: EntryRecords, place: Place): Block[] {
    const blocks: Block[] = []
    if (call) blocks.push(this.call(source, call, place))
    if (result) blocks.push(this.result(source, result, place))
    return blocks
  }

  private call(source: Source, { id, name, arguments: given }: CallRecord, place: Place): Block {
    return { kind: 'call', ...this.joiner.call(source, { id, name, arguments: given }, place) }
  }

  private result(source: Source, record: ResultRecord, { seq, created_at }: Place): Block {
    const { name } = record
    return { kind: 'result', name, ...this.joiner.result(source, record, { seq, created_at }) }
  }
}

/** The entry without escapes of adapters. */
function shown(entry: LogEntry): LogEntry {
  const value = entry.kind === 'message' ? entry.blob : entry.data
  if (!mayHaveEscapes(value)) return entry
  const read = parseJson(withoutEscapes(writeJson(value)))
  return entry.kind === 'message' ? { ...entry, blob: read } : { ...entry, data: read as JsonObject }
}

/**
 * Whether everything in an entry is shown elsewhere: results with their calls, repeats and what a stream goes on with at
 * their first place.
 */
export function isShownElsewhere({ blocks }: ReadEntry): boolean {
  return blocks.length > 0 && blocks.every(isBlockShownElsewhere)
}

function isBlockShownElsewhere(block: Block): boolean {
  if (block.kind === 'streamed') return block.is_repeat || block.whole.text === ''
  return block.kind === 'call' ? block.is_repeat : block.kind === 'result' && block.call !== undefined
}

/** A text that goes on is one block. */
function addPiece(blocks: Block[], whole: Streamed, text: string, seq: number): void {
  const last = blocks.at(-1)
  if (last?.kind === 'streamed' && last.whole === whole) last.text += text
  else blocks.push({ kind: 'streamed', text, whole, is_repeat: whole.seq !== seq })
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

const NO_MARKS: Iterator<undefined> = [][Symbol.iterator]()

function speakerOf(
  { role }: LoggedMessage,
  message: NeutralMessage | undefined,
  blocks: Block[],
): { speaker: string; name: string | null } {
  const name = message?.name ?? null
  const provider_role = message?.provider_role
  const has_only_results = blocks.length > 0 && blocks.every(({ kind }) => kind === 'result')
  if (has_only_results || provider_role === 'tool') return { speaker: 'tool', name }
  const is_instruction = provider_role === 'system' || provider_role === 'developer'
  return { speaker: is_instruction ? provider_role : (message?.role ?? role), name }
}

/** A model's thoughts, in a field of Chat Completions that OpenAI does not define. */
function thoughtsOf({ format, blob }: LoggedMessage): Block[] {
  if (format !== 'openai' || !isObject(blob)) return []
  const text = blob.reasoning_content ?? blob.reasoning
  return typeof text === 'string' && text !== '' ? [{ kind: 'thinking', text }] : []
}

/**
 * Anthropic's results in order: false for each that is explicitly not an error, which the neutral form does not
 * distinguish from one without the flag.
 */
function* explicitMarks(
  { format, blob }: LoggedMessage,
  { parts }: NeutralMessage,
): Generator<boolean | undefined> {
  const content = format === 'anthropic' && isObject(blob) ? blob.content : undefined
  if (!Array.isArray(content) || !parts.some(({ type }) => type === 'tool-result')) return
  for (const block of content as JsonObject[]) {
    if (block.type === 'tool_result' && block.is_error !== true)
      yield typeof block.is_error === 'boolean' ? block.is_error : undefined
  }
}

const PROGRESS = /(?:^|[._-])progress$/i

/** Whether an importer marked an event as noise, or it tells of progress: a view may fold it. */
export function isNoise({ kind, speaker, blocks }: ReadEntry): boolean {
  if (kind !== 'event') return false
  if (PROGRESS.test(speaker)) return true
  const [block] = blocks
  return block?.kind === 'data' && (block.value as { noise?: unknown } | null)?.noise === true
}
