import { randomBytes } from 'node:crypto'
import type { TestContext } from 'vitest'
import { describe, expect, inject, it } from 'vitest'
import { findLostWorkers } from '../../packages/kits/src/postgres/citus/workers.ts'
import type { Queryable } from '../../packages/kits/src/postgres/database.ts'
import { FIND_WORKERS_AWAY } from '../../packages/server/src/service/operation_routes.ts'
import { withConnection } from '../harness/sql.ts'

const { mode, serverUrl } = inject('testServer')

/**
 * What a role is told of the workers, when one of them has a setting for that role alone: other files share the cluster.
 * It takes a superuser, and a cluster that trusts its machines.
 */
async function withSettingOnWorker(
  context: TestContext,
  setting: string,
  work: (coordinator: Queryable, worker: string) => Promise<void>,
) {
  const role = `trouble_${randomBytes(6).toString('hex')}`
  const database = decodeURIComponent(new URL(serverUrl).pathname.slice(1))
  await withConnection(serverUrl, async (connection) => {
    const { rows } = await connection.query(
      `SELECT nodename AS hostname, nodeport AS port, current_setting('is_superuser') AS may
       FROM pg_dist_node WHERE groupid <> 0 ORDER BY groupid LIMIT 1`,
    )
    const { may, ...machine } = rows[0]
    if (may !== 'on') return context.skip('it takes a superuser to make a role')
    await connection.query(`CREATE ROLE ${role} LOGIN`)
    try {
      await withConnection(Object.assign(new URL(serverUrl), machine).href, async (worker) => {
        await worker.query('SET citus.enable_ddl_propagation = off')
        await worker.query(`ALTER ROLE ${role} IN DATABASE "${database}" SET ${setting}`)
      })
      const url = Object.assign(new URL(serverUrl), { username: role, password: '' }).href
      await withConnection(url, (own) => {
        const query: Queryable['query'] = async ({ text }, values) =>
          (await own.query(text, [...values])).rows
        return work({ query }, `${machine.hostname}:${machine.port}`)
      })
    } finally {
      await connection.query(`DROP ROLE ${role}`)
    }
  })
}

describe.skipIf(mode !== 'shared')('on a cluster, which TEST_DATABASE_URL names', () => {
  it('/ready names a worker that can only be read, and no other', async (context) => {
    await withSettingOnWorker(context, 'default_transaction_read_only = on', async (coordinator, worker) => {
      expect(await coordinator.query(FIND_WORKERS_AWAY, [])).toEqual([{ worker: `${worker} (read-only)` }])
      expect(await findLostWorkers(coordinator)).toEqual([])
    })
  })

  it('the doctor names a worker whose search_path does not have the tables, and no other', async (context) => {
    await withSettingOnWorker(context, 'search_path = nowhere', async (coordinator, worker) => {
      expect(await findLostWorkers(coordinator)).toEqual([`${worker} (search_path = nowhere)`])
      expect(await coordinator.query(FIND_WORKERS_AWAY, [])).toEqual([])
    })
  })
})
