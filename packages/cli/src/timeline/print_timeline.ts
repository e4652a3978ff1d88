import type { Annals, TimelineItem } from '@annals/client'
import { parseJson } from '@annals/messages/json'
import {
  isNoise,
  isShownElsewhere,
  type ReadEntry,
  SessionReader,
  type ToolCall,
} from '@annals/messages/session'
import { type Output, tell } from '../terminal/output.js'
import { TimelineText } from './timeline_text.js'

const PAGE_MAX = 200
/** How many entries to wait for the results of an entry's calls, which are shown with the calls, and for what was stored late. */
const AHEAD_MAX = 200
/** Entries of noise on one line: they are kept until it is printed. */
const FOLDED_MAX = 1_000

/** Which part of a log to print. */
export interface TimelineChoice {
  fromSeq?: number
  last?: number
  kind?: 'message' | 'event'
  type?: string
  full?: boolean
  /** The number of a call, or the name of a tool. */
  tool?: number | string
  /** Only calls that failed. */
  failed?: boolean
}

/**
 * Prints the entries of a session in memory that does not grow with it: in the order in which they happened, as far as
 * what was stored late stands within a few hundred entries; those of which nobody said when, after the one before them.
 */
export async function printEntries(
  annals: Annals,
  session_id: string,
  choice: TimelineChoice,
  output: Output,
): Promise<void> {
  const items = await itemsOf(annals, session_id, choice)
  if (output.json) {
    for await (const item of items) output.value(item)
    return
  }
  const { full = false } = choice
  const reader = new SessionReader()
  const { width, paint } = output
  const text = new TimelineText({ width, paint, full, joins: true })
  let printed = 0
  const folds = !full && choice.type === undefined
  let folded: ReadEntry[] = []
  const unfold = () => {
    if (folded.length > 0) output.lines(text.folded(folded))
    folded = []
  }
  const print = (entry: ReadEntry) => {
    printed += 1
    if (folds && isNoise(entry)) {
      folded.push(entry)
      if (folded.length >= FOLDED_MAX) unfold()
      return
    }
    // Results that are shown with their calls interrupt nothing.
    if (!isShownElsewhere(entry)) unfold()
    const lines = text.entry(entry)
    if (lines.length > 0) unfold()
    output.lines(lines)
  }
  const waiting: Array<{ read: ReadEntry; at: string }> = []
  let at = ''
  for await (const item of items) {
    const read = reader.read(item)
    at = item.occurred_at ?? at
    // A stream is printed whole where it began, however many entries it has.
    const is_told = read.blocks.every((block) => block.kind === 'streamed' && block.is_repeat)
    if (!is_told || read.blocks.length === 0)
      waiting.splice(waiting.findLastIndex((earlier) => earlier.at <= at) + 1, 0, { read, at })
    if (waiting.length <= AHEAD_MAX) continue
    print(waiting.shift()!.read)
    await output.taking()
  }
  for (const { read } of waiting) print(read)
  unfold()
  if (printed === 0) tell('No entry matches.')
}

/**
 * Prints the tool calls of a session with their results, or only the requested one; returns how many, and of how
 * many.
 */
export async function printCalls(
  annals: Annals,
  session_id: string,
  { tool, failed = false, full }: TimelineChoice,
  output: Output,
): Promise<{ shown: number; all: number }> {
  const reader = new SessionReader()
  const calls: ToolCall[] = []
  for await (const item of annals.sessions.timeline(session_id, { limit: PAGE_MAX })) {
    for (const block of reader.read(item).blocks)
      if (block.kind === 'call' && !block.is_repeat) calls.push(block.call)
  }
  const wanted = calls.filter(
    ({ number, name, result }) =>
      (tool === undefined || tool === number || tool === name) && (!failed || result?.is_failed === true),
  )
  if (output.json) {
    for (const call of wanted) output.value(plainCall(call))
    return { shown: wanted.length, all: calls.length }
  }
  const { width, paint } = output
  const text = new TimelineText({
    width,
    paint,
    full: full ?? typeof tool === 'number',
    joins: true,
  })
  for (const call of wanted) output.lines(text.call(call))
  if (wanted.length === 0 && tool === undefined)
    tell(failed && calls.length > 0 ? 'No tool call failed.' : 'There are no tool calls.')
  return { shown: wanted.length, all: calls.length }
}

/** A call as JSON. Arguments and result are values if they are JSON, otherwise text. */
function plainCall({ number, name, arguments: text, seq, result }: ToolCall): object {
  const answer = result && {
    seq: result.seq,
    is_error: result.is_failed,
    duration_ms: result.duration_ms,
    value: readValue(result.text),
  }
  return { number, name, seq, arguments: readValue(text), result: answer ?? null }
}

function readValue(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return text
  }
}

async function itemsOf(
  annals: Annals,
  session_id: string,
  { fromSeq, last, kind, type }: TimelineChoice,
): Promise<AsyncIterable<TimelineItem> | TimelineItem[]> {
  if (last !== undefined) return lastItems(annals, session_id, last, { kind, type, from_seq: fromSeq })
  const after_seq = fromSeq === undefined ? undefined : fromSeq - 1
  return annals.sessions.timeline(session_id, { kind, type, after_seq, limit: PAGE_MAX })
}

/** The last `count` matching entries, oldest first, since a time or from a seq on. */
export async function lastItems(
  annals: Annals,
  session_id: string,
  count: number,
  query: {
    kind?: 'message' | 'event' | undefined
    type?: string | undefined
    from_seq?: number | undefined
    since?: number | undefined
  },
): Promise<TimelineItem[]> {
  const { kind, type, from_seq = 0, since = Number.NEGATIVE_INFINITY } = query
  const items: TimelineItem[] = []
  const list = annals.sessions.timeline(session_id, {
    kind,
    type,
    time_desc: true,
    limit: Math.min(PAGE_MAX, Number.isFinite(count) ? count : PAGE_MAX),
  })
  for await (const item of list) {
    if (items.length >= count || item.seq < from_seq || Date.parse(item.created_at) < since) break
    items.push(item)
  }
  return items.reverse()
}
