import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, expect, vi } from 'vitest'
import { Changes, type ChangesOptions } from '../../packages/kits/src/changes/changes.ts'
import type { Consumer } from '../../packages/kits/src/changes/consumer.ts'
import { type DatabasePool, openDatabase } from '../../packages/kits/src/postgres/database.ts'
import { planned } from '../../packages/kits/src/postgres/statement.ts'
import { execute, queryRows } from '../harness/sql.ts'
import type { LogFixture } from './log_fixture.ts'

/*
 * Consumers of changes on a real database. The consumer here writes down each entry that it is given, in the transaction
 * that moves its cursor: one that is given twice in this way is refused by the table's key.
 */

/** The consumer, and the schema that it writes to: a process's own, since files may share a database. */
export const WITNESS = `witness_${randomBytes(4).toString('hex')}`
/** Of a request: the project has consumers. */
export const MARKED = Number.NEGATIVE_INFINITY
const logger = pino({ level: 'silent' })
const WRITE = planned(
  'write_seen',
  `INSERT INTO ${WITNESS}.seen AS s (project_id, session_id, seq) SELECT $1, $2, unnest($3::bigint[])`,
)
const FORGET = planned(
  'forget_seen',
  `DELETE FROM ${WITNESS}.seen AS s WHERE s.project_id = $1 AND s.session_id = ANY ($2::uuid[])`,
)

/** Writes down what it is given, after whatever `before` does. */
export function witness(before: () => Promise<void> = async () => {}): Consumer {
  return {
    name: WITNESS,
    sessions_max: 3,
    readsEntries: true,
    erase: [],
    forget: [FORGET],
    consume: async ({ project_id, sessions }) => {
      await before()
      return async (connection) => {
        for (const { session_id, entries } of sessions)
          await connection.query(WRITE, [project_id, session_id, entries.map(({ seq }) => seq)])
      }
    },
  }
}

/** Registers the hooks that make what the witness writes to, and end what a test has started. */
export function useChanges(log: LogFixture) {
  const undo: Array<() => Promise<void>> = []
  beforeAll(async () => {
    await execute(log.url, `CREATE SCHEMA ${WITNESS}`)
    await execute(
      log.url,
      `CREATE TABLE ${WITNESS}.seen (project_id uuid, session_id uuid, seq bigint, PRIMARY KEY (project_id, session_id, seq))`,
    )
  })
  // Other files look at all tables of the product, and all may share a database.
  afterAll(() => execute(log.url, `DROP SCHEMA ${WITNESS} CASCADE`))
  afterEach(async () => {
    for (const end of undo.splice(0)) await end()
  })

  const open = (connections_max: number, signal?: AbortSignal): DatabasePool => {
    const target = { connectionString: log.url }
    const limits = { connections_max, wait_ms_max: 5_000, statement_ms_max: 20_000 }
    const database = openDatabase({ target, ...limits, ...(signal && { signal }) })
    undo.unshift(() => database.close())
    return database
  }
  const seenOf = async (project: string): Promise<Record<string, string[]>> => {
    const rows = await queryRows<{ session_id: string; seqs: string[] }>(
      log.url,
      `SELECT session_id, array_agg(seq ORDER BY seq) AS seqs FROM ${WITNESS}.seen WHERE project_id = $1 GROUP BY session_id`,
      [project],
    )
    return Object.fromEntries(rows.map(({ session_id, seqs }) => [session_id, seqs]))
  }
  const marksOf = (project: string) =>
    queryRows(
      log.url,
      'SELECT session_id, extract(epoch FROM marked_at)::float8 AS marked_at FROM change_marks WHERE project_id = $1',
      [project],
    )

  return {
    open,
    start: (consumer: Consumer, more: Partial<ChangesOptions> = {}): Changes => {
      const abort = new AbortController()
      const database = open(2, abort.signal)
      const pace = { settle_s: 60, poll_ms: 20, round_ms: 1, lease_s: 1 }
      const changes = new Changes({ database, abort, consumers: [consumer], logger, ...pace, ...more })
      undo.unshift(() => changes.stop())
      return changes
    },
    newProject: async (): Promise<string> => {
      const project = await log.newProject()
      await execute(log.url, 'UPDATE projects SET consumers = ARRAY[$2::text] WHERE id = $1', [
        project,
        WITNESS,
      ])
      return project
    },
    seenOf,
    marksOf,
    /** Waits until no session is marked, and gives what the consumer has seen. */
    seenInTheEnd: async (project: string) => {
      await vi.waitFor(async () => expect(await marksOf(project)).toEqual([]), {
        timeout: 20_000,
        interval: 10,
      })
      return seenOf(project)
    },
  }
}
