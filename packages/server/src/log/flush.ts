import { setTimeout as sleep } from 'node:timers/promises'
import { type Database, DatabaseAway, type Parameter, type Row } from '../database/database.js'
import { isTransient, isUniqueViolation, isUnstorable } from '../database/database_errors.js'
import { APPEND_ENTRIES } from '../database/queries/append_entries.js'
import { AnnalsError } from '../errors.js'
import { AppendInDoubt, type AppendRequest } from './append_request.js'
import type { PendingAppend } from './pending_append.js'
import { settle } from './settle.js'

const RETRY_PAUSE_MS = 25
const COLLISIONS_MAX = 5

/**
 * Stores a batch and answers every request in it. Never throws. Returns when the database is done with the
 * batch, which may be later than the callers' answers: a project's next flush must not overtake one whose end
 * is unknown.
 */
export async function flush(
  database: Database,
  batch: PendingAppend[],
  limits: { wait_ms_max: number; commit_ms_max?: number },
): Promise<void> {
  const { wait_ms_max, commit_ms_max = wait_ms_max } = limits
  // What a request has waited in the queue counts: it is told within one wait that the database is away.
  const waitingSince = Math.min(...batch.map(({ enqueued_at }) => enqueued_at))
  const state: FlushState = { sent: false, deadline: waitingSince + wait_ms_max }
  const timer = setTimeout(() => giveUp(batch, state), commit_ms_max)
  try {
    await store(database, batch, state)
  } finally {
    clearTimeout(timer)
  }
}

interface FlushState {
  /** A statement of this flush was under way when its connection broke, or is under way now. */
  sent: boolean
  readonly deadline: number
}

async function store(
  database: Database,
  batch: PendingAppend[],
  state: FlushState,
  isSecondLook = false,
): Promise<void> {
  for (let collisions = 0; ; ) {
    const repeated = state.sent
    let rows: Row[]
    try {
      rows = await database.query(APPEND_ENTRIES, parametersOf(batch, repeated), () => {
        state.sent = true
      })
    } catch (error) {
      if (error instanceof DatabaseAway) {
        state.sent = repeated || error.in_doubt
        if (performance.now() + RETRY_PAUSE_MS >= state.deadline) return giveUp(batch, state, error)
        await sleep(RETRY_PAUSE_MS)
        continue
      }
      // An error of the statement itself: PostgreSQL rolled it back. What an earlier attempt did stays open.
      state.sent = repeated
      if ((isUniqueViolation(error) || isTransient(error)) && ++collisions < COLLISIONS_MAX) continue
      return storeApart(database, batch, state, error)
    }
    const attempt = { isRepeated: repeated, isSecondLook }
    const lookAgain = await answer(database, batch, rows, attempt)
    // All that remains is to say yes or no to these; a second no is final.
    if (lookAgain.length > 0) await store(database, lookAgain, state, true)
    return
  }
}

/** One request spoilt the statement for all: halves are tried, until it stands alone and fails alone. */
async function storeApart(
  database: Database,
  batch: PendingAppend[],
  state: FlushState,
  error: unknown,
): Promise<void> {
  if (batch.length > 1) {
    const middle = batch.length >> 1
    const { sent } = state
    await store(database, batch.slice(0, middle), state)
    state.sent = sent
    await store(database, batch.slice(middle), state)
    return
  }
  const reason = isUnstorable(error)
    ? new AnnalsError(
        'invalid_request',
        `The database cannot hold a value in the body: ${(error as Error).message}.`,
        { cause: error },
      )
    : error
  rejectAll(batch, reason)
}

function giveUp(batch: PendingAppend[], state: FlushState, cause?: unknown): void {
  const reason = state.sent
    ? new AppendInDoubt('the database did not answer before the deadline', { cause })
    : new AnnalsError(
        'unavailable',
        'The database cannot be reached at the moment. Nothing was stored; try again shortly.',
        { cause },
      )
  rejectAll(batch, reason)
}

function rejectAll(batch: PendingAppend[], reason: unknown): void {
  for (const pending of batch) {
    pending.reject(reason)
    for (const follower of pending.followers) follower.reject(reason)
  }
}

/** Rows come in the order of the requests; each request has at least one. Gives those to be looked at again. */
async function answer(
  database: Database,
  batch: PendingAppend[],
  rows: Row[],
  attempt: { isRepeated: boolean; isSecondLook: boolean },
): Promise<PendingAppend[]> {
  const readBacks: Promise<void>[] = []
  const lookAgain: PendingAppend[] = []
  let from = 0
  for (const [index, pending] of batch.entries()) {
    const ord = String(index + 1)
    let to = from
    while (to < rows.length && rows[to]!.ord === ord) to++
    const settled = settle(database, pending, rows.slice(from, to), attempt)
    if (settled === 'look again') lookAgain.push(pending)
    else if (settled) readBacks.push(settled)
    from = to
  }
  if (readBacks.length > 0) await Promise.all(readBacks)
  return lookAgain
}

function parametersOf(batch: PendingAppend[], repeated: boolean): Parameter[] {
  const requests = batch.map((pending) => pending.request)
  const ords: number[] = []
  const positions: number[] = []
  requests.forEach((request, index) => {
    request.entries.forEach((_, position) => {
      ords.push(index + 1)
      positions.push(position + 1)
    })
  })
  const entries = requests.flatMap((request) => request.entries)
  // After an attempt whose end is unknown, every entry is looked up by its id first: it may be there.
  const lookedUp = repeated ? entries : entries.filter((entry) => entry.id_given)
  return [
    requests[0]!.project_id,
    requests.map((request) => request.session_id),
    requests.map((request) => request.kind),
    requests.map((request) => request.if_match ?? null),
    requests.map((request) => request.idempotency?.key ?? null),
    requests.map((request) => request.idempotency?.request_hash ?? null),
    `[${requests.map((request: AppendRequest) => request.body).join(',')}]`,
    ords,
    positions,
    entries.map((entry) => entry.id),
    entries.map((entry) => entry.bytes),
    entries.map((entry) => entry.tokens),
    entries.map((entry) => entry.role),
    lookedUp.map((entry) => entry.id),
  ]
}
