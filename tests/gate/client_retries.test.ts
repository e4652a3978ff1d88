import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Annals } from '../../packages/client/dist/index.js'
import { type Cut, type CuttingProxy, cuttingProxy } from '../harness/cutting_proxy.ts'
import { useSharedService } from '../harness/service.ts'

const CUTS: Cut[] = ['lose_request', 'lose_answer', 'cut_answer']

const service = useSharedService()
let proxy: CuttingProxy
/** At the service itself, and at the proxy before it. */
let direct: Annals
let annals: Annals

beforeAll(async () => {
  const { token } = await service.newProject()
  proxy = await cuttingProxy(service.node.url)
  direct = new Annals({ url: service.node.url, token })
  annals = new Annals({ url: proxy.url, token })
})
afterAll(() => proxy.close())

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = []
  for await (const item of items) collected.push(item)
  return collected
}

describe.each(CUTS)('when the connection breaks (%s)', (cut) => {
  it('an append is stored once and answered', async () => {
    const { id } = await direct.sessions.create()
    proxy.script.push(cut, cut)
    const event = await annals.sessions.append(id, { type: 'note', data: { n: 1 } })
    expect(await all(direct.sessions.events(id))).toEqual([event])
    proxy.script.push(cut)
    const message = await annals.sessions.appendMessage(id, { blob: { role: 'user', content: 'Hi' } })
    expect(message.seq).toBe(2)
    proxy.script.push(cut)
    const { items } = await annals.sessions.appendBatch(id, [
      { kind: 'event', type: 'a', data: {} },
      { kind: 'event', type: 'b', data: {} },
    ])
    expect(items.map(({ seq }) => seq)).toEqual([3, 4])
    expect(await all(direct.sessions.timeline(id))).toHaveLength(4)
  })

  it('an append on condition does not take itself for another', async () => {
    const { id } = await direct.sessions.create()
    proxy.script.push(cut)
    const event = await annals.sessions.append(id, { type: 'note', data: {} }, { if_match: 0 })
    expect(event.seq).toBe(1)
  })

  it('a session, a copy and a learning space are made once', async () => {
    const user = `user-${cut}`
    proxy.script.push(cut)
    const { id } = await annals.sessions.create({ user })
    proxy.script.push(cut)
    const { new_session_id } = await annals.sessions.copy(id)
    expect((await all(direct.sessions.list({ user }))).map((session) => session.id)).toEqual([
      id,
      new_session_id,
    ])
    proxy.script.push(cut)
    const space = await annals.learningSpaces.create({ user })
    expect(await all(direct.learningSpaces.list({ user }))).toEqual([space])
  })

  it('what is deleted, replaced or merged is so afterwards', async () => {
    const { id } = await direct.sessions.create()
    proxy.script.push(cut)
    await annals.sessions.configs.replace(id, { a: 1, b: 2 })
    proxy.script.push(cut)
    expect(await annals.sessions.configs.merge(id, { a: null })).toEqual({ configs: { b: 2 } })
    proxy.script.push(cut)
    await annals.sessions.delete(id)
    await expect(direct.sessions.get(id)).rejects.toMatchObject({ error: 'session_not_found' })
  })

  it('a request is asked once, and whoever answered it first is not taken for a second one', async () => {
    const { id } = await direct.sessions.create()
    proxy.script.push(cut)
    const asked = await annals.runs.request(id, { kind: 'approval', text: 'Pay?' })
    proxy.script.push(cut)
    const answered = await annals.runs.resolve(asked.id, { decision: 'approve', by: 'ada' })
    expect(answered).toMatchObject({ id: asked.id, decision: 'approve', by: 'ada' })
    const others = await Promise.all(
      [1, 2].map(() => direct.runs.request(id, { kind: 'question', text: 'Which?' })),
    )
    proxy.script.push(cut)
    const resolutions = others.map(({ id: request_id }) => ({
      request_id,
      decision: 'answer' as const,
      answer: 1,
    }))
    const many = await annals.runs.resolveAll(resolutions)
    expect(many.map(({ resolved_seq }) => resolved_seq)).toEqual([5, 6])
    expect(await all(direct.sessions.events(id))).toHaveLength(6)
    await expect(direct.runs.resolve(asked.id, { decision: 'approve', by: 'ada' })).rejects.toMatchObject({
      error: 'resolved',
    })
  })

  it('a list goes on', async () => {
    const user = `list-${cut}`
    const ids: string[] = []
    for (let n = 0; n < 5; n += 1) ids.push((await direct.sessions.create({ user })).id)
    proxy.script.push(undefined, cut, undefined, cut)
    const seen = await all(annals.sessions.list({ user, limit: 2 }))
    expect(seen.map(({ id }) => id)).toEqual(ids)
  })
})

describe('many appends over a bad connection', () => {
  it('are each stored once', async () => {
    const { id } = await direct.sessions.create()
    const steps = [...CUTS, undefined, undefined]
    for (let n = 0; n < 60; n += 1) proxy.script.push(steps[(n * 7) % steps.length])
    const append = (n: number) =>
      annals.sessions.append(id, { type: 'note', data: { n } }, { retries: 30, timeout_ms: 25_000 })
    const appended = await Promise.all(Array.from({ length: 40 }, (_, n) => append(n)))
    proxy.script.length = 0
    const stored = await all(direct.sessions.events(id))
    expect(stored.map(({ seq }) => seq)).toEqual(Array.from({ length: 40 }, (_, n) => n + 1))
    const bySeq = appended.toSorted((one, other) => one.seq - other.seq)
    expect(stored).toEqual(bySeq)
  })
})

describe('a service that is away for a while', () => {
  it('gets the append when it is back, once', async () => {
    const { token } = await service.newProject()
    const port = String(20_000 + Math.floor(Math.random() * 10_000))
    const first = await service.startNode({ PORT: port })
    const client = new Annals({ url: first.url, token, retries: 20, timeout_ms: 60_000 })
    const { id } = await client.sessions.create()
    await first.kill()
    const appending = client.sessions.append(id, { type: 'note', data: {} })
    const second = await service.startNode({ PORT: port })
    expect(second.url).toBe(first.url)
    expect((await appending).seq).toBe(1)
    expect(await all(client.sessions.events(id))).toHaveLength(1)
  })

  it('is told apart by its address when it stays away', async () => {
    const nobody = new Annals({ url: 'http://127.0.0.1:1', token: 'sk-1', retries: 1 })
    await expect(nobody.ping()).rejects.toMatchObject({
      status: 0,
      error: 'connection_failed',
      message: expect.stringContaining('http://127.0.0.1:1/'),
    })
  })
})

describe('an erasure', () => {
  it('whose answer is lost throws, and is done', async () => {
    await direct.sessions.create({ user: 'gone' })
    proxy.script.push('lose_answer')
    await expect(annals.users.erase('gone')).rejects.toMatchObject({ error: 'connection_failed' })
    await expect(annals.users.erase('gone')).rejects.toMatchObject({ error: 'user_not_found' })
  })
})
