import { randomUUID } from 'node:crypto'
import { describe, expect, inject, it, vi } from 'vitest'
import { straightToWorkers } from '../../packages/kits/src/postgres/citus/worker_pools.ts'
import { findUnreached } from '../../packages/kits/src/postgres/citus/workers.ts'
import { openDatabase } from '../../packages/kits/src/postgres/database.ts'
import { requestSettings } from '../../packages/kits/src/postgres/pool_settings.ts'
import { planned } from '../../packages/kits/src/postgres/statement.ts'
import { withConnection } from '../harness/sql.ts'
import { workerOf } from './cluster_fixture.ts'

const { mode, serverUrl } = inject('testServer')

describe.skipIf(mode !== 'shared')('on a cluster, which TEST_DATABASE_URL names', () => {
  it('appends go straight to the worker that has their project', async () => {
    const target = { connectionString: serverUrl, distributed: true }
    const bounds = { connections_max: 2, wait_ms_max: 5_000, statement_ms_max: 5_000 }
    const settings = requestSettings(target)
    const detours: unknown[] = []
    const pool = straightToWorkers(
      openDatabase({ target, settings, ...bounds }),
      target,
      (worker) => openDatabase({ ...bounds, ...worker }),
      (...detour) => detours.push(detour),
    )
    const ask = planned(
      'ask_machine',
      'SELECT l.groupid AS group, $1::uuid AS project FROM pg_dist_local_group l',
    )
    try {
      for (let times = 0; times < 8; times++) {
        const project = randomUUID()
        const { group } = await withConnection(serverUrl, (connection) => workerOf(connection, project))
        const asked = async () => (await pool.query(ask, [project]))[0]!.group
        await vi.waitFor(async () => expect(await asked()).toBe(group), { timeout: 30_000 })
      }
      expect(await findUnreached(pool, serverUrl)).toEqual([])
    } finally {
      await pool.close()
    }
    expect(detours).toEqual([])
  })
})
