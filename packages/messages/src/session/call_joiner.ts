import { isObject } from '../blob_reading.js'
import { parseJson, writeJson } from '../json/exact_json.js'
import type { ToolCall, ToolResult } from './entry.js'
import type { CallRecord, Place, ResultRecord, Source } from './records.js'
import { type TrackedCall, WaitingCalls } from './waiting_calls.js'

/**
 * Numbers the calls of a session, links results to them, and recognizes a call that was recorded before, such as a
 * message's call that an event repeats. `docs/messages.md` has the rules.
 */
export class CallJoiner {
  private count: number | undefined = 0
  private begun = 0
  private readonly waiting = new WaitingCalls()
  private latest = { text: '', digest: 0 }

  /** Told of each call that an entry begins, repeats or answers. */
  constructor(private readonly onChange: (tracked: TrackedCall, answer?: ResultRecord) => void = () => {}) {}

  /** Entries are left out, which may hold calls: later ones have no numbers. */
  stopCounting(): void {
    this.count = undefined
  }

  /** The call that an entry records, and whether an earlier one has recorded it. */
  call(source: Source, record: CallRecord, place: Place): { call: ToolCall; is_repeat: boolean } {
    const known = this.recorded(source, record)
    const tracked = known ?? this.begin(source, record, place)
    tracked.recorded[source] = true
    const { id, name } = record
    const { waiting } = this
    if (id !== undefined) {
      tracked.ids[source] = id
      for (const by of SOURCES) waiting.add(key(by, 'id', id), tracked)
    }
    if (source === 'event') {
      waiting.add(key('event', 'event call', name), tracked)
      waiting.add(key('event', 'event call'), tracked)
    } else if (!known) {
      waiting.add(key('event', 'message call', name), tracked)
      waiting.add(key('event', 'message call'), tracked)
    }
    this.onChange(tracked)
    return { call: tracked.call, is_repeat: known !== undefined }
  }

  /** Goes on where another joiner of the session was, with its calls in order. */
  resume(calls: readonly TrackedCall[]): void {
    for (const tracked of calls) {
      tracked.order = ++this.begun
      const { call, recorded, ids } = tracked
      this.remember(recorded.message ? 'message' : 'event', tracked)
      const { waiting } = this
      for (const id of new Set(Object.values(ids)))
        for (const by of SOURCES) waiting.add(key(by, 'id', id), tracked)
      const spoken = recorded.event ? 'event call' : 'message call'
      waiting.add(key('event', spoken, call.name), tracked)
      waiting.add(key('event', spoken), tracked)
    }
  }

  /** Links a result to its call. */
  result(
    source: Source,
    record: ResultRecord,
    place: Place,
  ): { call: ToolCall | undefined; result: ToolResult; is_repeat: boolean } {
    const { text, is_failed, took_ms } = record
    const tracked = this.answeredBy(source, record)
    const result: ToolResult = { text, is_failed, ...place, duration_ms: took_ms ?? 0 }
    if (tracked === undefined) return { call: undefined, result, is_repeat: false }
    const { call } = tracked
    const before = call.result
    result.duration_ms =
      took_ms ?? (Math.max(Date.parse(place.created_at) - Date.parse(call.created_at), 0) || 0)
    tracked.answered[source] = true
    // If there are two results, the message's counts, because the model received it, and a failure that either
    // reports.
    const kept = before === undefined || source === 'message' ? result : before
    const has_failed = is_failed || before?.is_failed === true
    call.result = { ...kept, is_failed: has_failed, duration_ms: took_ms ?? (before ?? result).duration_ms }
    call.verdict = has_failed ? 'failed' : 'ok'
    call.version++
    this.waiting.grow(text.length)
    this.onChange(tracked, record)
    return { call, result, is_repeat: before !== undefined }
  }

  private begin(source: Source, record: CallRecord, place: Place): TrackedCall {
    const { id, name } = record
    const { seq, created_at } = place
    if (this.count !== undefined) this.count += 1
    const call: ToolCall = {
      number: this.count,
      id,
      name,
      arguments: record.arguments,
      seq,
      created_at,
      verdict: 'open',
      result: undefined,
      version: 0,
    }
    const tracked: TrackedCall = {
      call,
      order: ++this.begun,
      recorded: { message: false, event: false },
      answered: { message: false, event: false },
      ids: {},
      given: this.digest(record.arguments),
    }
    this.remember(source, tracked)
    return tracked
  }

  private remember(source: Source, tracked: TrackedCall): void {
    const { id, name, arguments: text } = tracked.call
    const { waiting } = this
    if (id !== undefined) waiting.add(key(source, 'same id', id, name), tracked)
    else for (const by of SOURCES) waiting.add(key(by, 'no id', name), tracked)
    const { given } = tracked
    waiting.add(key(source, 'same arguments', name, String(given)), tracked)
    if (source === 'message' || given === 0) waiting.add(key(source, 'same name', name), tracked)
    waiting.grow(name.length + text.length)
  }

  /** The call that an earlier entry recorded, if this entry records the same one. */
  private recorded(source: Source, record: CallRecord): TrackedCall | undefined {
    const { id, name } = record
    const other = source === 'event' ? 'message' : 'event'
    const isUnrepeated = (call: TrackedCall) => !call.recorded[source]
    if (id !== undefined) {
      const same = this.waiting.first(key(other, 'same id', id, name), isUnrepeated)
      if (same) return same
      // A call that is logged again while it is open, for example when it begins and when it ends.
      const open =
        source === 'event' ? this.waiting.first(key('event', 'id', id), isUnanswered('event')) : undefined
      if (open?.recorded.event && open.call.verdict === 'open' && open.call.name === name) return open
    }
    const given = this.digest(record.arguments)
    return (
      this.waiting.first(key(other, 'same arguments', name, String(given)), isUnrepeated) ??
      // An event without arguments records any call of its name.
      (source === 'event' && given !== 0
        ? undefined
        : this.waiting.first(key(other, 'same name', name), isUnrepeated))
    )
  }

  /** Asked for twice of a new call, whose arguments may be long. */
  private digest(text: string): number {
    if (text !== this.latest.text) this.latest = { text, digest: digestOf(canonical(text)) }
    return this.latest.digest
  }

  /** The call that a result answers. */
  private answeredBy(source: Source, { id, is_certain, name }: ResultRecord): TrackedCall | undefined {
    const { waiting } = this
    const wanted = isUnanswered(source)
    if (id !== undefined) {
      const same = waiting.first(key(source, 'id', id), wanted)
      if (same) return same
      if (is_certain)
        return name === undefined ? undefined : waiting.first(key(source, 'no id', name), wanted)
    }
    if (name !== undefined)
      return (
        waiting.first(key('event', 'event call', name), wanted) ??
        waiting.first(key('event', 'message call', name), wanted)
      )
    const isOpen = (call: TrackedCall) => wanted(call) && call.call.verdict === 'open'
    return (
      waiting.first(key('event', 'event call'), isOpen) ?? waiting.first(key('event', 'message call'), isOpen)
    )
  }
}

const SOURCES = ['message', 'event'] as const

const UNANSWERED = {
  message: ({ answered }: TrackedCall) => !answered.message,
  event: ({ answered }: TrackedCall) => !answered.event,
}

function isUnanswered(source: Source): (call: TrackedCall) => boolean {
  return UNANSWERED[source]
}

/** A separate key for each kind of look-up, so that they cannot be confused. */
function key(...words: string[]): string {
  return words.join('\0')
}

/** Arguments in a canonical form, because databases sort the members of objects. Empty if there are none. */
function canonical(text: string): string {
  if (text.trim() === '') return ''
  try {
    const value = sorted(parseJson(text))
    return isObject(value) && Object.keys(value).length === 0 ? '' : writeJson(value)
  } catch {
    return text
  }
}

/** `parseJson` has bounded the depth. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  const members = Object.entries(value).map(([name, member]) => [name, sorted(member)] as const)
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** 53 bits; 0 of an empty text alone. Who makes two texts share one confuses the calls of his own session only. */
function digestOf(text: string): number {
  if (text === '') return 0
  let [high, low] = [0xdeadbeef, 0x41c6ce57]
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    high = Math.imul(high ^ unit, 2_654_435_761)
    low = Math.imul(low ^ unit, 1_597_334_677)
  }
  high = Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909)
  low = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909)
  return 4_294_967_296 * (2_097_151 & low) + (high >>> 0) || 1
}
