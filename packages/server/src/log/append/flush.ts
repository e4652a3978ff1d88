import { setTimeout as sleep } from 'node:timers/promises'
import { AnnalsError, AppendInDoubt, invalidRequest } from '../../errors.js'
import { type Database, DatabaseAway } from '../../postgres/database.js'
import {
  isForeignKeyViolation,
  isTransient,
  isUniqueViolation,
  isUnstorable,
} from '../../postgres/database_errors.js'
import { APPEND_ENTRIES } from './append_queries.js'
import { fail, hasGivenIds, type PendingAppend } from './append_request.js'
import { NONE_KNOWN, type Unsettled } from './flush_parts.js'
import { planFlush } from './flush_plan.js'
import type { Turn } from './lane.js'
import { lookUp } from './look_up.js'
import { isStored, readAnswer, settle } from './settle.js'

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
        (isRepeated ? undefined : withoutLookUp(rest)) ?? (await lookUp(database, rest, isRepeated))
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
    // What remains only needs a yes or no, where a second no is final, or shared a statement with what was refused.
    if (lookAgain.length > 0) {
      state.onCommitted = undefined
      await store(database, lookAgain, state, true)
    }
    return
  }
}

/** A batch without keys and callers' ids, as most are: nothing of it can be stored already. */
function withoutLookUp(batch: readonly PendingAppend[]): Unsettled[] | undefined {
  const unsettled: Unsettled[] = []
  for (const pending of batch) {
    const { request } = pending
    if (request.idempotency || hasGivenIds(request)) return undefined
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
  for (const [at, { pending }] of unsettled.entries()) {
    const settled = settle(database, pending, plan.placed[at]!, { ...attempt, isPlain: plan.is_plain })
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
        'A blob that this refers to was deleted at this moment. Send its bytes again, then retry.',
        { cause: error },
      )
    : isUnstorable(error)
      ? invalidRequest(`The database cannot hold a value in the body: ${(error as Error).message}.`, {
          cause: error,
        })
      : error
  for (const pending of batch) fail(pending, reason)
}

function giveUp(batch: readonly PendingAppend[], state: FlushState, cause?: unknown): void {
  const end = state.sent ? 'in_doubt' : 'unavailable'
  if (!state.told.has(end)) state.onTrouble?.(end)
  state.told.add(end)
  const reason = state.sent
    ? new AppendInDoubt('the database did not answer before the deadline', { cause })
    : new AnnalsError('unavailable', undefined, { cause })
  for (const pending of batch) fail(pending, reason)
}
