import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { AnnalsServer } from '../harness/annals_process.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { openTail, type Tail } from '../harness/event_stream.ts'
import { expectOk } from '../harness/expectations.ts'
import { type Project, useService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { issueToken } from '../harness/tokens.ts'

const service = useService()
const tails: Tail[] = []
let project: Project
let api: ApiClient
let log: SessionLog
let second: AnnalsServer

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
  second = await service.startNode()
})
beforeEach(async () => {
  log = await newSessionLog(api)
})
afterEach(() => {
  for (const tail of tails.splice(0)) tail.close()
})

type Options = Parameters<typeof openTail>[3] & { node?: AnnalsServer; token?: string; sessionId?: string }
async function tailOf({
  node = service.node,
  token = project.token,
  sessionId = log.id,
  ...options
}: Options = {}) {
  const tail = await openTail(node.url, token, sessionId, options)
  tails.push(tail)
  return tail
}
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)

describe('a live tail ends', () => {
  it('when its session is deleted, at each node', async () => {
    expectOk(await log.addEvent())
    const open = [await tailOf(), await tailOf({ node: second })]
    for (const tail of open) await tail.received(1)
    expectOk(await api.deleteSession(log.id))
    for (const tail of open) await tail.whenEnded(6_000)
  })

  it('within six seconds of the revocation of its token, at each node, and leaves others open', async () => {
    const { id, token } = await issueToken(service.adminClient(), project.id, { name: 'tail' })
    expectOk(await log.addEvent())
    const open = [await tailOf({ token }), await tailOf({ token, node: second })]
    const other = await tailOf()
    for (const tail of [...open, other]) await tail.received(1)
    expectOk(await service.adminClient().request('DELETE', `/admin/v1/projects/${project.id}/tokens/${id}`))
    await Promise.all(open.map((tail) => tail.whenEnded(7_000)))
    expectOk(await log.addEvent())
    await other.received(2)
    expect(other.ended).toBe(false)
  })

  it('when its token expires', async () => {
    const expires_at = new Date(Date.now() + 3_000).toISOString()
    const { token } = await issueToken(service.adminClient(), project.id, { name: 'short', expires_at })
    const tail = await tailOf({ token })
    expect(tail.status).toBe(200)
    await tail.whenEnded(10_000)
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires_at))
  })

  it('with SIGTERM of the node, which exits 0 in time with 50 open', async () => {
    const node = await service.startNode()
    const open = await Promise.all(range(1, 50).map(() => tailOf({ node })))
    expectOk(await log.addEvent())
    for (const tail of open) await tail.received(1)
    const startedAt = Date.now()
    expect((await node.stop()).code).toBe(0)
    expect(Date.now() - startedAt).toBeLessThan(10_000)
    for (const tail of open) await tail.whenEnded()
  }, 60_000)
})
