import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient, SessionEvent } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { RequestOptions } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog, sessionLog, type TimelineItem } from '../harness/session_log.ts'

interface Retracted {
  retraction: SessionEvent
  items: TimelineItem[]
}

const service = useSharedService()
let api: ApiClient
beforeAll(async () => {
  api = await service.newClient()
})

const retract = (log: SessionLog, body: unknown, options: RequestOptions = {}, client = api) =>
  client.request<Retracted>('POST', `/api/v1/session/${log.id}/retractions`, { body, ...options })
const seqs = (items: Array<{ seq: number }>) => items.map(({ seq }) => seq)
const user = (content: string) => ({ kind: 'message', blob: { role: 'user', content } })
const note = (n: number, more = {}) => ({ kind: 'event', type: 'note', data: { n }, ...more })

/** Messages at seq 1, 3 and 5, notes at 2, 4 and 6. */
async function sixEntries() {
  const log = await newSessionLog(api)
  const entries = [user('a'), note(2), user('b'), note(4), user('c'), note(6)]
  const { items } = expectOk(await log.batch(entries), 201)
  return { log, items }
}

describe('a retraction', () => {
  it('appends one event that names the entries, marks them, and returns them as the timeline shows them', async () => {
    const { log, items } = await sixEntries()
    const { retraction, items: gone } = expectOk(await retract(log, { ids: [items[4]!.id, items[1]!.id] }))
    expect(retraction).toMatchObject({ seq: 7, type: 'annals.retraction', data: { seqs: [2, 5] } })
    expect(gone).toEqual([items[1], items[4]].map((item) => ({ ...item, retracted_by: 7 })))
    const timeline = expectOk(await log.timeline()).items
    expect(timeline).toEqual([
      ...items.map((item) => gone.find(({ seq }) => seq === item.seq) ?? item),
      { kind: 'event', ...retraction },
    ])
    const events = expectOk(await api.listEvents(log.id)).items
    expect(
      events.map(({ seq, ...event }) => [seq, (event as { retracted_by?: number }).retracted_by]),
    ).toEqual([
      [2, 7],
      [4, undefined],
      [6, undefined],
      [7, undefined],
    ])
    expect(seqs(expectOk(await log.timeline({ kind: 'message' })).items)).toEqual([1, 3, 5])
  })

  it('takes messages out of the list, of contexts and of the token count, and the next message still follows the last one', async () => {
    const { log, items } = await sixEntries()
    const { total_tokens } = expectOk(await log.tokens())
    expectOk(await retract(log, { ids: [items[4]!.id] }))
    expect(expectOk(await log.list()).ids).toEqual([items[0]!.id, items[2]!.id])
    expect(expectOk(await log.list({ limit: 1, time_desc: true })).ids).toEqual([items[2]!.id])
    const context = await api.request<{ ids: string[] }>('GET', `/api/v1/session/${log.id}/context`)
    expect(expectOk(context).ids).toEqual([items[0]!.id, items[2]!.id])
    expect(expectOk(await log.tokens()).total_tokens).toBe((total_tokens / 3) * 2)
    const next = expectOk(await log.add({ role: 'user', content: 'd' }), 201)
    expect(next.parent_id).toBe(items[4]!.id)
  })

  it('of the latest entry of a key makes the one before it the latest', async () => {
    const log = await newSessionLog(api)
    expectOk(await log.batch([note(1, { key: 'a' }), note(2, { key: 'a' })]), 201)
    const latest = async () =>
      expectOk(await api.request<{ items: TimelineItem[] }>('GET', `/api/v1/session/${log.id}/latest`)).items
    expect(seqs(await latest())).toEqual([2])
    expectOk(await retract(log, { last: 1 }))
    expect(seqs(await latest())).toEqual([1])
    expectOk(await retract(log, { last: 1 }))
    expect(await latest()).toEqual([])
  })

  it('of the last entries finds the newest live ones, of a kind or type if asked, and nothing where there is nothing', async () => {
    const { log } = await sixEntries()
    const pop = async (body: unknown) => seqs(expectOk(await retract(log, body)).items)
    expect(await pop({ last: 1, kind: 'message' })).toEqual([5])
    expect(await pop({ last: 2, type: 'note' })).toEqual([4, 6])
    expect(await pop({ last: 1, kind: 'event' })).toEqual([2])
    expectOk(await log.addEvent('note'))
    expect(await pop({ last: 2 })).toEqual([3, 10])
    expect(await pop({ last: 5 })).toEqual([1])
    const { retraction, items } = expectOk(await retract(log, { last: 1 }))
    expect([retraction.data, items]).toEqual([{ seqs: [] }, []])
  })

  it('of all after a seq leaves retractions as they are, and what is retracted already is skipped', async () => {
    const { log, items } = await sixEntries()
    expectOk(await retract(log, { last: 1 }))
    expect(seqs(expectOk(await retract(log, { after_seq: 2 })).items)).toEqual([3, 4, 5])
    const again = expectOk(await retract(log, { ids: [items[2]!.id, items[0]!.id] }))
    expect(seqs(again.items)).toEqual([1])
    expect(seqs(expectOk(await retract(log, { after_seq: 0 })).items)).toEqual([2])
  })

  it('is given again to a retry, and is made only at the seq that If-Match names', async () => {
    const { log } = await sixEntries()
    expectError(await retract(log, { last: 1 }, { headers: { 'If-Match': '"5"' } }), 409, 'seq_conflict')
    const headers = { 'Idempotency-Key': randomUUID(), 'If-Match': '"6"' }
    const first = await retract(log, { last: 2 }, { headers })
    expect(seqs(expectOk(first).items)).toEqual([5, 6])
    expectOk(await log.addEvent())
    const retry = await retract(log, { last: 2 }, { headers })
    expect(retry.headers['idempotent-replayed']).toBe('true')
    expect(retry.json).toEqual(first.json)
    expectError(await retract(log, { last: 1 }, { headers }), 422, 'idempotency_key_reused')
  })

  it('is refused for what is unknown, for a retraction, for other than one way to name entries, and for another project', async () => {
    const { log, items } = await sixEntries()
    const known = items[0]!.id
    expectError(await retract(log, { ids: [known, NOBODYS_ID] }), 404, 'entry_not_found', '/ids/1')
    const { retraction } = expectOk(await retract(log, { last: 1 }))
    expectError(await retract(log, { ids: [retraction.id] }), 400, 'invalid_request', '/ids/0')
    for (const body of [{}, { last: 1, after_seq: 2 }, { ids: [] }, { last: 0 }, { last: 1_001 }])
      expectError(await retract(log, body), 400, 'invalid_request')
    expectError(await retract(log, { after_seq: 1, kind: 'event' }), 400, 'invalid_request', '/kind')
    expectError(await retract(log, { after_seq: 99 }), 409, 'seq_ahead')
    const stranger = await service.newClient()
    for (const body of [{ ids: [known] }, { last: 1 }, { after_seq: 0 }])
      expectError(await retract(log, body, {}, stranger), 404, 'session_not_found')
    const own = { type: 'annals.retraction', data: {} }
    expectError(await api.appendEvent(log.id, own), 400, 'invalid_request', '/type')
    expectError(await log.batch([{ kind: 'event', ...own }]), 400, 'invalid_request', '/entries/0/type')
    expect(expectOk(await log.timeline()).items).toHaveLength(7)
  })

  it('is kept by a copy', async () => {
    const { log } = await sixEntries()
    expectOk(await retract(log, { last: 4 }))
    const copy = sessionLog(api, expectOk(await log.copy()).new_session_id)
    expect(expectOk(await copy.tokens())).toEqual(expectOk(await log.tokens()))
    expect(seqs(expectOk(await retract(copy, { last: 1 })).items)).toEqual([2])
  })
})

describe('callers at once', () => {
  it('pop different entries, the newest of those there are, while others push', async () => {
    const log = await newSessionLog(api)
    const pushed = await Promise.all(Array.from({ length: 30 }, () => log.addEvent('push')))
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) => (n % 2 ? log.addEvent('push') : retract(log, { last: 1 }))),
    )
    const popped = answers.flatMap((answer) => {
      const data = answer.json.data as unknown as Retracted | SessionEvent
      return 'items' in data ? [data] : []
    })
    expect(pushed).toHaveLength(30)
    expect(popped).toHaveLength(20)
    expect(new Set(popped.flatMap(({ items }) => seqs(items))).size).toBe(20)
    // What each popped was the newest live entry at its place in the log.
    const live: number[] = []
    for (const { seq, type, data } of expectOk(await log.timeline({ limit: 200 })).items) {
      if (type !== 'annals.retraction') live.push(seq)
      else expect((data as { seqs: number[] }).seqs).toEqual([live.pop()])
    }
  })

  it('take as many as each asks for, of its kind, and each entry goes to one of them', async () => {
    const log = await newSessionLog(api)
    const stock = Array.from({ length: 90 }, (_, n) => (n % 3 ? note(n) : user(`message ${n}`)))
    expectOk(await log.batch(stock), 201)
    const asked = Array.from({ length: 24 }, (_, n) => ({
      last: (n % 4) + 1,
      ...(n >= 8 && { kind: n < 16 ? 'message' : 'event' }),
    }))
    const answers = await Promise.all(asked.map((body) => retract(log, body)))
    const live = new Map(stock.map(({ kind }, index) => [index + 1, kind]))
    const taken = answers.map((answer, index) => ({ ...expectOk(answer), ...asked[index]! }))
    for (const { retraction, items, last, kind } of taken.sort(
      (a, b) => a.retraction.seq - b.retraction.seq,
    )) {
      const own = [...live].filter(([, of]) => kind === undefined || of === kind).map(([seq]) => seq)
      expect(seqs(items)).toEqual(own.slice(-last))
      expect(retraction.data).toEqual({ seqs: seqs(items) })
      for (const { seq, retracted_by } of items as Array<TimelineItem & { retracted_by: number }>) {
        expect(retracted_by).toBe(retraction.seq)
        live.delete(seq)
      }
    }
    const shown = expectOk(await log.timeline({ limit: 200 })).items
    for (const { items } of taken)
      expect(items).toEqual(items.map(({ seq }) => shown.find((item) => item.seq === seq)))
  })

  it('get what they pop, however long it is', async () => {
    const log = await newSessionLog(api)
    const long = (n: number) => user(`${n}`.repeat(150_000))
    expectOk(await log.batch(Array.from({ length: 6 }, (_, n) => long(n))), 201)
    const answers = await Promise.all(Array.from({ length: 6 }, () => retract(log, { last: 1 })))
    const shown = expectOk(await log.timeline()).items.filter(({ kind }) => kind === 'message')
    const popped = answers.flatMap((answer) => expectOk(answer).items)
    expect(popped.sort((a, b) => a.seq - b.seq)).toEqual(shown)
  })
})
