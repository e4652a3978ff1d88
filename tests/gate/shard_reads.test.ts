import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { ADMIN_TOKEN, type AnnalsServer, expectOrderlyEnds, startServer } from '../harness/annals_process.ts'
import { type ApiClient, apiClient } from '../harness/api_client.ts'
import { type ClusterDatabase, createClusterDatabase } from '../harness/cluster_database.ts'
import { expectOk } from '../harness/expectations.ts'
import { type Answer, httpClient } from '../harness/http_client.ts'
import { createProject } from '../harness/service.ts'
import { queryRows } from '../harness/sql.ts'

/*
 * Reads of a project on a cluster: they name its shards, so that Citus has nothing to plan, and see what was acknowledged,
 * also while the shards are being moved to another worker.
 */

const TIMES = 40
const isCluster = inject('testServer').mode === 'shared'

describe.skipIf(!isCluster)('on a cluster, which TEST_DATABASE_URL names', () => {
  let cluster: ClusterDatabase | undefined
  let node: AnnalsServer
  let api: ApiClient
  let project: string
  let at: string

  beforeAll(async () => {
    cluster = await createClusterDatabase({ settings: { 'citus.enable_stat_counters': 'on' } })
    if (!cluster) return
    node = await startServer({ DATABASE_URL: cluster.url })
    const { id, token } = await createProject(httpClient(node.url, ADMIN_TOKEN))
    project = id
    api = apiClient(node.url, token)
    const session = expectOk(await api.createSession({ user: 'ada', configs: { agent: 'a' } }), 201)
    at = `/api/v1/session/${session.id}`
    const entries = [
      { kind: 'message', blob: { role: 'user', content: 'Where is my flight?' } },
      { kind: 'event', type: 'note', key: 'state', data: { text: 'asked' } },
    ]
    expectOk(await api.request('POST', `${at}/entries`, { body: { entries } }), 201)
  })
  afterAll(async () => {
    api?.close()
    if (node) expectOrderlyEnds([await node.stop()])
    await cluster?.drop()
  })

  /** How many statements that ask shards Citus has executed, on all machines. */
  const executed = async () => {
    const counted = `SELECT (query_execution_single_shard + query_execution_multi_shard)::int AS count
      FROM citus_stat_counters WHERE name = current_database()`
    const rows = await Promise.all(cluster!.machines.map((url) => queryRows<{ count: number }>(url, counted)))
    return rows.reduce((sum, [row]) => sum + row!.count, 0)
  }

  const event = { type: 'note', data: {} }
  it.for<[string, () => Promise<Answer<unknown>>]>([
    ...[
      '/api/v1/session',
      '/api/v1/session?user=ada&time_desc=true',
      `/api/v1/session?filter_by_configs=${encodeURIComponent('{"agent":"a"}')}`,
      '',
      '/timeline?limit=50&time_desc=true',
      '/messages?limit=50',
      '/events?type=note',
      '/context?max_tokens=1000',
      '/latest',
      '/token_counts',
    ].map((path): [string, () => Promise<Answer<unknown>>] => [
      path || 'a session',
      () => api.request('GET', path.startsWith('/api') ? path : `${at}${path}`, {}),
    ]),
    [
      'an append with a key',
      () =>
        api.request('POST', `${at}/events`, { body: event, headers: { 'Idempotency-Key': randomUUID() } }),
    ],
    [
      'an append with an id, sent twice',
      async () => {
        const body = { entries: [{ kind: 'event', ...event, id: randomUUID() }] }
        expectOk(await api.request('POST', `${at}/entries`, { body }), 201)
        return api.request('POST', `${at}/entries`, { body })
      },
    ],
  ])('%s names shards, and Citus executes nothing for it', async ([, call], context) => {
    if (!cluster) return context.skip('it takes a superuser to make a database')
    const callAll = async () => {
      const before = await executed()
      for (let times = 0; times < TIMES; times++) expect((await call()).status).toBeLessThan(300)
      return (await executed()) - before
    }
    // The first ones go through the coordinator, until it is known where the project is; background work asks now and then.
    await vi.waitFor(async () => expect(await callAll()).toBeLessThan(TIMES / 2), { timeout: 30_000 })
  })

  it.for(['force_logical', 'block_writes'])(
    'each read has what was acknowledged before, while the project is moved with %s',
    { timeout: 120_000 },
    async (mode, context) => {
      if (!cluster) return context.skip('it takes a superuser to make a database')
      const { url } = cluster
      let isMoved = false
      let checked = 0
      const append = async () => {
        const body = { type: 'note', data: { checked } }
        const answer = await api
          .request<{ seq: number }>('POST', `${at}/events`, { body })
          .catch(() => undefined)
        // Those that wait for too long are refused, or in doubt.
        if (answer?.status !== 200) return
        const last = await api.request<{ items: { seq: number }[] }>(
          'GET',
          `${at}/timeline?limit=1&time_desc=true`,
          {},
        )
        if (last.status !== 200) return
        expect(last.json.data.items[0]!.seq).toBeGreaterThanOrEqual(answer.json.data.seq)
        checked += 1
      }
      const clients = Array.from({ length: 4 }, async () => {
        for (let more = 40; more > 0; ) {
          await append()
          if (isMoved) more -= 1
        }
      })
      const move = `SELECT citus_move_shard_placement(s.shardid, s.nodename, s.nodeport, n.nodename, n.nodeport, $2::citus.shard_transfer_mode)
        FROM citus_shards s, pg_dist_node n
        WHERE s.shardid = get_shard_id_for_distribution_column('sessions', $1::uuid) AND n.groupid <> 0
          AND (n.nodename, n.nodeport) <> (s.nodename, s.nodeport) LIMIT 1`
      const from = await cluster.workerOf(project)
      try {
        await queryRows(url, move, [project, mode])
      } finally {
        isMoved = true
        await Promise.all(clients)
      }
      expect(await cluster.workerOf(project)).not.toBe(from)
      expect(checked).toBeGreaterThan(160)
    },
  )
})
