import { describe, expect, inject, it } from 'vitest'
import { callEveryOperation } from '../../torture/faults/every_operation.ts'
import { expectOk } from '../harness/expectations.ts'
import { useService } from '../harness/service.ts'
import { withConnection } from '../harness/sql.ts'

const { mode, serverUrl } = inject('testServer')

/** The lock that a move takes of what it moves, on each machine, if it blocks writes. */
const HOLD_OTHERS = `SELECT lock_shard_metadata(7, array_agg(s.shardid)) FROM pg_dist_shard s
  WHERE s.shardminvalue IS NOT NULL AND s.shardid <> get_shard_id_for_distribution_column(s.logicalrelid, $1::uuid)`

describe.skipIf(mode !== 'shared')('on a cluster, which TEST_DATABASE_URL names', () => {
  const service = useService()

  it('every operation of a project is served while all other projects are being moved with writes blocked', async () => {
    const { id, token } = await service.newProject()
    expectOk(
      await service.adminClient().request('PATCH', `/admin/v1/projects/${id}`, { body: { search: true } }),
    )
    // What a project does for the first time is noted with the project, and may wait for what housekeeping does with others.
    await callEveryOperation(service.node.url, token)
    const machines = await withConnection(serverUrl, async (connection) => {
      const { rows } = await connection.query(
        'SELECT nodename AS hostname, nodeport AS port FROM pg_dist_node',
      )
      return rows.map((machine) => Object.assign(new URL(serverUrl), machine).href)
    })
    const held = (work: () => Promise<void>) =>
      machines.reduce<() => Promise<void>>(
        (inner, url) => () =>
          withConnection(url, async (mover) => {
            await mover.query('BEGIN')
            await mover.query(HOLD_OTHERS, [id])
            await inner()
          }),
        work,
      )()
    await held(async () => {
      expect(await callEveryOperation(service.node.url, token)).toBe(0)
    })
    expect(machines).toHaveLength(3)
  }, 120_000)
})
