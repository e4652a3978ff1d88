import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { useService } from '../harness/service.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'
import { walkPages } from '../harness/walk_pages.ts'

const SESSIONS = 8
const WORKERS = 20
const INPUTS = IS_THOROUGH ? 2_000 : 400
const TTL_MS = 2_000

const service = useService()

interface Claimed {
  session_id: string
  fence: number
  inputs: Array<{ id: string }>
}

/** Whether a call failed because its node was killed, so that nobody knows what it did. */
const isLost = (error: unknown) => (error as NodeJS.ErrnoException).code !== undefined

/** Claims, applies and releases until there is nothing left to do, or its node dies. */
async function work(client: ApiClient, owner: string, isDone: () => boolean): Promise<void> {
  while (!isDone()) {
    try {
      const body = { owner, ttl_ms: TTL_MS, wait_ms: 200, max: 2 }
      const claimed = await client.request<{ items: Claimed[] }>('POST', '/api/v1/work/claim', { body })
      for (const { session_id, fence, inputs } of expectOk(claimed).items) {
        const at = `/api/v1/session/${session_id}`
        const headers = { 'Annals-Fence': String(fence) }
        const apply = inputs.map(({ id }) => id)
        const answer = await client.request('POST', `${at}/entries`, { body: { apply }, headers })
        if (answer.status !== 201) expect(['fenced', 'not_pending']).toContain(answer.json.error)
        await client.request('DELETE', `${at}/lease`, { query: { fence } })
      }
    } catch (error) {
      if (!isLost(error)) throw error
      return
    }
  }
}

it('input is in the log once and in order, whichever node is killed at which step of which worker', async () => {
  const { token } = await service.newProject()
  const api = await service.newClient({ token })
  const sessions: string[] = []
  for (let n = 0; n < SESSIONS; n++) sessions.push(expectOk(await api.createSession({}), 201).id)
  let isDone = false
  const doomed = [await service.startNode(), await service.startNode()]
  const workers: Promise<void>[] = []
  for (let n = 0; n < WORKERS; n++) {
    const node = doomed[n % 4]
    const client = await service.newClient({ token, ...(node && { node }) })
    workers.push(work(client, `w${n}`, () => isDone))
  }
  const sent = new Map<string, string[]>(sessions.map((id) => [id, []]))
  for (let n = 0; n < INPUTS; n++) {
    const id = randomUUID()
    const session_id = sessions[n % SESSIONS]!
    const body = { id, mode: 'queue', kind: 'event', type: 'input', data: { n } }
    expectOk(await api.request('POST', `/api/v1/session/${session_id}/inbox`, { body }), 201)
    sent.get(session_id)!.push(id)
    if (n === Math.floor(INPUTS / 3)) await doomed[0]!.kill()
    if (n === Math.floor(INPUTS / 2)) await doomed[1]!.kill()
  }
  const logs = () =>
    Promise.all(sessions.map((id) => walkPages((cursor) => api.listEvents(id, { limit: 200, cursor }))))
  for (const deadline = performance.now() + 60_000; ; await sleep(100)) {
    const stored = (await logs()).reduce((sum, { length }) => sum + length, 0)
    if (stored >= INPUTS || performance.now() > deadline) break
  }
  isDone = true
  await Promise.all(workers)
  const stored = (await logs()).map((events) => events.map(({ id }) => id))
  expect(stored).toEqual(sessions.map((id) => sent.get(id)))
}, 120_000)

it('another runner holds the lease of one that is gone when its time is over, whatever the clocks of both say', {
  retry: 2,
}, async () => {
  const { token } = await service.newProject()
  const doomed = await service.startNode()
  const [holder, next] = [
    await service.newClient({ token, node: doomed }),
    await service.newClient({ token }),
  ]
  const { id } = expectOk(await holder.createSession({}), 201)
  const take = (client: ApiClient, owner: string, wait_ms: number) =>
    client.request<{ fence: number; expires_at: string }>('POST', `/api/v1/session/${id}/lease`, {
      body: { owner, ttl_ms: TTL_MS, wait_ms },
    })
  const first = expectOk(await take(holder, 'a', 0))
  await doomed.kill()
  const second = expectOk(await take(next, 'b', 30_000))
  expect(second.fence).toBeGreaterThan(first.fence)
  // By the database's clock: the next lease began when the first was over, and less than a second later.
  const late_ms = Date.parse(second.expires_at) - TTL_MS - Date.parse(first.expires_at)
  expect(late_ms).toBeGreaterThanOrEqual(0)
  expect(late_ms).toBeLessThan(1_000)
})
