import { addCounts, ROWS_AT_ONCE_MAX } from '@annals/kits/lifecycle/erase/erasure.js'
import type { Counts, Dependents, ErasedStep, EraseOptions } from '@annals/kits/lifecycle/table.js'
import { within } from '@annals/kits/lists/tenant_resource.js'
import type { Database, Queryable, Tenant } from '@annals/kits/postgres/database.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import { END_COPIES } from '../../log/unfinished_copy_queries.js'
import {
  ERASE_REMAINS,
  ERASE_SESSIONS,
  FIND_BELOW_ERASED,
  FIND_PROJECTS_WITH_REMAINS,
  FIND_REMAINS,
} from './erasure_queries.js'

const SESSIONS_AT_ONCE_MAX = 100

/*
 * Deletes sessions with their logs: the one place where a session is deleted. Each is there or gone as a whole for
 * everybody, in short transactions of a bounded number of rows, so that appends to other sessions wait for none
 * and those to these wait briefly and are then refused. A session's children go after it, as part of its remains:
 * while its head is locked none can be added, and without its head none either.
 */

/** One transaction of deleting sessions; the caller continues with the rest after its commit. */
export async function eraseSomeSessions(
  tenant: Tenant,
  ids: string[],
  dependents: Dependents,
  { untouched_since, only_expired = false }: EraseOptions,
): Promise<ErasedStep> {
  const { database, project_id } = tenant
  const condition = [untouched_since ?? null, only_expired]
  const locked = await database.query(ERASE_SESSIONS.lock, [project_id, ids, ...condition])
  const parents = await findParents(
    tenant,
    locked.map((row) => row.id!),
  )
  const heads = locked
    .map((row) => ({ id: row.id!, last_seq: Number(row.last_seq) }))
    // Pruning never deletes a session that has children.
    .filter(({ id }) => untouched_since === undefined || !parents.has(id))
  const long = heads.filter(({ last_seq }) => last_seq > ROWS_AT_ONCE_MAX)
  const short: typeof heads = []
  const left: string[] = []
  let rows = 0
  for (const head of heads.filter(({ last_seq }) => last_seq <= ROWS_AT_ONCE_MAX)) {
    if (rows + head.last_seq > ROWS_AT_ONCE_MAX) {
      left.push(head.id)
      continue
    }
    short.push(head)
    rows += head.last_seq
  }
  const whole = short.map(({ id }) => id)
  const gone = [...whole, ...long.map(({ id }) => id)]
  const remaining = [...long]
  const copies: string[] = []
  const counts: Counts = {}
  if (gone.length > 0) {
    await database.query(ERASE_SESSIONS.heads, [project_id, gone])
    await database.query(ERASE_SESSIONS.marks, [project_id, gone])
    await database.query(ERASE_SESSIONS.activity, [project_id, gone])
    await database.query(ERASE_SESSIONS.entries, [project_id, whole])
    const others = await dependents.eraseSome(tenant, whole)
    addCounts(counts, others.counts)
    const forks = await database.query(ERASE_SESSIONS.forks, [project_id, gone, ROWS_AT_ONCE_MAX])
    const hasMore = !others.has_all || forks.length === ROWS_AT_ONCE_MAX
    await database.query(ERASE_SESSIONS.terms, [project_id, gone])
    await database.query(ERASE_SESSIONS.sessions, [project_id, gone])
    // Those whose children have not all gone with them.
    const above = parents.size === 0 ? parents : await findParents(tenant, gone)
    remaining.push(
      ...short.filter(({ id }) => hasMore || above.has(id)).map(({ id }) => ({ id, last_seq: 0 })),
    )
    if (remaining.length > 0) {
      const last_seqs = remaining.map(({ last_seq }) => last_seq)
      await database.query(ERASE_SESSIONS.remains, [project_id, remaining.map(({ id }) => id), last_seqs])
    }
    // Deleted data must not survive in a copy that is being made of it.
    const ended = await call(database, END_COPIES.of_sources, project_id, gone)
    copies.push(...(ended?.split(',') ?? []))
  }
  const entries = [...short, ...long].reduce((sum, { last_seq }) => sum + last_seq, 0)
  addCounts(counts, { sessions: gone.length, entries })
  // Their children may be among those that have just gone.
  if (untouched_since !== undefined && gone.length > 0) left.push(...parents)
  return { counts, remains: [...remaining.map(({ id }) => id), ...copies], left }
}

async function findParents({ database, project_id }: Tenant, ids: string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const rows = await database.query(ERASE_SESSIONS.parents, [project_id, ids])
  return new Set(rows.map((row) => row.id!))
}

/**
 * Deletes the entries of a session that is gone, the sessions below it in the same way, and what else belongs to it. Any
 * number of processes may do it at once. Returns what it counted, entries aside, which were counted with their session.
 */
export async function eraseRemains(
  tenant: Tenant<Database>,
  session_id: string,
  dependents: Dependents,
  onSlice: () => void = () => {},
): Promise<Counts> {
  const counts: Counts = {}
  // A session stands below what remains of those below it, which is pushed until there is nothing.
  for (const stack = [session_id]; stack.length > 0; onSlice()) {
    const id = stack.at(-1)!
    const step = await within(tenant, (inside) => eraseSomeRemains(inside, id, dependents))
    addCounts(counts, step.counts)
    if (step.left.length === 0) stack.pop()
    stack.push(...step.remains)
  }
  return counts
}

/**
 * One transaction's part of that. It locks the remains first, and looks whether they are still there: once another run
 * has deleted the last of them, a new session may have the id, and what belongs to that one stays.
 */
async function eraseSomeRemains(tenant: Tenant, id: string, dependents: Dependents): Promise<ErasedStep> {
  const { database, project_id } = tenant
  const [row] = await database.query(ERASE_REMAINS.entries, [project_id, id, ROWS_AT_ONCE_MAX])
  const last_seq = row!.answer
  // Another run deleted the rest, or it is a copy in progress.
  if (last_seq === null) return { counts: {}, remains: [], left: [] }
  if (last_seq !== '0') return { counts: {}, remains: [], left: [id] }
  const below = await database.query(FIND_BELOW_ERASED, [project_id, id, SESSIONS_AT_ONCE_MAX])
  if (below.length > 0) {
    const ids = below.map((row) => row.id!)
    return { ...(await eraseSomeSessions(tenant, ids, dependents, {})), left: [id] }
  }
  const { counts, has_all } = await dependents.eraseSome(tenant, [id])
  const forks = await database.query(ERASE_SESSIONS.forks, [project_id, [id], ROWS_AT_ONCE_MAX])
  if (!has_all || forks.length === ROWS_AT_ONCE_MAX) return { counts, remains: [], left: [id] }
  await database.query(ERASE_REMAINS.done, [project_id, id])
  return { counts, remains: [], left: [] }
}

/** Deletes what killed or stopped processes left of a project's deleted sessions. */
export async function eraseAllRemains(
  tenant: Tenant<Database>,
  dependents: Dependents,
  signal?: AbortSignal,
): Promise<void> {
  const { database, project_id } = tenant
  for (let found = SESSIONS_AT_ONCE_MAX; found === SESSIONS_AT_ONCE_MAX; ) {
    const remains = await database.query(FIND_REMAINS, [project_id, SESSIONS_AT_ONCE_MAX])
    for (const { id } of remains) await eraseRemains(tenant, id!, dependents, () => signal?.throwIfAborted())
    found = remains.length
  }
}

export async function findProjectsWithRemains(database: Queryable): Promise<string[]> {
  return (await database.query(FIND_PROJECTS_WITH_REMAINS, [])).map((row) => row.id!)
}
