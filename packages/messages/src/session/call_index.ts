import { CallJoiner } from './call_joiner.js'
import type { LogEntry, ReadEntry, ToolCall } from './entry.js'
import type { ResultRecord } from './records.js'
import { SessionReader } from './session_reader.js'
import { askedIn } from './session_title.js'
import type { TrackedCall } from './waiting_calls.js'

const TEXT_LENGTH_MAX = 300
const QUESTION_LENGTH_MAX = 160
const NAME_LENGTH_MAX = 200
const RETRACTION_TYPE = 'annals.retraction'

/** A call as an index keeps it: what figures need, and what a reader needs to go on. */
export interface IndexedCall {
  /** 1 for the session's first call, 2 for the next one. */
  number: number
  seq: number
  /** When it was made. */
  at: string
  /** Its ids in messages and in events. */
  id: string | null
  event_id: string | null
  name: string
  /** A digest of its arguments. */
  given: number
  /** The kinds of entries that recorded and answered it: 1 for a message, 2 for an event, 3 for both. */
  recorded: number
  answered: number
  is_retracted: boolean
  /** Null while it has no result. */
  failed: boolean | null
  result_seq: number | null
  /** Null where it is not known. */
  duration_ms: number | null
  /** Of a failed call: what it returned, and what the assistant said next. */
  result: string | null
  said_seq: number | null
  said: string | null
}

/** How far an index is with a session. */
export interface IndexState {
  last_seq: number
  /** The latest calls, in order. */
  calls: readonly IndexedCall[]
  /** The first words of a user. */
  question: string | null
  question_seq: number | null
  /** The beginning of a part of a stream that no entry has ended yet. */
  stream: string
}

export interface IndexedPiece extends Omit<IndexState, 'last_seq'> {
  /** Entries that were retracted: they may be of calls that the state does not have. */
  retracted: number[]
}

/** At most so many characters of what a failed call returned. */
type Excerpt = (text: string, length: number) => string

/** Reads the next entries of a session. Returns the calls that are new or have changed, and the state after them. */
export function indexCalls(
  state: IndexState,
  entries: Iterable<LogEntry>,
  excerpt: Excerpt = cut,
): IndexedPiece {
  const index = new CallIndex(state, excerpt)
  for (const entry of entries) index.read(entry)
  return index.piece()
}

class CallIndex {
  private readonly calls = new Map<TrackedCall, IndexedCall>()
  private readonly changed = new Set<TrackedCall>()
  /** Failed calls after which the assistant has not said anything yet. */
  private readonly unsaid = new Set<TrackedCall>()
  private readonly reader = new SessionReader(new CallJoiner((...changed) => this.note(...changed)))
  private readonly retracted: number[] = []
  private number: number
  private question: Pick<IndexState, 'question' | 'question_seq'>

  constructor(
    { last_seq, calls, stream, question, question_seq }: IndexState,
    private readonly excerpt: Excerpt,
  ) {
    const known = calls.map((call) => {
      const tracked = trackedCall(call)
      this.calls.set(tracked, { ...call })
      if (call.failed && call.said_seq === null && !call.is_retracted) this.unsaid.add(tracked)
      return tracked
    })
    this.number = calls.at(-1)?.number ?? 0
    this.question = { question, question_seq }
    this.reader.resume(last_seq, known, stream)
  }

  read(entry: LogEntry): void {
    const read = this.reader.read(entry)
    if (entry.kind === 'event' && entry.type === RETRACTION_TYPE) this.retract(entry.data.seqs)
    const text = read.kind === 'message' ? textIn(read) : undefined
    if (text === undefined) return
    if (read.speaker === 'assistant') this.say(read.seq, text)
    if (read.speaker === 'user' && this.question.question === null) this.ask(read)
  }

  piece(): IndexedPiece {
    const calls = [...this.changed].map((tracked) => this.indexed(tracked))
    const { question, retracted, reader } = this
    return { calls, ...question, retracted, stream: reader.unended.toWellFormed() }
  }

  private note(tracked: TrackedCall, answer?: ResultRecord): void {
    this.changed.add(tracked)
    const indexed = this.calls.get(tracked) ?? newCall(tracked, ++this.number)
    this.calls.set(tracked, indexed)
    if (!answer?.is_failed) return
    indexed.result = storable(this.excerpt(answer.text, TEXT_LENGTH_MAX))
    if (indexed.said_seq === null) this.unsaid.add(tracked)
  }

  private ask({ seq, blocks }: ReadEntry): void {
    const text = askedIn(blocks)
    if (text !== undefined)
      this.question = {
        question: cut(text.replaceAll(/\s+/g, ' '), QUESTION_LENGTH_MAX),
        question_seq: seq,
      }
  }

  private say(seq: number, text: string): void {
    for (const tracked of this.unsaid) {
      if ((tracked.call.result?.seq ?? seq) >= seq) continue
      Object.assign(this.calls.get(tracked)!, { said_seq: seq, said: cut(text, TEXT_LENGTH_MAX) })
      this.changed.add(tracked)
      this.unsaid.delete(tracked)
    }
  }

  /** A retracted call is no call any more; one whose result was retracted waits for another. */
  private retract(given: unknown): void {
    const seqs = new Set(Array.isArray(given) ? given.map(Number) : [])
    for (const seq of seqs) if (Number.isSafeInteger(seq)) this.retracted.push(seq)
    if (this.question.question_seq !== null && seqs.has(this.question.question_seq))
      this.question = { question: null, question_seq: null }
    for (const [tracked, indexed] of this.calls) {
      const { call, answered } = tracked
      const is_call = seqs.has(call.seq)
      const is_result = call.result !== undefined && seqs.has(call.result.seq)
      const is_said = indexed.said_seq !== null && seqs.has(indexed.said_seq)
      if (!is_call && !is_result && !is_said) continue
      this.changed.add(tracked)
      Object.assign(indexed, { said_seq: null, said: null })
      if (is_call || is_result) {
        indexed.result = null
        Object.assign(answered, { message: false, event: false })
        call.result = undefined
        call.verdict = 'open'
      }
      if (is_call) {
        // No later entry belongs to it.
        Object.assign(answered, { message: true, event: true })
        Object.assign(tracked.recorded, { message: true, event: true })
        indexed.is_retracted = true
      }
      this.unsaid.delete(tracked)
    }
  }

  private indexed(tracked: TrackedCall): IndexedCall {
    const { call, recorded, answered, ids } = tracked
    const known = this.calls.get(tracked)!
    const { result, verdict } = call
    return {
      ...known,
      id: storableId(ids.message),
      event_id: storableId(ids.event),
      recorded: bitsOf(recorded),
      answered: bitsOf(answered),
      failed: verdict === 'open' ? null : verdict === 'failed',
      result_seq: result?.seq ?? null,
      duration_ms: result && result.duration_ms > 0 ? result.duration_ms : null,
    }
  }
}

function newCall({ call, given }: TrackedCall, number: number): IndexedCall {
  const { name, seq, created_at } = call
  return {
    number,
    seq,
    at: created_at,
    id: null,
    event_id: null,
    name: cut(name, NAME_LENGTH_MAX),
    given,
    recorded: 0,
    answered: 0,
    is_retracted: false,
    failed: null,
    result_seq: null,
    duration_ms: null,
    result: null,
    said_seq: null,
    said: null,
  }
}

/** A longer one is told by nothing but its name and its place. */
function storableId(id: string | undefined): string | null {
  return id !== undefined && id.length <= NAME_LENGTH_MAX ? id.replaceAll('\0', '').toWellFormed() : null
}

function trackedCall(indexed: IndexedCall): TrackedCall {
  const { id, event_id, name, seq, at, failed, result_seq, duration_ms, given } = indexed
  const call: ToolCall = {
    number: indexed.number,
    id: id ?? event_id ?? undefined,
    name,
    arguments: '',
    seq,
    created_at: at,
    verdict: failed === null ? 'open' : failed ? 'failed' : 'ok',
    result:
      result_seq === null
        ? undefined
        : {
            text: '',
            is_failed: failed === true,
            seq: result_seq,
            created_at: at,
            duration_ms: duration_ms ?? 0,
          },
    version: 0,
  }
  const [recorded, answered] = [sourcesOf(indexed.recorded), sourcesOf(indexed.answered)]
  const ids = { ...(id !== null && { message: id }), ...(event_id !== null && { event: event_id }) }
  return { call, order: indexed.number, recorded, answered, ids, given }
}

function bitsOf({ message, event }: TrackedCall['recorded']): number {
  return Number(message) + 2 * Number(event)
}

function sourcesOf(bits: number): TrackedCall['recorded'] {
  return { message: (bits & 1) === 1, event: (bits & 2) === 2 }
}

function textIn({ blocks }: ReadEntry): string | undefined {
  return blocks.find((block) => block.kind === 'text')?.text.trim() || undefined
}

function cut(text: string, length: number): string {
  return storable(text.length > length ? `${text.slice(0, length)}…` : text)
}

function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed()
}
