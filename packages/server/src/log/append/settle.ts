import { AnnalsError, mergedTooLarge, notFound } from '../../errors.js'
import { splitText } from '../../postgres/column_aggregates.js'
import type { Database } from '../../postgres/database.js'
import { entriesOf } from '../read/entry_columns.js'
import { VIEW_COLUMNS } from '../read/read_queries.js'
import { appendAnswer, storedAnswer } from './append_answer.js'
import {
  type AppendAnswer,
  type AppendedEntry,
  AppendInDoubt,
  type AppendOutcome,
  type AppendRequest,
  appendsOf,
  fail,
  type PendingAppend,
  type SessionAppend,
  succeed,
} from './append_request.js'
import type { RetractionGroup } from './flush_parameters.js'
import type { Place } from './flush_parts.js'
import type { FlushPlan } from './flush_plan.js'
import { READ_APPENDED_ENTRIES } from './known_append_queries.js'

/** What a flush found for one session: its previous head, and the time of its entries. */
export interface FoundHead {
  last_seq: number
  time: string
  last_message_id: string | null
  disable_task_tracking: boolean
}

/** An entry as the database writes it, and of a retraction, the items that it retracted. */
type RewrittenEntry = Pick<AppendedEntry, 'data' | 'meta'> & Pick<AppendAnswer, 'items'>

/** What a flush found: its sessions in order (undefined for one that does not exist), and the returned entries. */
export interface FlushResult {
  heads: Array<FoundHead | undefined>
  rewritten: ReadonlyMap<AppendedEntry, RewrittenEntry>
  /** The sessions that stored nothing because an atomic request was refused. */
  held_back: ReadonlySet<number>
  /** Those of them whose merged configs would be too large. */
  too_large: ReadonlySet<number>
}

/** Whether all of a flush was stored, apart from what is refused for itself. */
export function isStored({ atomic }: FlushPlan, answer: string): boolean {
  return atomic.size === 0 || answer.endsWith('\n')
}

/** Reads the answer to a plan. */
export function readResult(plan: FlushPlan, answer: string): FlushResult {
  const [last_seqs = '', times = '', now = '', last_messages = '', untracked = '', ...more] =
    answer.split('\n')
  const timeOf = times.split(',')
  const lastMessageOf = last_messages.split(',')
  const untrackedPlaces = new Set(untracked === '' ? [] : untracked.split(',').map(Number))
  const heads = last_seqs.split(',').map((last_seq, index) =>
    last_seq === ''
      ? undefined
      : {
          last_seq: Number(last_seq),
          time: timeOf[index] || now,
          last_message_id: lastMessageOf[index] || null,
          disable_task_tracking: untrackedPlaces.has(index + 1),
        },
  )
  const rewritten = new Map<AppendedEntry, RewrittenEntry>()
  for (const [index, entry] of plan.wanted.entries()) {
    const [data, meta] = more.slice(2 * index, 2 * index + 2)
    rewritten.set(entry, { data: data!, meta: meta || null })
  }
  for (const [index, group] of plan.retractions.entries())
    readRetractions(plan.project_id, group, more[2 * plan.wanted.length + index]!, rewritten)
  const isHeldBack = !isStored(plan, answer)
  return {
    heads,
    rewritten,
    held_back: isHeldBack ? plan.atomic : new Set(),
    too_large: new Set(
      isHeldBack
        ? more
            .at(-1)!
            .split(',')
            .map((place) => Number(place) - 1)
        : [],
    ),
  }
}

/** Reads the line of retractions that were carried out together. */
function readRetractions(
  project_id: string,
  { session_id, entries }: RetractionGroup,
  line: string,
  rewritten: Map<AppendedEntry, RewrittenEntry>,
): void {
  const [lines, row, tracking] = splitText(VIEW_COLUMNS.item, line)
  const log = { project_id, session_id, disable_task_tracking: tracking === 't' }
  const read = row && new Map(entriesOf(row, 'item', log).map(({ seq, json }) => [seq, json]))
  for (const [index, data] of lines.split('\x01').entries()) {
    const items = read && (JSON.parse(data) as { seqs: number[] }).seqs.map((seq) => read.get(seq)!)
    rewritten.set(entries[index]!, { data, meta: null, items })
  }
}

/**
 * Answers one request of a committed flush. Returns a promise only if stored entries must be read back, because some
 * of the caller's ids were known. Returns `look again` instead of refusing a conditional append whose own first
 * attempt may have moved the head: keys and ids were looked up before the head was locked, so an attempt that another
 * node commits meanwhile shows only in the head. `isRepeated`: an earlier attempt of the same flush may have been
 * committed.
 */
export function settle(
  database: Database,
  pending: PendingAppend,
  places: readonly Place[],
  result: FlushResult,
  attempt: { isRepeated: boolean; isSecondLook: boolean },
): Promise<void> | 'look again' | undefined {
  const { request } = pending
  const { heads, rewritten, held_back } = result
  const refusal = firstRefusal(request, places, result)
  if (refusal) {
    const mayBeOurs =
      refusal.error === 'seq_conflict' &&
      (attempt.isRepeated || request.idempotency || request.entries.some((entry) => entry.id_given))
    if (mayBeOurs && !attempt.isSecondLook) return 'look again'
    fail(pending, refusal)
    return
  }
  if (held_back.size > 0 && places.some(({ session }) => held_back.has(session))) return 'look again'
  if (places.some(({ known_seq }) => known_seq > 0)) {
    const seqs = places.map(({ session, behind, known_seq }) =>
      String(known_seq || heads[session]!.last_seq + behind),
    )
    // One whose id this node gave was stored by an earlier attempt of this very request.
    const before = places.filter(({ entry, known_seq }) => known_seq > 0 && entry.id_given)
    const bytes = before.reduce((sum, { entry }) => sum + entry.bytes, 0)
    const known = { entries: before.length, bytes }
    return readBack(database, pending, seqs, { replayed: false, known })
  }
  const entries = places.map((place): AppendAnswer => {
    const head = heads[place.session]!
    const seq = head.last_seq + place.behind
    const { time, disable_task_tracking } = head
    const stored = { seq, time, parent_id: parentOf(place, head), disable_task_tracking }
    const text = rewritten.size > 0 ? rewritten.get(place.entry) : undefined
    if (!text) return { seq, json: appendAnswer(request, place.session_id, place.entry, stored) }
    const { id, kind, type, format, role, key } = place.entry
    const entry = { id, kind, type, format, role, key, data: text.data, meta: text.meta }
    return { seq, json: appendAnswer(request, place.session_id, entry, stored), items: text.items }
  })
  succeed(pending, { entries, replayed: false })
  return
}

function firstRefusal(
  request: AppendRequest,
  places: readonly Place[],
  result: FlushResult,
): AnnalsError | undefined {
  if (!request.appends) return refusalOf(request, places, result, undefined)
  let from = 0
  for (const [index, append] of request.appends.entries()) {
    const own = places.slice(from, from + append.entries.length)
    from += own.length
    const refusal = refusalOf(append, own, result, index)
    if (refusal) return refusal
  }
  return undefined
}

/** Why an append to one session is refused. `index`: its place among those of the request, if there are several. */
function refusalOf(
  { if_match }: SessionAppend,
  places: readonly Place[],
  { heads, too_large }: FlushResult,
  index: number | undefined,
): AnnalsError | undefined {
  const { session } = places[0]!
  const head = heads[session]
  if (head && if_match === undefined && too_large.size === 0) return undefined
  const at = index === undefined ? undefined : `/appends/${index}`
  if (!head) return notFound('session', at && `${at}/session_id`)
  if (too_large.has(session)) return mergedTooLarge(`appends/${index}/configs_patch`)
  const isNew = places.some(({ behind }) => behind > 0)
  if (!isNew || if_match === undefined || if_match === head.last_seq) return undefined
  return conflict(at ? `${at}/if_match` : 'If-Match', if_match, head.last_seq)
}

function parentOf(place: Place, head: FoundHead): string | null {
  return place.is_first_message ? head.last_message_id : place.parent_id
}

/** Answers a request with stored entries, by their seqs. Never throws. */
export async function readBack(
  database: Database,
  pending: PendingAppend,
  seqs: string[],
  outcome: Omit<AppendOutcome, 'entries'>,
): Promise<void> {
  try {
    const { request } = pending
    const entries: AppendAnswer[] = []
    for (const [index, append] of appendsOf(request).entries()) {
      const { session_id } = append
      const own = seqs.slice(entries.length, entries.length + append.entries.length)
      const rows = await database.query(READ_APPENDED_ENTRIES, [request.project_id, session_id, own])
      if (rows.length < own.length) {
        fail(pending, notFound('session', request.appends && `/appends/${index}/session_id`))
        return
      }
      entries.push(...rows.map((row) => storedAnswer(request, session_id, row)))
    }
    succeed(pending, { ...outcome, entries })
  } catch (error) {
    // The entries are stored, and only the answer could not be read, so "nothing was stored" would be wrong.
    fail(pending, new AppendInDoubt('the stored entries could not be read back', { cause: error }))
  }
}

function conflict(condition: string, expected: number, current: number): AnnalsError {
  return new AnnalsError(
    'seq_conflict',
    `${condition} expected seq ${expected}, but the session's last seq is ${current}. Read the new entries and try again.`,
  )
}
