import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import { newSearchingProjects, search, untilIndexed } from '../harness/search.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog, sessionLog, type TimelineItem } from '../harness/session_log.ts'

const service = useSharedService()
const transfers = useTransfers(service)
let project: Project
let api: ApiClient

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

/** As it is sent, and as it is answered. */
const SENT = '2024-02-29T23:30:00.1234567-01:30'
const SHOWN = '2024-03-01T01:00:00.123456Z'
const message = (more: object = {}) => ({ kind: 'message', blob: { role: 'user', content: 'Hi' }, ...more })
const event = (more: object = {}) => ({ kind: 'event', type: 'note', data: {}, ...more })
const timesOf = (items: object[]) => items.map((item) => (item as TimelineItem).occurred_at)
const itemsOf = async (log: SessionLog) => expectOk(await log.timeline({ limit: 200 })).items

describe('when an entry happened', () => {
  it('is kept for events and messages, however they are sent, and shown wherever they are', async () => {
    const log = await newSessionLog(api)
    const path = `/api/v1/session/${log.id}`
    const dated = { occurred_at: SENT }
    const answers = [
      expectOk(await api.appendEvent(log.id, { type: 'note', data: {}, ...dated })),
      expectOk(await log.add({ role: 'user', content: 'Hi' }, dated), 201),
      // In the second way, a flush with messages; none of it is in the way of entries without a time.
      ...expectOk(await log.batch([event(dated), event(), message({ ...dated, key: 'k' })]), 201).items,
      ...expectOk(
        await api.request<{ appends: Array<{ items: TimelineItem[] }> }>('POST', '/api/v1/entries', {
          body: { appends: [{ session_id: log.id, entries: [event(dated), message()] }] },
        }),
        201,
      ).appends[0]!.items,
    ]
    const times = [SHOWN, SHOWN, SHOWN, undefined, SHOWN, SHOWN, undefined]
    expect(timesOf(answers)).toEqual(times)
    const items = await itemsOf(log)
    expect(timesOf(items)).toEqual(times)
    expect(items.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(items.every(({ created_at }) => (created_at as string) > '2026')).toBe(true)
    expect(timesOf(expectOk(await api.listEvents(log.id)).items)).toEqual([SHOWN, SHOWN, undefined, SHOWN])
    const page = expectOk(await log.list({ with_events: true }))
    expect(timesOf(page.events!)).toEqual([SHOWN, SHOWN, undefined, SHOWN])
    const get = async (rest: string) => expectOk(await api.request<{ items: object[] }>('GET', path + rest))
    expect(timesOf((await get('/latest')).items)).toEqual([SHOWN])
    const pop = { body: { last: 2, entries: [event(dated)] } }
    const popped = await api.request<{ items: object[] }>('POST', `${path}/retractions`, pop)
    expect(timesOf(expectOk(popped).items)).toEqual([SHOWN, undefined])
    const copy = expectOk(await log.copy()).new_session_id
    expect(timesOf(await itemsOf(sessionLog(api, copy)))).toEqual([...times, undefined, SHOWN])
  })

  it('makes the duration that the console shows of a session', async () => {
    const log = await newSessionLog(api)
    const times = ['2024-02-29T23:30:00Z', '2024-02-29T23:55:00Z'].map((occurred_at) =>
      event({ occurred_at }),
    )
    expectOk(await log.batch(times), 201)
    const path = `/console/data/figures?ids=${log.id}`
    const figures = await api.request<{ items: Array<{ duration_ms: number }> }>('GET', path)
    expect(expectOk(figures).items[0]!.duration_ms).toBe(25 * 60_000)
  })

  it('comes with a message that is sent as a form', async () => {
    const log = await newSessionLog(api)
    const form = new FormData()
    const blob = { role: 'user', parts: [{ type: 'file', file_field: 'f' }] }
    form.append('payload', JSON.stringify({ format: 'acontext', blob, occurred_at: SENT }))
    form.append('f', new Blob(['x'], { type: 'text/plain' }), 'f.txt')
    const sent = new Response(form)
    const answer = await api.request<object>('POST', `/api/v1/session/${log.id}/messages`, {
      rawBody: Buffer.from(await sent.arrayBuffer()),
      headers: { 'Content-Type': sent.headers.get('content-type')! },
    })
    expect(expectOk(answer, 201)).toMatchObject({ occurred_at: SHOWN })
  })

  it('belongs to what a retry has to repeat', async () => {
    const log = await newSessionLog(api)
    const id = randomUUID()
    const first = expectOk(await log.batch([event({ id, occurred_at: SENT })]), 201)
    expect(expectOk(await log.batch([event({ id, occurred_at: SHOWN })]), 201)).toEqual(first)
    for (const other of [{}, { occurred_at: '2024-03-01T01:00:00.123457Z' }])
      expectError(await log.batch([event({ id, ...other })]), 422, 'idempotency_key_reused', '/entries/0/id')
    const options = { headers: { 'Idempotency-Key': randomUUID() } }
    const body = { type: 'note', data: {}, occurred_at: SENT }
    const once = await api.appendEvent(log.id, body, options)
    const again = await api.appendEvent(log.id, body, options)
    expect(again.text).toBe(once.text)
    expect(again.text).toContain(`"occurred_at":"${SHOWN}"`)
  })

  it.each([
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000000Z'],
    ['9999-12-31T23:59:59.999999999Z', '9999-12-31T23:59:59.999999Z'],
    ['2026-11-26t09:30:00+23:59', '2026-11-25T09:31:00.000000Z'],
  ])('may be %s', async (occurred_at, shown) => {
    const log = await newSessionLog(api)
    expect(expectOk(await log.batch([event({ occurred_at })]), 201).items[0]).toMatchObject({
      occurred_at: shown,
    })
    expect(timesOf(await itemsOf(log))).toEqual([shown])
  })

  it.each([
    ...['2026-11-26', '2026-11-26T09:30:00', '2026-11-26 09:30:00Z', '2026-02-29T09:30:00Z', 'now', ''],
    ...['2026-11-26T24:00:00Z', '2026-11-26T09:60:00Z', '2026-12-31T23:59:60Z', '2026-11-26T09:30:00+24:00'],
    ...['0000-12-31T23:59:59Z', '0001-01-01T00:00:00+00:01', '9999-12-31T23:59:59-00:01', 'infinity'],
    ...['12026-11-26T09:30:00Z', 1_764_149_400, null],
  ])('is refused as %j, with its place, and nothing is stored', async (occurred_at) => {
    const log = await newSessionLog(api)
    const wrong = { occurred_at }
    const single = await api.appendEvent(log.id, { type: 'note', data: {}, ...wrong })
    expectError(single, 400, 'invalid_request', '/occurred_at must be a time such as')
    expectError(await log.add({ role: 'user', content: 'Hi' }, wrong), 400, 'invalid_request', '/occurred_at')
    const batch = await log.batch([event(), message(wrong)])
    expectError(batch, 400, 'invalid_request', '/entries/1/occurred_at must be a time such as')
    const appends = [{ session_id: log.id, entries: [event(), event(wrong)] }]
    const several = await api.request('POST', '/api/v1/entries', { body: { appends } })
    expectError(several, 400, 'invalid_request', '/appends/0/entries/1/occurred_at must be a time')
    expect(await itemsOf(log)).toEqual([])
  })

  it('is in an export, and comes back with an import', async () => {
    const log = await newSessionLog(api)
    expectOk(await log.batch([event({ occurred_at: SENT }), message(), message({ occurred_at: SHOWN })]), 201)
    const { path, body } = await transfers.export(project.name, '--session', log.id)
    const target = await service.newProject()
    await transfers.import(path, target.name)
    expect((await transfers.export(target.name)).body).toEqual(body)
    expect(body.filter((line) => line.includes(`"occurred_at":"${SHOWN}"`))).toHaveLength(2)
    const there = await service.newClient({ token: target.token })
    expect(timesOf(await itemsOf(sessionLog(there, log.id)))).toEqual([SHOWN, undefined, SHOWN])
  })

  it('is what a search goes by between two times, and shows', async () => {
    const [searching] = await newSearchingProjects(service, 1)
    const there = await service.newClient({ token: searching!.token })
    const log = await newSessionLog(there)
    const words = (text: string, occurred_at?: string) =>
      event({ data: { text }, ...(occurred_at && { occurred_at }) })
    const future = '2999-01-01T00:00:00Z'
    const entries = [words('plum old', SENT), words('plum new'), words('plum skewed', future)]
    const { items } = expectOk(await log.batch(entries), 201)
    const stored = items[0]!.created_at as string
    await untilIndexed(there, stored)
    for (const mode of ['words', 'recall']) {
      const seqs = async (query: object) => {
        const page = expectOk(await search(there, 'plum', { mode, group: 'entry', ...query }))
        return page.items.map(({ seq }) => seq).toSorted()
      }
      expect(await seqs({})).toEqual([1, 2, 3])
      expect(await seqs({ to: '2025-01-01T00:00:00Z' })).toEqual([1])
      expect(await seqs({ from: '2024-02-01T00:00:00Z', to: SHOWN })).toEqual([1])
      expect(await seqs({ from: '2024-03-01T01:00:00.123457Z' })).toEqual([2, 3])
      // What says that it will happen was known when it was stored.
      expect(await seqs({ from: stored, to: stored })).toEqual([2, 3])
      expect(await seqs({ to: '2024-03-01T01:00:00.123455Z' })).toEqual([])
    }
    const { items: found } = expectOk(await search(there, 'plum old'))
    expect(found).toEqual([expect.objectContaining({ seq: 1, created_at: stored, occurred_at: SHOWN })])
  })
})
