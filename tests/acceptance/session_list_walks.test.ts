import { beforeEach, describe, expect, it } from 'vitest'
import type { ApiClient, Session } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import type { Query } from '../harness/http_client.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { insertSessionRows } from '../harness/session_rows.ts'
import { walkPages } from '../harness/walk_pages.ts'

const CREATED_AT = '2026-01-01T00:00:00.123456Z'

const service = useSharedService()
let project: Project
let api: ApiClient

beforeEach(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

const walk = (query: Query, afterPage?: (items: Session[]) => Promise<void>) =>
  walkPages((cursor) => api.listSessions({ ...query, cursor }), afterPage)
const insert = (count: number) => insertSessionRows(service.databaseUrl, project.id, count, CREATED_AT)
const idsOf = (sessions: Session[]) => sessions.map((session) => session.id)

describe('a walk through 300 sessions with one created_at', () => {
  it('with limit 7 sees each exactly once, in either direction in opposite order', async () => {
    const ids = await insert(300)
    const oldestFirst = idsOf(await walk({ limit: 7 }))
    const newestFirst = idsOf(await walk({ limit: 7, time_desc: true }))
    expect([...oldestFirst].sort()).toEqual([...ids].sort())
    expect(newestFirst).toEqual([...oldestFirst].reverse())
  })

  it.each([false, true])(
    'sees each that is there all the time exactly once while others come and go (time_desc %s)',
    async (time_desc) => {
      const ids = await insert(300)
      const removed = new Set<string>()
      const removable = new Set(ids.filter((_, index) => index % 3 === 0))
      const change = async (items: Session[]) => {
        const atTheCursor = items.at(-1)!.id
        const ahead = [...removable].find((id) => !items.some((item) => item.id === id))
        for (const id of [atTheCursor, ahead]) {
          if (id === undefined || !removable.delete(id)) continue
          removed.add(id)
          expectOk(await api.deleteSession(id))
        }
        await insert(2)
      }
      const seen = idsOf(await walk({ limit: 7, time_desc }, change))
      expect(new Set(seen).size).toBe(seen.length)
      const stayed = ids.filter((id) => !removed.has(id))
      expect(removed.size).toBeGreaterThan(40)
      const seenOnce = new Set(seen)
      expect(stayed.filter((id) => !seenOnce.has(id))).toEqual([])
    },
    120_000,
  )
})

describe('a cursor', () => {
  it('stays valid when the session that it points at is deleted, and when all before it are', async () => {
    const ids: string[] = []
    for (let count = 0; count < 9; count += 1) ids.push(expectOk(await api.createSession({}), 201).id)
    const { items, next_cursor } = expectOk(await api.listSessions({ limit: 3 }))
    expect(idsOf(items)).toEqual(ids.slice(0, 3))
    for (const id of ids.slice(0, 4)) expectOk(await api.deleteSession(id))
    const rest = expectOk(await api.listSessions({ cursor: next_cursor }))
    expect(idsOf(rest.items)).toEqual(ids.slice(4))
  })

  it('returns an empty last page when everything after it is deleted', async () => {
    const ids: string[] = []
    for (let count = 0; count < 4; count += 1) ids.push(expectOk(await api.createSession({}), 201).id)
    const { next_cursor } = expectOk(await api.listSessions({ limit: 2 }))
    for (const id of ids.slice(2)) expectOk(await api.deleteSession(id))
    const rest = expectOk(await api.listSessions({ cursor: next_cursor }))
    expect(rest).toEqual({ items: [], has_more: false, next_cursor: '' })
  })

  it('finds a session that was created after it began', async () => {
    for (let count = 0; count < 3; count += 1) expectOk(await api.createSession({}), 201)
    const { next_cursor } = expectOk(await api.listSessions({ limit: 2 }))
    const late = expectOk(await api.createSession({}), 201)
    const rest = expectOk(await api.listSessions({ cursor: next_cursor }))
    expect(idsOf(rest.items).at(-1)).toBe(late.id)
  })

  it('works at every node', async () => {
    const second = await service.newClient({ token: project.token, node: service.secondNode })
    await insert(40)
    let page = 0
    const seen = await walkPages((cursor) => {
      page += 1
      return (page % 2 ? api : second).listSessions({ limit: 3, cursor })
    })
    expect(new Set(idsOf(seen)).size).toBe(40)
    expect(seen).toHaveLength(40)
  })

  it('keeps to microseconds: sessions one apart are neither repeated nor skipped', async () => {
    const ids: string[] = []
    for (let micro = 0; micro < 20; micro += 1) {
      const at = `2026-02-01T00:00:00.0000${String(micro).padStart(2, '0')}Z`
      ids.push(...(await insertSessionRows(service.databaseUrl, project.id, 1, at)))
    }
    expect(idsOf(await walk({ limit: 1 }))).toEqual(ids)
    expect(idsOf(await walk({ limit: 1, time_desc: true }))).toEqual([...ids].reverse())
  })
})
