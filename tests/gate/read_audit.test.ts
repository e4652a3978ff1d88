import { beforeEach, describe, expect, it, vi } from 'vitest'
import { tokenFor } from '../harness/access_requests.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { HttpClient } from '../harness/http_client.ts'
import { newPerson } from '../harness/people.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { queryRows } from '../harness/sql.ts'

interface Read {
  seq: number
  created_at: string
  actor: string
  action: string
  details: { session_id: string; principal_id: string; shown: string }
}
type Page = { items: Read[]; has_more: boolean; next_cursor: string }

const service = useSharedService()
const soon = (check: () => Promise<unknown>) => vi.waitFor(check, { timeout: 30_000, interval: 200 })

let project: Project
let api: ApiClient
beforeEach(async () => {
  project = await service.newProject()
  await set({ audit_reads: 'people' })
  api = await service.newClient({ token: project.token })
})

const set = async (body: object) =>
  expectOk(await service.adminClient().request('PATCH', `/admin/v1/projects/${project.id}`, { body }))
const page = async (more = '') =>
  expectOk(await service.adminClient().request<Page>('GET', `/admin/v1/audit?reads_of=${project.id}${more}`))
const newSession = async () => {
  const { id } = expectOk(await api.createSession({}), 201)
  const event = { kind: 'event', type: 'said', data: { text: 'a secret plan' } }
  expectOk(await api.request('POST', `/api/v1/session/${id}/entries`, { body: { entries: [event] } }), 201)
  return id
}
const person = async (role = 'viewer', of = project) => {
  const made = await newPerson(service.databaseUrl, of.id, role)
  return { ...made, client: service.rawClient(made.token) }
}
const get = async (by: HttpClient, path: string) => expectOk(await by.request('GET', `/api/v1${path}`))
/** What was noted, without regard to minutes: a test may run into the next one. */
const noted = async (more = '') =>
  [
    ...new Set(
      (await page(more)).items.map(({ actor, details }) =>
        [details.session_id, actor.split(',')[0], details.shown].join(' '),
      ),
    ),
  ].sort()

describe('the audit of reads', () => {
  it('has who read which session when, once a minute, and not what keys read', async () => {
    const [one, other] = [await newSession(), await newSession()]
    const ada = await person()
    await get(api, `/session/${one}/timeline`)
    for (const path of ['timeline', 'events', 'messages', 'context', 'export', 'token_counts', 'timeline'])
      if (path === 'export') await ada.client.request('GET', `/api/v1/session/${one}/export`)
      else await get(ada.client, `/session/${one}/${path}`)
    await get(ada.client, `/session/${other.toUpperCase()}`)
    expectError(await ada.client.request('GET', `/api/v1/session/${NOBODYS_ID}`), 404, 'session_not_found')
    await soon(async () =>
      expect(await noted()).toEqual([`${one} ${ada.email} content`, `${other} ${ada.email} content`].sort()),
    )
    const { items } = await page()
    expect(items.map(({ seq }) => seq)).toEqual(items.map((_, at) => at + 1))
    const keys = items.map(({ created_at, details }) => `${created_at} ${details.session_id}`)
    expect(new Set(keys).size).toBe(items.length)
    expect(items.length).toBeLessThanOrEqual(4)
    expect(items[0]).toMatchObject({
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:00\.000000Z$/),
      action: 'session.read',
      project_id: project.id,
      details: { principal_id: ada.member_id },
    })
  })

  it('counts live tails, copies, what search finds and tokens that a person made', async () => {
    const [tailed, copied, listed, given] = [
      await newSession(),
      await newSession(),
      await newSession(),
      await newSession(),
    ]
    const ada = await person('member')
    const tail = new AbortController()
    const response = await fetch(`${service.node.url}/api/v1/session/${tailed}/timeline`, {
      headers: { authorization: `Bearer ${ada.token}`, accept: 'text/event-stream' },
      signal: tail.signal,
    })
    const reader = response.body!.getReader()
    for (let text = ''; !text.includes('secret plan'); )
      text += new TextDecoder().decode((await reader.read()).value)
    tail.abort()
    expectOk(await ada.client.request('POST', `/api/v1/session/${copied}/copy`, { body: {} }))
    const token = await tokenFor(ada.client as ApiClient, { session_id: given }, ['read'])
    await get(service.rawClient(token), `/session/${given}/timeline`)
    await get(ada.client, `/session?id_prefix=${listed}`)
    // What is only listed is written when its minute is over, which it may be.
    const shown = async () => (await noted()).filter((read) => !read.startsWith(listed))
    await soon(async () =>
      expect(await shown()).toEqual([tailed, copied, given].map((id) => `${id} ${ada.email} content`).sort()),
    )
    expect(await noted(`&session_id=${copied}`)).toEqual([`${copied} ${ada.email} content`])
  })

  it('has who was told that a log is still what it was', async () => {
    const id = await newSession()
    const path = `/api/v1/session/${id}/timeline`
    const { etag } = (await api.request('GET', path)).headers
    const ada = await person()
    const known = await ada.client.request('GET', path, { headers: { 'If-None-Match': etag! } })
    expect(known.status).toBe(304)
    await soon(async () => expect(await noted()).toEqual([`${id} ${ada.email} content`]))
  })

  it('has what keys read where the project wants that, and nothing where it wants nothing', async () => {
    const id = await newSession()
    await set({ audit_reads: 'all' })
    await soon(async () => {
      await get(api, `/session/${id}/timeline`)
      // One a minute, and a busy machine may need another one until the first is written.
      const actors = (await page()).items.map(({ actor }) => actor)
      expect([...new Set(actors)]).toEqual([expect.stringMatching(/^key [0-9a-f-]{36}, from /)])
    })
    const other = await service.newProject()
    const session = expectOk(
      await service.rawClient(other.token).request<{ id: string }>('POST', '/api/v1/session', { body: {} }),
      201,
    )
    const bob = await person('viewer', other)
    await get(bob.client, `/session/${session.id}`)
    const ada = await person()
    await get(ada.client, `/session/${id}`)
    await soon(async () => expect(await noted()).toContain(`${id} ${ada.email} content`))
    expect(
      await queryRows(service.databaseUrl, 'SELECT FROM session_reads WHERE project_id = $1', [other.id]),
    ).toEqual([])
  })

  it('is read page by page, goes on from the last, and outlives the session', async () => {
    const ids = [await newSession(), await newSession(), await newSession()]
    const ada = await person()
    for (const id of ids) await get(ada.client, `/session/${id}`)
    await soon(async () => expect(await noted()).toHaveLength(3))
    const first = await page('&limit=1')
    expect(first).toMatchObject({ has_more: true, items: [{ seq: 1 }] })
    const rest = await page(`&limit=100&cursor=${first.next_cursor}`)
    expect(rest.has_more).toBe(false)
    expect(rest.items[0]!.seq).toBe(2)
    const late = await newSession()
    await get(ada.client, `/session/${late}`)
    await soon(async () => {
      const more = await page(`&limit=100&cursor=${rest.next_cursor}`)
      expect(more.items.map(({ details }) => details.session_id)).toEqual([late])
    })
    const admin = service.adminClient()
    const refused = await admin.request('GET', `/admin/v1/audit?session_id=${late}`)
    expectError(refused, 400, 'invalid_request', 'session_id')
    expectError(
      await admin.request('GET', `/admin/v1/audit?reads_of=${NOBODYS_ID}&cursor=${first.next_cursor}`),
      400,
      'invalid_cursor',
    )
    // Who read a session that is erased stays.
    expectOk(await api.request('DELETE', `/api/v1/session/${late}`))
    expect(await noted(`&session_id=${late}`)).toHaveLength(1)
  })
})

describe('a node', () => {
  it('that stops writes what is noted, lists too, and a read that two nodes saw is there once', async () => {
    const id = await newSession()
    const ada = await person()
    const node = await service.startNode()
    await get(service.rawClient(ada.token, node), `/session?id_prefix=${id}`)
    await node.stop()
    expect(await noted()).toEqual([`${id} ${ada.email} listed`])
    await Promise.all(
      [service.node, service.secondNode].map((each) =>
        get(service.rawClient(ada.token, each), `/session/${id}/timeline`),
      ),
    )
    await soon(async () =>
      expect(await noted()).toEqual([`${id} ${ada.email} content`, `${id} ${ada.email} listed`]),
    )
    const keys = (await page()).items.map(({ created_at, details }) => `${created_at} ${details.shown}`)
    expect(new Set(keys).size).toBe(keys.length)
  })
  it('with ANNALS_RETENTION_MS deletes reads that are older than the project keeps them, but not the last', async () => {
    const ada = await person()
    const ids = [await newSession(), await newSession(), await newSession()]
    for (const id of ids) await get(ada.client, `/session/${id}`)
    await soon(async () => expect(await noted()).toHaveLength(3))
    const age = "UPDATE session_reads SET read_at = read_at - interval '3 days' WHERE project_id = $1"
    await queryRows(service.databaseUrl, age, [project.id])
    await set({ audit_reads_days: 2 })
    const node = await service.startNode({ ANNALS_RETENTION_MS: '200' })
    await soon(async () => expect((await page()).items).toHaveLength(1))
    await node.stop()
    const { items } = await page()
    await get(ada.client, `/session/${await newSession()}`)
    await soon(async () =>
      expect((await page()).items.map(({ seq }) => seq)).toEqual([items[0]!.seq, items[0]!.seq + 1]),
    )
  })
})
