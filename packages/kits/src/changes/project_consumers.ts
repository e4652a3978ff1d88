import { AnnalsError } from '../errors.js'
import { within } from '../lists/tenant_resource.js'
import type { Database, Queryable, Tenant } from '../postgres/database.js'
import type { Statement } from '../postgres/statement.js'
import { call } from '../postgres/stored_function.js'
import type { Consumer } from './consumer.js'
import {
  MARK_FOUND,
  READ_PROJECT_CONSUMER,
  RETIRE,
  SCAN,
  SWITCH,
  SWITCH_ON,
  scanSlice,
  USE_CONSUMER,
} from './project_consumer_queries.js'

const SESSIONS_AT_ONCE = 1_000
/** When, as a rule, every node has heard that a consumer was switched on: keys are looked up anew within 4.5 s. */
export const HEARD_S = 6
const ROWS_AT_ONCE = 100
/** Changes without a mark, such as those of a node of an older version, are found within a day. */
const SCAN_EVERY_S = 86_400

/**
 * How far a consumer is with a project, for which it is switched on if it is not. From the commit of that on, appends
 * write marks, at nodes that have not heard of it after a while; so the sessions that there are get looked through now,
 * again when every node should have heard, and once more when the last statement of one that had not is done for sure:
 * see `unmarked_until`.
 */
export async function useConsumer(
  { database, project_id }: Tenant<Database>,
  consumer: string,
): Promise<{ is_ready: boolean; sessions_scanned: number }> {
  const owned = [project_id, consumer] as const
  const [row] = await database.query(READ_PROJECT_CONSUMER, owned)
  if (!row) {
    await database.transaction(async (connection) => {
      await switchOn(connection, owned)
      await connection.query(SWITCH_ON.consumer, owned)
    })
    return { is_ready: false, sessions_scanned: 0 }
  }
  const is_ready = row.is_ready === 't'
  if (is_ready && row.is_old_use === 't') await database.query(USE_CONSUMER, owned)
  return { is_ready, sessions_scanned: Number(row.sessions_scanned) }
}

/** A key may be cached for some seconds longer than its project is there, which must leave no rows behind. */
async function switchOn(database: Queryable, owned: readonly [project_id: string, consumer: string]) {
  const found = await database.query(SWITCH_ON.project, owned)
  if (found.length === 0) throw new AnnalsError('unauthorized')
}

/**
 * Marks the next sessions of a project that its consumer has not seen, where it is time for that. Returns in how many ms to
 * go on, infinitely many where that is long. `settle_s`: seconds until every statement that a node sent in ignorance is
 * done.
 */
export async function scanSome(
  { database, project_id }: Tenant<Database>,
  { name, isBehind }: Consumer,
  settle_s: number,
): Promise<number> {
  const owned = [project_id, name]
  return database.transaction(async (connection) => {
    const [scan] = await connection.query(SCAN.lock, owned)
    if (!scan) return Number.POSITIVE_INFINITY
    let wait_s = Math.max(Number(scan.wait_s), 0)
    if (wait_s === 0) {
      const slice = [...owned, scan.scanned_to!, SESSIONS_AT_ONCE]
      const [found] = await connection.query(scanSlice(name, isBehind), slice)
      if (found!.behind) await call(connection, MARK_FOUND, ...owned, found!.behind, scan.scan_at!)
      const sessions = Number(found!.sessions)
      if (sessions > 0) await connection.query(SCAN.go_on, [...owned, found!.last_id!, sessions])
      else if ((await connection.query(SCAN.under_way, [...owned, scan.scan_at!])).length === 0) {
        wait_s = untilNext(scan.age_s, settle_s)
        await connection.query(SCAN.end, [...owned, wait_s])
      }
    }
    return wait_s > settle_s ? Number.POSITIVE_INFINITY : wait_s * 1_000
  })
}

/** Seconds until the sessions are looked through again. `age_s`: since they first were, null if that is now. */
function untilNext(age_s: string | null | undefined, settle_s: number): number {
  if (typeof age_s !== 'string') return Math.min(HEARD_S, settle_s)
  return Number(age_s) < settle_s ? settle_s : SCAN_EVERY_S
}

/**
 * Switches a consumer on for good, or off, in the transaction that changes the project; `anew`: what it has of the project
 * is erased, and it begins again. Nodes find out when they next look for what there is to do.
 */
export async function switchConsumer(
  { database, project_id }: Tenant,
  consumer: string,
  isOn: boolean | 'anew',
): Promise<void> {
  const owned = [project_id, consumer] as const
  if (isOn) await switchOn(database, owned)
  await database.query(isOn === 'anew' ? SWITCH.anew : isOn ? SWITCH.on : SWITCH.off, owned)
}

/** Switches a consumer on for good, unless it is. */
export async function keepConsumer(tenant: Tenant<Database>, consumer: string): Promise<void> {
  const [row] = await tenant.database.query(READ_PROJECT_CONSUMER, [tenant.project_id, consumer])
  if (row?.is_for_good === 't') return
  await within(tenant, (inside) => switchConsumer(inside, consumer, true))
}

/** Takes apart what consumers that nobody wants any more keep of a project. Nodes that do so at once take turns. */
export async function retire(
  { database, project_id }: Tenant<Database>,
  consumer: Consumer,
  signal: AbortSignal,
): Promise<void> {
  const owned = [project_id, consumer.name]
  const [begun] = await database.query(RETIRE.begin, owned)
  if (!begun) return
  /** Takes the consumer from the project, whatever `more` does, unless somebody uses it again. */
  const leave = (...more: Statement[]) =>
    database.transaction(async (connection) => {
      // The project first, as for switching on: what is switched on from here to the commit would be lost otherwise.
      for (const statement of [RETIRE.project, ...more]) await connection.query(statement, owned)
      const [used] = await connection.query(RETIRE.used, owned)
      if (used) await connection.query(SWITCH_ON.project, owned)
    })
  const eraseAll = async (statement: Statement, ...more: string[]) => {
    for (let gone = ROWS_AT_ONCE; gone === ROWS_AT_ONCE; ) {
      signal.throwIfAborted()
      gone = await database.transaction(async (connection) => {
        // Another node may be done, and somebody have switched it on since: what it has now stays.
        if ((await connection.query(RETIRE.hold, owned)).length === 0) return 0
        return (await connection.query(statement, [project_id, ROWS_AT_ONCE, ...more])).length
      })
    }
  }
  // From here on, appends leave no marks.
  await leave()
  // Marks first: a node that works on one has written by then, and no other begins.
  for (const statement of [RETIRE.marks, RETIRE.cursors]) await eraseAll(statement, consumer.name)
  for (const statement of consumer.erase) await eraseAll(statement)
  // Those of appends that were under way.
  await eraseAll(RETIRE.marks, consumer.name)
  await leave(RETIRE.revive, RETIRE.consumer)
}
