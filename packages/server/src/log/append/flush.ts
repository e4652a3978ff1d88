import { setTimeout as sleep } from 'node:timers/promises'
import { AnnalsError, AppendInDoubt, invalidRequest, mergedTooLarge, notFound } from '@annals/kits/errors.js'
import { splitText } from '@annals/kits/postgres/column_aggregates.js'
import { type Database, DatabaseAway } from '@annals/kits/postgres/database.js'
import {
  isForeignKeyViolation,
  isTransient,
  isUniqueViolation,
  isUnstorable,
} from '@annals/kits/postgres/database_errors.js'
import { entriesOf } from '../read/entry_columns.js'
import { VIEW_COLUMNS } from '../read/read_queries.js'
import { APPEND_ENTRIES } from './append_queries.js'
import {
  type AppendAnswer,
  type AppendedEntry,
  type AppendRequest,
  appendsOf,
  askedSeqs,
  entryJson,
  fail,
  hasGivenIds,
  type PendingAppend,
  type SessionAppend,
  shapeOf,
  succeed,
} from './append_request.js'
import {
  type FlushPlan,
  NONE_KNOWN,
  type Place,
  planFlush,
  type RetractionGroup,
  type Unsettled,
} from './flush_plan.js'
import { failHeldBack } from './held_back.js'
import type { Turn } from './lane.js'
import { lookUp, readBack } from './look_up.js'

const RETRY_PAUSE_MS = 25
const COLLISIONS_MAX = 5

/**
 * Stores a batch and answers every request in it. Never throws. Returns when the database has finished the batch,
 * which may be after the callers were answered: a session's next flush must not overtake one whose outcome is
 * unknown. `onCommitted` is called as soon as the whole batch is durable, before the answers, so that the database
 * need not wait for these to be written. It is not called if the batch had to be stored in parts.
 */
export async function flush(
  database: Database,
  batch: readonly PendingAppend[],
  limits: {
    wait_ms_max: number
    commit_ms_max?: number | undefined
    onTrouble?: OnTrouble | undefined
    onCommitted?: () => void
    turn?: Turn
  },
): Promise<void> {
  const { wait_ms_max, commit_ms_max = wait_ms_max, onTrouble, onCommitted, turn } = limits
  // Time in the queue counts: a caller learns within one wait that the database is unavailable.
  const deadline = batch[0]!.enqueued_at + wait_ms_max
  const told = new Set<string>()
  const state: FlushState = { sent: false, over: false, told, deadline, onTrouble, onCommitted, turn }
  const timer = setTimeout(() => {
    giveUp(batch, state)
    // Callers were told that nothing was stored, so nothing may be stored later.
    state.over = !state.sent
  }, commit_ms_max)
  try {
    await store(database, batch, state)
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Called with what goes wrong in a flush: `away` and `collided` are retried, `split` is stored in halves, and
 * `unavailable` and `in_doubt` are given up. The last two are reported once per flush.
 */
export type OnTrouble = (trouble: 'away' | 'collided' | 'split' | 'unavailable' | 'in_doubt') => void

interface FlushState {
  readonly onTrouble: OnTrouble | undefined
  readonly turn: Turn | undefined
  onCommitted: (() => void) | undefined
  /** A statement of this flush was in flight when its connection broke, or is in flight now. */
  sent: boolean
  /** The callers were told that nothing was stored: nothing may be sent from now on. */
  over: boolean
  /** The outcomes already reported to `onTrouble`. */
  readonly told: Set<string>
  readonly deadline: number
}

/** A flush that was given up before it was sent. */
class TooLate extends Error {}
/** A plan that waited so long for a connection that it may no longer be sent. */
class Outdated extends Error {}

async function store(
  database: Database,
  batch: readonly PendingAppend[],
  state: FlushState,
  isSecondLook = false,
): Promise<void> {
  let rest = batch
  for (let collisions = 0; rest.length > 0; ) {
    const isRepeated = state.sent
    let lookAgain: PendingAppend[]
    try {
      const unsettled =
        (isRepeated || collisions > 0 ? undefined : withoutLookUp(rest)) ??
        (await lookUp(database, rest, isRepeated))
      if (unsettled.length < rest.length) rest = unsettled.map(({ pending }) => pending)
      if (rest.length === 0) return
      lookAgain = await append(database, unsettled, state, { isRepeated, isSecondLook })
    } catch (error) {
      if (error instanceof TooLate) return
      if (error instanceof Outdated) continue
      if (error instanceof DatabaseAway) {
        state.sent = isRepeated || error.in_doubt
        state.onTrouble?.('away')
        const mayRepeat = state.turn?.foundAway() ?? true
        if (!mayRepeat || performance.now() + RETRY_PAUSE_MS >= state.deadline)
          return giveUp(rest, state, error)
        await sleep(RETRY_PAUSE_MS)
        continue
      }
      // The statement itself failed, and PostgreSQL rolled it back. The outcome of an earlier attempt is still open.
      state.sent = isRepeated
      if ((isUniqueViolation(error) || isTransient(error)) && ++collisions < COLLISIONS_MAX) {
        state.onTrouble?.('collided')
        continue
      }
      return storeApart(database, rest, state, error)
    }
    // The rest only needs a yes or no, where a second no is final, or shared a statement with a refused request.
    if (lookAgain.length > 0) {
      state.onCommitted = undefined
      // Of these, that attempt surely stored nothing.
      state.sent = isRepeated
      await store(database, lookAgain, state, true)
    }
    return
  }
}

/** A batch without keys, and without callers' ids that were not looked up just now, as most are: nothing of it is stored. */
function withoutLookUp(batch: readonly PendingAppend[]): Unsettled[] | undefined {
  const unsettled: Unsettled[] = []
  for (const pending of batch) {
    const { request } = pending
    const isLookedUp = request.looked_up && !request.only_known
    if (request.idempotency || (!isLookedUp && hasGivenIds(request))) return undefined
    unsettled.push({ pending, request, known: NONE_KNOWN })
  }
  return unsettled
}

/** Stores the unsettled requests in one statement and answers them. Returns those that must be checked again. */
async function append(
  database: Database,
  unsettled: readonly Unsettled[],
  state: FlushState,
  attempt: { isRepeated: boolean; isSecondLook: boolean },
): Promise<PendingAppend[]> {
  const { isSecondLook } = attempt
  const plan = planFlush(unsettled[0]!.pending.request.project_id, unsettled, isSecondLook)
  const rows = await database.query(APPEND_ENTRIES.statement, plan.parameters, () => {
    if (state.over) throw new TooLate()
    if (performance.now() > plan.valid_until) throw new Outdated()
    state.sent = true
  })
  const answer = rows[0]!.answer!
  // Those that are stored after all must not be overtaken.
  if (isStored(plan, answer)) state.onCommitted?.()
  readAnswer(plan, answer)
  const readBacks: Promise<void>[] = []
  const lookAgain: PendingAppend[] = []
  const tried = { ...attempt, isPlain: plan.is_plain }
  for (const [at, { pending }] of unsettled.entries()) {
    const settled = settle(database, pending, plan.placed[at]!, tried)
    if (settled === 'look again') lookAgain.push(pending)
    else if (settled) readBacks.push(settled)
  }
  if (readBacks.length > 0) await Promise.all(readBacks)
  return lookAgain
}

/** One request made the statement fail for all. The batch is halved until that request fails alone. */
async function storeApart(
  database: Database,
  batch: readonly PendingAppend[],
  state: FlushState,
  error: unknown,
): Promise<void> {
  state.onCommitted = undefined
  if (batch.length > 1) {
    state.onTrouble?.('split')
    const middle = batch.length >> 1
    const { sent } = state
    await store(database, batch.slice(0, middle), state)
    state.sent = sent
    await store(database, batch.slice(middle), state)
    return
  }
  const reason = isForeignKeyViolation(error)
    ? new AnnalsError(
        'blob_missing',
        'A blob that this entry refers to was just deleted. Send its bytes again, then retry.',
        { cause: error },
      )
    : isUnstorable(error)
      ? invalidRequest(`The database cannot hold a value in the body: ${(error as Error).message}.`, {
          cause: error,
        })
      : error
  for (const pending of batch) fail(pending, reason)
}

function giveUp(batch: readonly PendingAppend[], state: FlushState, cause?: DatabaseAway): void {
  const end = state.sent ? 'in_doubt' : 'unavailable'
  if (!state.told.has(end)) state.onTrouble?.(end)
  state.told.add(end)
  const reason = state.sent
    ? new AppendInDoubt('the database did not answer before the deadline', { cause })
    : new AnnalsError('unavailable', cause?.message, { cause })
  for (const pending of batch) fail(pending, reason)
}

export function isStored({ atomic }: FlushPlan, answer: string): boolean {
  return atomic.size === 0 || answer.endsWith('\n')
}

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
  const inputs = more[2 * plan.wanted.length + plan.retractions.length]
  if (plan.is_applying) readInputs(plan, JSON.parse(inputs!))
  if (isStored(plan, answer)) return
  for (const part of plan.atomic) part.is_held_back = true
  const [, ...too_large] = more.at(-1)!.split(',')
  for (const index of too_large) plan.parts[Number(index) - 1]!.is_too_large = true
}

/** What inputs are, and which messages come before those that are applied with them. */
function readInputs(
  { wanted }: FlushPlan,
  rows: ReadonlyArray<AppendedEntry & Pick<Place, 'parent_id'>>,
): void {
  for (const [at, place] of wanted.entries()) {
    if (!place.part.apply) continue
    const { parent_id, ...entry } = rows[at]!
    Object.assign(place.entry, entry)
    Object.assign(place, { parent_id, is_first_message: false })
  }
}

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
    if (!request.unanswered) entries.push(answerOf(request, place))
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

function readKnown(database: Database, pending: PendingAppend, places: readonly Place[]): Promise<void> {
  const known = { entries: 0, bytes: 0 }
  const seqs: string[] = []
  for (const { entry, part, behind, known_seq } of places) {
    seqs.push(String(known_seq || part.head!.last_seq + behind))
    // An entry with an id of this node's was stored by an earlier attempt of this very request.
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
