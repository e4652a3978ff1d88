import { randomBytes } from 'node:crypto'
import { afterEach, beforeAll, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { useService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { execute } from '../harness/sql.ts'
import { type Receiver, startReceiver } from '../harness/webhook_receiver.ts'

// Keys are looked up anew by each request, so that a node knows at once that a project has webhooks.
const service = useService({ ANNALS_TOKEN_CACHE_MS: '0' })
const SECRET = `whsec_${randomBytes(32).toString('base64')}`
const WAIT = { timeout: 20_000 }
let api: ApiClient
let log: SessionLog
let receivers: Receiver[]

let second: Awaited<ReturnType<typeof service.startNode>>

beforeAll(async () => {
  second = await service.startNode()
})
beforeEach(async () => {
  receivers = []
  api = await service.newClient()
  log = await newSessionLog(api)
})
afterEach(() => Promise.all(receivers.map((receiver) => receiver.close())))

interface Webhook {
  id: string
  url: string
  waiting_sessions: number
  last_error: string | null
  given_up: number
}
const create = (body: unknown, client = api) => client.request<Webhook>('POST', '/api/v1/webhooks', { body })
const list = async () => expectOk(await api.request<{ items: Webhook[] }>('GET', '/api/v1/webhooks')).items
const remove = (id: string, client = api) => client.request('DELETE', `/api/v1/webhooks/${id}`)

/** A webhook to a receiver, which answers as told. */
async function receive(events: string[], answer?: Parameters<typeof startReceiver>[1], client = api) {
  const receiver = await startReceiver(SECRET, answer)
  receivers.push(receiver)
  const { id } = expectOk(await create({ url: `${receiver.url}/hook`, events, secret: SECRET }, client), 201)
  return { receiver, id, seqs: () => receiver.received.map(({ data }) => data.seq) }
}

describe('a node that is stopped', () => {
  const stopped = useService({ ANNALS_TOKEN_CACHE_MS: '0' })

  it('hands back what it was about to tell a webhook, so that another node tells it at once', async () => {
    const client = await stopped.newClient()
    let isSilent = true
    const answer = () => (isSilent ? undefined : 200)
    const { receiver, seqs } = await receive(['event'], answer, client)
    const silent = await newSessionLog(client)
    expectOk(await silent.addEvent())
    await vi.waitFor(() => expect(receiver.requests).toBe(1), WAIT)
    await stopped.node.stop()
    isSilent = false
    await stopped.startNode()
    await vi.waitFor(() => expect(seqs()).toEqual([1]), WAIT)
  })
})

describe('a webhook', () => {
  it('is told of new entries of its kinds, signed, as the timeline has them, in order', async () => {
    expectOk(await log.addEvent('note'))
    const { receiver, seqs } = await receive(['message', 'event.note'])
    expectOk(await log.add({ role: 'user', content: 'hello' }), 201)
    for (const type of ['other', 'note', 'note']) expectOk(await log.addEvent(type, { n: 1e3 }))
    await vi.waitFor(() => expect(seqs()).toEqual([2, 4, 5]), WAIT)
    const stored = expectOk(await log.timeline()).items
    for (const { id, type, data } of receiver.received) {
      expect(data).toEqual({ session_id: log.id, seq: data.seq, entry: stored[data.seq - 1] })
      expect(id).toBe(`${log.id}-${data.seq}`)
      expect(type).toBe(data.seq === 2 ? 'message' : 'event.note')
    }
  })

  it('retries what failed before it sends the next entry of the session, while other sessions go on', async () => {
    let failures = 2
    const { receiver, seqs, id } = await receive(['event'], ({ data }) =>
      data.session_id === log.id && data.seq === 1 && failures-- > 0 ? 500 : 200,
    )
    const other = await newSessionLog(api)
    for (const to of [log, log, other]) expectOk(await to.addEvent())
    await vi.waitFor(() => expect(seqs()).toEqual([1]), WAIT)
    expect(receiver.received[0]!.data.session_id).toBe(other.id)
    await vi.waitFor(async () => expect((await list())[0]!.last_error).toContain('500'), WAIT)
    await vi.waitFor(() => expect(seqs()).toEqual([1, 1, 2]), { ...WAIT, timeout: 40_000 })
    await vi.waitFor(async () => expect((await list())[0]!.waiting_sessions).toBe(0), WAIT)
    expect(expectOk(await remove(id))).toEqual({})
    expect(await list()).toEqual([])
  })

  it('gives up and counts an entry that could not be delivered within a day, and continues after it', async () => {
    let isAway = true
    const { seqs, id } = await receive(['event'], () => (isAway ? 503 : 200))
    expectOk(await log.addEvent())
    await vi.waitFor(async () => expect((await list())[0]!.last_error).toContain('503'), WAIT)
    expect((await list())[0]!.given_up).toBe(0)
    for (const [change, of] of [
      [`webhooks SET created_at = now() - interval '25 hours' WHERE id`, id],
      [`entries SET created_at = now() - interval '25 hours' WHERE session_id`, log.id],
      ['webhook_deliveries SET not_before = now() WHERE session_id', log.id],
    ] as const)
      await execute(service.databaseUrl, `UPDATE ${change} = $1`, [of])
    await vi.waitFor(async () => expect((await list())[0]!.given_up).toBe(1), { ...WAIT, timeout: 40_000 })
    isAway = false
    expectOk(await log.addEvent())
    await vi.waitFor(() => expect(seqs()).toEqual([2]), { ...WAIT, timeout: 40_000 })
    expect((await list())[0]!.given_up).toBe(1)
  })

  it('is told of requests and of input, but not of input that was seen to meanwhile', async () => {
    let isAway = true
    const { receiver } = await receive(['request.opened', 'input.added'], () => (isAway ? 503 : 200))
    const at = `/api/v1/session/${log.id}`
    const add = async (data: object) => {
      const body = { mode: 'queue', kind: 'event', type: 'go', data }
      return expectOk(await api.request<{ id: string; input: object }>('POST', `${at}/inbox`, { body }), 201)
    }
    const gone = await add({ text: 'gone' })
    await vi.waitFor(() => expect(receiver.requests).toBeGreaterThan(0), WAIT)
    expectOk(await api.request('POST', `${at}/entries`, { body: { apply: [gone.id] } }), 201)
    const kept = await add({ text: 'kept' })
    const call = { name: 'pay', arguments: { eur: 5 } }
    const asked = await api.request('POST', `${at}/requests`, { body: { kind: 'approval', call } })
    isAway = false
    await vi.waitFor(() => expect(receiver.received).toHaveLength(2), { ...WAIT, timeout: 40_000 })
    const of = (type: string) => receiver.received.find((one) => one.type === type)
    expect(of('input.added')).toMatchObject({
      id: `${log.id}-input-${kept.id}`,
      data: { session_id: log.id, input_id: kept.id, input: kept.input },
    })
    expect(of('request.opened')!.data).toMatchObject({ seq: 2, request: expectOk(asked, 201) })
    await execute(service.databaseUrl, 'UPDATE webhook_deliveries SET not_before = now()')
    await vi.waitFor(async () => expect((await list())[0]!.waiting_sessions).toBe(0), WAIT)
    expect(receiver.received).toHaveLength(2)
  })

  it('follows no redirect', async () => {
    const { receiver } = await receive(['event'], () => 302)
    expectOk(await log.addEvent())
    await vi.waitFor(async () => expect((await list())[0]!.last_error).toContain('302'), WAIT)
    expect(receiver.requests).toBe(1)
  })

  it('that never answers, or sends without end, holds up no other', async () => {
    const slow = await receive(['event'], (_, response) => {
      response.writeHead(200)
      const send = () => {
        while (!response.destroyed && response.write('x'.repeat(10_000))) {}
      }
      response.on('drain', send)
      send()
      return undefined
    })
    const silent = await receive(['event'], () => undefined)
    const quick = await receive(['event'])
    const logs = await Promise.all(Array.from({ length: 10 }, () => newSessionLog(api)))
    for (const each of logs) expectOk(await each.addEvent())
    await vi.waitFor(() => expect(quick.receiver.received).toHaveLength(10), WAIT)
    // Two at a time from each of both nodes; where files share a database, nodes of others deliver as well.
    if (inject('testServer').mode === 'cloned') expect(silent.receiver.requests).toBeLessThanOrEqual(4)
    await vi.waitFor(() => expect(slow.receiver.requests).toBe(10), WAIT)
  })

  it('is told of an entry that is too large without the entry', async () => {
    const { receiver } = await receive(['event'])
    expectOk(await log.addEvent('note', { text: 'x'.repeat(300_000) }))
    await vi.waitFor(() => expect(receiver.received).toHaveLength(1), WAIT)
    expect(receiver.received[0]!.data).toEqual({ session_id: log.id, seq: 1, entry: null })
  })

  it('is told of everything although every node is killed', async () => {
    let isAway = true
    const { receiver, seqs } = await receive(['event'], () => (isAway ? 503 : 200))
    for (let n = 0; n < 3; n += 1) expectOk(await log.addEvent())
    await vi.waitFor(() => expect(receiver.requests).toBeGreaterThan(0), WAIT)
    for (const node of [service.node, second]) await node.kill()
    isAway = false
    // Leases of killed nodes end by the clock, which is too slow for a test.
    await execute(service.databaseUrl, 'UPDATE webhook_deliveries SET not_before = now()')
    await service.startNode()
    await vi.waitFor(() => expect(seqs()).toEqual([1, 2, 3]), { ...WAIT, timeout: 40_000 })
  })
})
