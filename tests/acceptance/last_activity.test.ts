import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { ApiClient, Session } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import type { Query } from '../harness/http_client.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { insertSessionRows } from '../harness/session_rows.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { walkPages } from '../harness/walk_pages.ts'

/* Sessions in the order of their last activity, to the second, through two nodes. */

const service = useSharedService()
const annals = useTransfers(service)
let project: Project
/** Of the same project, at two nodes. */
let api: ApiClient
let other: ApiClient

beforeEach(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
  other = await service.newClient({ token: project.token, node: service.secondNode })
})

const list = (query: Query = {}, client = api) => client.listSessions({ order_by: 'last_activity', ...query })
const walk = (query: Query = {}, client = api) => walkPages((cursor) => list({ ...query, cursor }, client))
const idsOf = (sessions: Session[]) => sessions.map(({ id }) => id)
const newSession = async (body: unknown = {}) => expectOk(await api.createSession(body), 201).id
const second = ({ updated_at }: Session) => updated_at.slice(0, 19)

/** Waits until the list shows what is asked of it: it follows what is written within a second or two. */
const eventually = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 60_000 })

/** Each session's last activity in the past, as though it had been written to long ago; ids in that order. */
async function pastSessions(count: number): Promise<string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n++)
    ids.push(
      ...(await insertSessionRows(service.databaseUrl, project.id, 1, `2026-01-01T00:00:${10 + n}.5Z`)),
    )
  return ids
}

describe('the list of sessions by last activity', () => {
  it('is made when a project first asks for it, and holds every session once, in either direction', async () => {
    const ids = await pastSessions(30)
    // A slow one is told to ask again.
    await eventually(async () => expect(idsOf(await walk({ limit: 7 }))).toEqual(ids))
    expect(idsOf(await walk({ limit: 7, time_desc: true }, other))).toEqual([...ids].reverse())
  })

  it('is ordered by updated_at to the second, and within it by id', async () => {
    await insertSessionRows(service.databaseUrl, project.id, 20, '2026-01-01T00:00:10.7Z')
    await insertSessionRows(service.databaseUrl, project.id, 20, '2026-01-01T00:00:10.2Z')
    await eventually(async () => {
      const seen = await walk({ limit: 9 })
      expect(seen).toHaveLength(40)
      expect(idsOf(seen)).toEqual(idsOf(seen).sort())
    })
  })

  it('follows all that moves updated_at, at whichever node it is written', async () => {
    const ids = await pastSessions(9)
    await eventually(async () => expect(idsOf(await walk())).toEqual(ids))
    const message = { format: 'openai', blob: { role: 'user', content: 'hello' } }
    const touches: Array<[id: string, touch: () => Promise<{ status: number }>]> = [
      [ids[0]!, () => api.appendEvent(ids[0]!, { type: 'a', data: {} })],
      [
        ids[1]!,
        () => other.appendEvent(ids[1]!, { type: 'a', data: {} }, { headers: { 'Idempotency-Key': 'k' } }),
      ],
      [ids[2]!, () => other.request('POST', `/api/v1/session/${ids[2]}/messages`, { body: message })],
      [
        ids[3]!,
        () =>
          api.request('POST', `/api/v1/session/${ids[3]}/entries`, {
            body: { entries: [{ kind: 'event', type: 'a', data: {} }] },
          }),
      ],
      [
        ids[4]!,
        () => other.request('PUT', `/api/v1/session/${ids[4]}/configs`, { body: { configs: { a: 1 } } }),
      ],
      [
        ids[5]!,
        () => api.request('PATCH', `/api/v1/session/${ids[5]}/configs`, { body: { configs: { a: 1 } } }),
      ],
    ]
    const touched: string[] = []
    for (const [id, touch] of touches) {
      expect((await touch()).status).toBeLessThan(300)
      touched.push(id)
      await eventually(async () => {
        const newest = expectOk(await list({ time_desc: true, limit: touched.length })).items
        expect(idsOf(newest).sort()).toEqual([...touched].sort())
      })
    }
    const made = [await newSession()]
    const copy = await api.request<{ new_session_id: string }>('POST', `/api/v1/session/${ids[6]}/copy`)
    made.push(expectOk(copy).new_session_id)
    await eventually(async () => {
      const all = expectOk(await list({ time_desc: true }, other)).items
      expect(idsOf(all).sort()).toEqual([...ids, ...made].sort())
      expect(all.map(second)).toEqual(all.map(second).sort().reverse())
    })
  })

  it('follows the meta of a message, and sessions that are imported', async () => {
    const [first, last] = await pastSessions(2)
    const message = { format: 'openai', blob: { role: 'user', content: 'hello' } }
    const { id } = expectOk(
      await api.request<{ id: string }>('POST', `/api/v1/session/${first}/messages`, { body: message }),
      201,
    )
    // So that only what follows moves it.
    await execute(
      service.databaseUrl,
      "UPDATE session_heads SET updated_at = '2026-01-01T00:00:10Z' WHERE project_id = $1 AND session_id = $2",
      [project.id, first!],
    )
    await eventually(async () => expect(idsOf(await walk())).toEqual([first, last]))
    expectOk(
      await other.request('PATCH', `/api/v1/session/${first}/messages/${id}/meta`, {
        body: { meta: { seen: true } },
      }),
    )
    await eventually(async () => expect(idsOf(await walk())).toEqual([last, first]))

    const { path } = await annals.export(project.name)
    const target = await service.newProject()
    const imported = await service.newClient({ token: target.token })
    await eventually(async () => expect(await walk({}, imported)).toEqual([]))
    await annals.import(path, target.name)
    const shown = expectOk(await api.listSessions({ order_by: 'last_activity' })).items.map(second)
    await eventually(async () => {
      const sessions = await walk({}, imported)
      expect(sessions.map(second)).toEqual(shown)
      expect(idsOf(sessions)).toEqual([last, first])
    })
  })

  it('takes the same filters, and follows configs that change', async () => {
    const user = 'ada'
    const a = await newSession({ user, configs: { agent: 'x', n: 1 } })
    const b = await newSession({ user, configs: { agent: 'y', n: 1 } })
    const c = await newSession({ configs: { agent: 'x', n: 2 } })
    const found = async (query: Query) => idsOf(await walk({ limit: 1, ...query })).sort()
    const agent = (name: string) => ({ filter_by_configs: JSON.stringify({ agent: name }) })
    await eventually(async () => {
      expect(await found({})).toEqual([a, b, c].sort())
      expect(await found({ user })).toEqual([a, b].sort())
      expect(await found(agent('x'))).toEqual([a, c].sort())
      expect(await found({ user, ...agent('x') })).toEqual([a])
      expect(await found({ user: 'nobody' })).toEqual([])
    })
    expectOk(
      await api.request('PATCH', `/api/v1/session/${b}/configs`, { body: { configs: { agent: 'x' } } }),
    )
    await eventually(async () => {
      expect(await found(agent('x'))).toEqual([a, b, c].sort())
      expect(await found(agent('y'))).toEqual([])
    })
    expectOk(await api.deleteSession(a))
    expect(await found(agent('x'))).toEqual([b, c].sort())
    const rows = await queryRows(
      service.databaseUrl,
      `SELECT 1 FROM session_activity WHERE project_id = $1 AND session_id = $2
       UNION ALL SELECT 1 FROM activity_terms WHERE project_id = $1 AND session_id = $2
       UNION ALL SELECT 1 FROM change_marks WHERE project_id = $1 AND session_id = $2`,
      [project.id, a],
    )
    expect(rows).toEqual([])
  })

  it('shows what nobody writes to exactly once, though others move while it is walked', async () => {
    const still = await pastSessions(20)
    const moving = await pastSessions(20)
    await eventually(async () => expect(await walk()).toHaveLength(40))
    const seen = await walkPages(
      (cursor) => list({ limit: 3, cursor }, other),
      async () => {
        for (const id of moving.splice(0, 2)) expectOk(await api.appendEvent(id, { type: 'a', data: {} }))
        expectOk(await api.createSession({}), 201)
      },
    )
    expect(
      idsOf(seen)
        .filter((id) => still.includes(id))
        .sort(),
    ).toEqual([...still].sort())
  })

  it('has cursors of its own', async () => {
    await pastSessions(3)
    await eventually(async () => void (await walk()))
    const { next_cursor: cursor } = expectOk(await list({ limit: 1 }))
    expectError(await api.listSessions({ cursor }), 400, 'invalid_cursor')
    expectError(await list({ order_by: 'size' }), 400, 'invalid_request', 'order_by')
  })

  it('costs a project nothing that does not ask for it', async () => {
    await newSession()
    expectOk(await api.listSessions({ order_by: 'created_at' }))
    const rows = await queryRows(
      service.databaseUrl,
      `SELECT 1 FROM change_marks WHERE project_id = $1 UNION ALL SELECT 1 FROM session_activity WHERE project_id = $1
       UNION ALL SELECT 1 FROM projects WHERE id = $1 AND consumers <> '{}'`,
      [project.id],
    )
    expect(rows).toEqual([])
  })
})
