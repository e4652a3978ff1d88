import { describe, expect, inject, it } from 'vitest'
import { callEveryOperation } from '../../torture/faults/every_operation.ts'
import { expectOk } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import { judge, SOUND } from '../harness/proof_verifiers.ts'
import { useService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { queryRows, withConnection } from '../harness/sql.ts'
import { verifyDatabase } from '../harness/verification.ts'

const { mode, serverUrl } = inject('testServer')

/** The lock that a move takes of what it moves, on each machine, if it blocks writes. */
const HOLD_OTHERS = `SELECT lock_shard_metadata(7, array_agg(s.shardid)) FROM pg_dist_shard s
  WHERE s.shardminvalue IS NOT NULL AND s.shardid <> get_shard_id_for_distribution_column(s.logicalrelid, $1::uuid)`

const PLACEMENT = `SELECT nodename, nodeport FROM citus_shards
  WHERE shardid = get_shard_id_for_distribution_column('sessions', $1::uuid)`
const MOVE = `SELECT citus_move_shard_placement(s.shardid, s.nodename, s.nodeport, n.nodename, n.nodeport, $2::citus.shard_transfer_mode)
  FROM citus_shards s, pg_dist_node n
  WHERE s.shardid = get_shard_id_for_distribution_column('sessions', $1::uuid) AND n.groupid <> 0
    AND (n.nodename, n.nodeport) <> (s.nodename, s.nodeport) LIMIT 1`

describe.skipIf(mode !== 'shared')('on a cluster, which TEST_DATABASE_URL names', () => {
  const service = useService()
  const transfers = useTransfers(service)

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
  })

  it.each(['force_logical', 'block_writes'])(
    'a chain that grows while its project is moved to another worker with %s stays sound',
    async (transfer_mode) => {
      const { id, token } = await service.newProject()
      const settings = { body: { proof: true } }
      expectOk(await service.adminClient().request('PATCH', `/admin/v1/projects/${id}`, settings))
      const log = await newSessionLog(await service.newClient({ token }))
      let isMoved = false
      const appends = Array.from({ length: 4 }, async () => {
        // Those that wait for too long are refused, or in doubt.
        while (!isMoved) await log.addEvent('note', { text: 'under way' }).catch(() => {})
      })
      const placement = () => queryRows(serverUrl, PLACEMENT, [id])
      const before = await placement()
      try {
        await queryRows(serverUrl, MOVE, [id, transfer_mode])
      } finally {
        isMoved = true
        await Promise.all(appends)
      }
      expect(await placement()).not.toEqual(before)
      expectOk(await log.addEvent('note', { text: 'after' }))
      const [head] = await queryRows<{ last_seq: string }>(
        serverUrl,
        'SELECT last_seq FROM session_heads WHERE project_id = $1',
        [id],
      )
      const links = Number(head!.last_seq)
      expect(links).toBeGreaterThan(1)
      expect(await verifyDatabase(service.databaseUrl, '--proof', '--project', id)).toMatchObject({
        ...{ sound: true, findings: [], projects: [{ links }] },
      })
      expect(judge((await transfers.export(id)).path)).toEqual(SOUND)
    },
    300_000,
  )
})
