import { type Background, each, Loop } from '@annals/kits/lifecycle/background.js'
import type { Erasure } from '@annals/kits/lifecycle/erase/erasure.js'
import type { Counts } from '@annals/kits/lifecycle/table.js'
import { IDEMPOTENCY_KEPT_HOURS } from '@annals/kits/limits.js'
import type { Database } from '@annals/kits/postgres/database.js'
import { FORGET_IDEMPOTENCY_KEYS } from '../../log/append/append_queries.js'
import { FIND_PROJECTS_WITH_RETENTION, LIST_PROJECTS } from '../../projects/project_queries.js'
import { FIND_DUE, MOVE_DUE } from '../expiry_queries.js'
import { findProjectsWithRemains } from './erase_sessions.js'
import type { PrunePosition } from './prune.js'
import { prune, timeBefore } from './prune.js'

const SECONDS_A_DAY = 86_400
/** Most sessions of a project that one round reads: the rest waits for the next one. */
const LOOKED_AT_A_ROUND_MAX = 20_000
/** Sessions with an expiry of their own are gone within a minute after it. */
const EXPIRY_MS = 30_000
/** Between two searches for expired idempotency keys in all projects. */
const KEYS_MS = 60 * 60 * 1_000

/** Further deletions of each round. */
export type Sweep = (database: Database, signal: AbortSignal) => Promise<void>

/**
 * Periodically deletes sessions that have expired, by their project's retention or by their own `expires_in_s`, what
 * killed processes left of deleted sessions, and old idempotency keys. Every node does it, at its own pace; doing it
 * twice is harmless. A round is bounded; the next one continues where it stopped, and starts over after the last
 * session. If there is nothing to do, it costs two short statements, and one more every half minute.
 */
export function applyRetention(
  background: Background,
  erasure: Erasure,
  every_ms: number,
  sweeps: readonly Sweep[],
): { ended(): Promise<unknown> } {
  const { database, signal, logger } = background
  const positions = new Map<string, PrunePosition>()
  const onErased = (project_id: string, { sessions = 0, entries = 0 }: Counts) => {
    if (sessions > 0) logger.info({ project_id, sessions, entries }, 'deleted expired sessions')
  }
  const round: readonly Sweep[] = [
    () => eraseRemains(database, erasure, signal),
    () => pruneProjects(database, erasure, positions, signal, onErased),
    ...sweeps,
  ]
  const repeated = (poll: () => Promise<void>, poll_ms: number, what: string) =>
    new Loop({ signal, logger, failure: `${what} could not be deleted; will retry`, poll, poll_ms })
  const loops = [
    repeated(() => each(round, signal, (sweep) => sweep(database, signal)), every_ms, 'expired sessions'),
    repeated(
      () => eraseExpired(database, erasure, signal, onErased),
      Math.min(every_ms, EXPIRY_MS),
      'expired sessions',
    ),
    repeated(() => forgetOldKeys(database, signal), KEYS_MS, 'old idempotency keys'),
  ]
  return { ended: () => Promise.all(loops.map((loop) => loop.ended())) }
}

type OnErased = (project_id: string, erased: Counts) => void

async function eraseRemains(database: Database, erasure: Erasure, signal: AbortSignal): Promise<void> {
  await each(await findProjectsWithRemains(database), signal, (project_id) =>
    erasure.eraseAllRemains({ database, project_id }, signal),
  )
}

async function pruneProjects(
  database: Database,
  erasure: Erasure,
  positions: Map<string, PrunePosition>,
  signal: AbortSignal,
  onErased: OnErased,
): Promise<void> {
  await each(await database.query(FIND_PROJECTS_WITH_RETENTION, []), signal, async (row) => {
    const project_id = row.id!
    const untouched_since = await timeBefore(database, Number(row.retention_days) * SECONDS_A_DAY)
    const { stopped_at, sessions, entries } = await prune(
      database,
      erasure,
      { project_id, untouched_since },
      { after: positions.get(project_id), looked_at_max: LOOKED_AT_A_ROUND_MAX, signal },
    )
    if (stopped_at) positions.set(project_id, stopped_at)
    else positions.delete(project_id)
    onErased(project_id, { sessions, entries })
  })
}

const DUE_AT_ONCE_MAX = 500
/** The rest waits for the next round. */
const LOOKS_A_ROUND_MAX = 200

/**
 * Deletes the sessions whose `expires_in_s` has passed since they were last touched, with those below them. That they have
 * expired is looked at again under the lock. If none is due, it costs one look at an index.
 */
async function eraseExpired(
  database: Database,
  erasure: Erasure,
  signal: AbortSignal,
  onErased: OnErased,
): Promise<void> {
  for (let look = 0; look < LOOKS_A_ROUND_MAX; look++) {
    const due = await database.query(FIND_DUE, [DUE_AT_ONCE_MAX])
    await each(new Set(due.map((row) => row.project_id!)), signal, async (project_id) => {
      const ids = due.filter((row) => row.project_id === project_id).map((row) => row.id!)
      const onStep = () => signal.throwIfAborted()
      const options = { only_expired: true, onStep, onSlice: onStep }
      onErased(project_id, await erasure.erase({ database, project_id }, 'session', ids, options))
      await database.query(MOVE_DUE, [project_id, ids])
    })
    if (due.length < DUE_AT_ONCE_MAX) return
  }
}

const KEYS_AT_ONCE_MAX = 1_000

/** Deletes expired idempotency keys, one project and one bounded batch at a time, so that locks are short. */
async function forgetOldKeys(database: Database, signal: AbortSignal): Promise<void> {
  await each(await database.query(LIST_PROJECTS, []), signal, async ({ id }) => {
    for (let forgotten = KEYS_AT_ONCE_MAX; forgotten === KEYS_AT_ONCE_MAX; ) {
      signal.throwIfAborted()
      const old = [id!, IDEMPOTENCY_KEPT_HOURS, KEYS_AT_ONCE_MAX]
      forgotten = (await database.query(FORGET_IDEMPOTENCY_KEYS, old)).length
    }
  })
}
