import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { summing } from '../../lab/model_scripts.ts'
import { startModelServer } from '../../lab/model_server.ts'
import { expectOk } from '../harness/expectations.ts'
import { agent, user } from '../harness/model_project.ts'
import { createProject, useService } from '../harness/service.ts'
import { queryRows, withConnection } from '../harness/sql.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'

const model = await startModelServer(summing)
afterAll(() => model.close())
const service = useService({
  ANNALS_MODEL_URL: model.url,
  ANNALS_MODEL: 'scripted',
  ANNALS_MODEL_MS_MAX: '20000',
})

const COMPACTIONS = `SELECT e.session_id, e.data -> 'to_seq' AS to_seq FROM entries e
WHERE e.project_id = $1 AND e.type = 'annals.compaction' ORDER BY e.session_id, e.seq`
const CALLS = `SELECT c.session_id, c.status, c.attempts FROM learning_calls c WHERE c.project_id = $1`

async function compactingProject(node: { url: string } = service.node) {
  const { id, token } = await createProject(service.adminClient(node))
  const body = { auto_compact_tokens: 4_000 }
  expectOk(await service.adminClient(node).request('PATCH', `/admin/v1/projects/${id}`, { body }))
  const newSession = async () => {
    const api = await service.newClient({ token, node })
    const session = expectOk(await api.createSession({}), 201).id
    const entries = Array.from({ length: 12 }, (_, n) => {
      const text = `${n} ${'word '.repeat(400)}`
      return { kind: 'message', blob: n % 2 === 0 ? user(text) : agent(text) }
    })
    expectOk(await api.request('POST', `/api/v1/session/${session}/entries`, { body: { entries } }), 201)
    return session
  }
  const rows = (sql: string) => queryRows(service.databaseUrl, sql, [id])
  return { newSession, rows }
}

// In a database that all files share, nodes without a model take up these sessions too.
describe.skipIf(reasonForNoOwnDatabase())('a node that is killed', () => {
  it.each([
    { which: 'is lost with the node', isLost: true },
    { which: 'is carried out after it', isLost: false },
  ])(
    'between the model’s answer and a commit that $which asks for no summary again, and none is stored twice',
    async ({ isLost }) => {
      const first = await service.startNode()
      const { newSession, rows } = await compactingProject(first)
      const session = await newSession()
      model.asked.length = 0
      await withConnection(service.databaseUrl, async (connection) => {
        model.script = async (asked) => {
          // From here on, the ledger can be written, and the log cannot.
          await connection.query('BEGIN')
          await connection.query('SELECT 1 FROM session_heads WHERE session_id = $1 FOR UPDATE', [session])
          return summing(asked)
        }
        await vi.waitFor(
          async () => expect(await rows(CALLS)).toMatchObject([{ status: 'answered' }]),
          60_000,
        )
        const others = (what: string, which: string) =>
          connection.query(
            `SELECT ${what} FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid() AND ${which}`,
          )
        const waiting = () => others('pid', "wait_event_type = 'Lock'")
        await vi.waitFor(async () => expect((await waiting()).rowCount).toBeGreaterThan(0), 20_000)
        await Promise.all([first.kill(), service.node.kill()])
        model.script = summing
        // Whatever they were asked last, even if they have not begun with it.
        if (isLost) await others('pg_terminate_backend(pid, 10000)', "backend_type = 'client backend'")
      })
      if (isLost) expect(await rows(COMPACTIONS)).toEqual([])
      const node = await service.startNode()
      await vi.waitFor(
        async () => expect(await rows(COMPACTIONS)).toEqual([{ session_id: session, to_seq: 8 }]),
        60_000,
      )
      await vi.waitFor(
        async () => expect(await rows(CALLS)).toMatchObject([{ status: 'applied', attempts: 1 }]),
        60_000,
      )
      expect(model.asked).toHaveLength(1)
      await node.stop()
    },
  )

  it('at any moment leaves one summary of each session, and no answer is paid for twice, beside another node', async () => {
    let [node, other] = [await service.startNode(), await service.startNode()]
    const { newSession, rows } = await compactingProject(node)
    model.asked.length = 0
    model.script = async (asked) => {
      await sleep(50)
      return summing(asked)
    }
    const sessions = await Promise.all(Array.from({ length: 12 }, newSession))
    let kills = 0
    for (const progress of [2, 6]) {
      await vi.waitFor(() => expect(model.asked.length).toBeGreaterThan(progress), {
        timeout: 60_000,
        interval: 5,
      })
      await node.kill()
      kills += 1
      ;[node, other] = [other, await service.startNode()]
    }
    await vi.waitFor(async () => {
      const compacted = await rows(COMPACTIONS)
      expect(compacted.map(({ session_id }) => session_id)).toEqual([...sessions].sort())
      expect(new Set(compacted.map(({ to_seq }) => to_seq))).toEqual(new Set([8]))
      expect((await rows(CALLS)).every(({ status }) => status === 'applied')).toBe(true)
    }, 90_000)
    const calls = await rows(CALLS)
    expect(calls).toHaveLength(12)
    const attempts = calls.reduce((sum, call) => sum + Number(call.attempts), 0)
    // One that was begun at a kill may not have been sent.
    expect(model.asked.length).toBeLessThanOrEqual(attempts)
    // Those that were under way at a kill are sent once more: at most four of a project at each node.
    expect(attempts).toBeLessThanOrEqual(12 + 4 * kills)
  })
})
