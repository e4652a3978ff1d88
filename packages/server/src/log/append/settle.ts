import { AnnalsError, mergedTooLarge, notFound } from '../../errors.js'
import { splitText } from '../../postgres/column_aggregates.js'
import type { Database } from '../../postgres/database.js'
import { entryJson } from '../entry_json.js'
import { entriesOf } from '../read/entry_columns.js'
import { VIEW_COLUMNS } from '../read/read_queries.js'
import {
  type AppendAnswer,
  type AppendRequest,
  appendsOf,
  askedSeqs,
  fail,
  hasGivenIds,
  type PendingAppend,
  type SessionAppend,
  shapeOf,
  succeed,
} from './append_request.js'
import type { FlushPlan, Place, RetractionGroup } from './flush_parts.js'
import { failHeldBack } from './held_back.js'
import { readBack } from './read_back.js'

/** Whether all of a flush was stored, apart from what is refused for itself. */
export function isStored({ atomic }: FlushPlan, answer: string): boolean {
  return atomic.size === 0 || answer.endsWith('\n')
}

/** Reads the answer to a plan into it. */
export function readAnswer(plan: FlushPlan, answer: string): void {
  const [last_seqs = '', times = '', now = '', last_messages = '', untracked = '', ...more] =
    answer.split('\n')
  const lastSeqOf = last_seqs.split(',')
  const timeOf = times.split(',')
  const lastMessageOf = last_messages.split(',')
  const untrackedIndexes = untracked === '' ? undefined : new Set(untracked.split(',').map(Number))
  for (const [at, part] of plan.parts.entries()) {
    if (!lastSeqOf[at]) continue
    const last_seq = Number(lastSeqOf[at])
    const is_revised = last_seq < 0
    part.head = {
      last_seq: is_revised ? -1 - last_seq : last_seq,
      is_revised,
      time: timeOf[at] || now,
      last_message_id: lastMessageOf[at] || null,
      disable_task_tracking: untrackedIndexes?.has(part.index) ?? false,
    }
  }
  for (const [at, place] of plan.wanted.entries())
    place.written = { data: more[2 * at]!, meta: more[2 * at + 1] || null }
  for (const [at, group] of plan.retractions.entries())
    readRetractions(plan.project_id, group, more[2 * plan.wanted.length + at]!)
  if (isStored(plan, answer)) return
  for (const part of plan.atomic) part.is_held_back = true
  const [, ...too_large] = more.at(-1)!.split(',')
  for (const index of too_large) plan.parts[Number(index) - 1]!.is_too_large = true
}

/** Reads the line of retractions that were carried out together. */
function readRetractions(project_id: string, { part, places }: RetractionGroup, line: string): void {
  const [lines, row, tracking] = splitText(VIEW_COLUMNS.item, line)
  const log = { project_id, session_id: part.session_id, disable_task_tracking: tracking === 't' }
  const read = row && new Map(entriesOf(row, 'item', log).map(({ seq, json }) => [seq, json]))
  for (const [index, data] of lines.split('\x01').entries()) {
    const items = read && askedSeqs(JSON.parse(data)).map((seq) => read.get(seq)!)
    places[index]!.written = { data, meta: null, items }
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
  attempt: { isRepeated: boolean; isSecondLook: boolean; isPlain: boolean },
): Promise<void> | 'look again' | undefined {
  const { request } = pending
  const refusal = request.appends
    ? firstRefusal(request.appends, places)
    : refusalOf(request, places, undefined)
  if (refusal) {
    const isHeldBack = refusal.error === 'session_not_found'
    // Where the head stands is not known to a plain flush: it may have a chain.
    if (isHeldBack && attempt.isPlain) return 'look again'
    const mayBeOurs =
      (refusal.error === 'seq_conflict' || (isHeldBack && hasFence(request))) &&
      (attempt.isRepeated || request.idempotency || hasGivenIds(request))
    if (mayBeOurs && !attempt.isSecondLook) return 'look again'
    if (isHeldBack) return failHeldBack(database, pending)
    fail(pending, refusal)
    return
  }
  const entries: AppendAnswer[] = []
  for (const place of places) {
    if (place.part.is_held_back) return 'look again'
    if (place.known_seq > 0) return readKnown(database, pending, places)
    entries.push(answerOf(request, place))
  }
  succeed(pending, { entries, replayed: false })
  return
}

/**
 * The answer to an entry: for a single one the resource itself (a message without its parts, which its route adds), in a
 * batch an item of the timeline. It is written from what was sent, so that the database need not return it.
 */
function answerOf(request: AppendRequest, place: Place): AppendAnswer {
  const { entry, part, written } = place
  const { last_seq, time, last_message_id, disable_task_tracking } = part.head!
  const { id, kind, type, format, role, key, occurred_at } = entry
  const { data, meta } = written ?? entry
  const seq = last_seq + place.behind
  const parent_id = place.is_first_message ? last_message_id : place.parent_id
  const json = entryJson(
    shapeOf(request, type),
    { project_id: request.project_id, session_id: part.session_id, disable_task_tracking },
    {
      seq,
      id,
      kind,
      type,
      format,
      role,
      key,
      occurred_at,
      data,
      meta,
      parent_id,
      created_at: time,
      updated_at: time,
    },
  )
  return { seq, json, items: written?.items }
}

/** Answers a request of which a part was stored before. */
function readKnown(database: Database, pending: PendingAppend, places: readonly Place[]): Promise<void> {
  const known = { entries: 0, bytes: 0 }
  const seqs: string[] = []
  for (const { entry, part, behind, known_seq } of places) {
    seqs.push(String(known_seq || part.head!.last_seq + behind))
    // One whose id this node gave was stored by an earlier attempt of this very request.
    if (known_seq === 0 || !entry.id_given) continue
    known.entries += 1
    known.bytes += entry.bytes
  }
  return readBack(database, pending, seqs, { replayed: false, known })
}

function hasFence(request: AppendRequest): boolean {
  for (const { fence, apply } of appendsOf(request)) if (fence !== undefined || apply) return true
  return false
}

function firstRefusal(appends: readonly SessionAppend[], places: readonly Place[]): AnnalsError | undefined {
  let from = 0
  for (const [index, append] of appends.entries()) {
    const own = places.slice(from, from + append.entries.length)
    from += own.length
    const refusal = refusalOf(append, own, index)
    if (refusal) return refusal
  }
  return undefined
}

/** Why an append to one session is refused. `index`: its place among those of the request, if there are several. */
function refusalOf(
  { if_match }: SessionAppend,
  places: readonly Place[],
  index: number | undefined,
): AnnalsError | undefined {
  const { head, is_too_large } = places[0]!.part
  if (head && if_match === undefined && !is_too_large && !head.is_revised) return undefined
  const at = index === undefined ? undefined : `/appends/${index}`
  if (!head) return notFound('session', at && `${at}/session_id`)
  if (is_too_large) return mergedTooLarge(`appends/${index}/configs_patch`)
  if (head.is_revised) return new AnnalsError('seq_conflict', REVISED)
  const isNew = places.some(({ behind }) => behind > 0)
  if (!isNew || if_match === undefined || if_match === head.last_seq) return undefined
  return conflict(at ? `${at}/if_match` : 'If-Match', if_match, head.last_seq)
}

const REVISED =
  'Entries of the session were retracted or compacted at the same time, again and again. Nothing was stored; try again.'

function conflict(condition: string, expected: number, current: number): AnnalsError {
  return new AnnalsError(
    'seq_conflict',
    `${condition} expected seq ${expected}, but the session's last seq is ${current}. Read the new entries and try again.`,
  )
}
