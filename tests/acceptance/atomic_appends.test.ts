import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { event, message, type SessionAppend, useThreeSessions } from '../harness/three_sessions.ts'

const service = useSharedService()
const three = useThreeSessions(service)
const { send, toAll, lengths } = three
const configsOf = async ({ id }: SessionLog) => expectOk(await three.api.getSession(id)).configs
let logs: SessionLog[]
beforeEach(() => {
  logs = three.logs
})

describe('an append to several sessions', () => {
  it('stores entries of both kinds in each, which are answered in the order sent as the timelines have them', async () => {
    expectOk(await logs[1]!.addEvent('ahead'))
    const { appends } = expectOk(
      await send([
        {
          session_id: logs[2]!.id.toUpperCase(),
          entries: [event({ key: 'plan' }), message({ meta: { n: 1 } })],
        },
        { session_id: logs[0]!.id, entries: [message(), message(), event()] },
        { session_id: logs[1]!.id, entries: [event({ data: { n: 1e3 } })] },
      ]),
      201,
    )
    const order = [logs[2]!, logs[0]!, logs[1]!]
    expect(appends.map(({ session_id }) => session_id)).toEqual(order.map(({ id }) => id))
    expect(appends.map(({ items }) => items.map(({ seq }) => seq))).toEqual([[1, 2], [1, 2, 3], [2]])
    for (const [index, { items }] of appends.entries()) {
      const stored = expectOk(await order[index]!.timeline()).items
      expect(stored.slice(-items.length)).toEqual(items)
    }
    expect(appends[1]!.items[1]!.parent_id).toBe(appends[1]!.items[0]!.id)
  })

  it('answers just where the entries stand where the caller has no use for them', async () => {
    expectOk(await logs[0]!.addEvent('ahead'))
    const appends = logs.slice(0, 2).map(({ id }) => ({ session_id: id, entries: [event(), message()] }))
    const path = '/api/v1/entries?with_items=false'
    const answered = expectOk(await three.api.request('POST', path, { body: { appends } }), 201)
    expect(answered).toEqual({
      appends: [
        { session_id: logs[0]!.id, items: [], seqs: [2, 3] },
        { session_id: logs[1]!.id, items: [], seqs: [1, 2] },
      ],
    })
  })

  it('keeps every digit of its numbers', async () => {
    const data = '{"a":12345678901234567890123,"b":1.50}'
    const rawBody = `{"appends":[{"session_id":"${logs[0]!.id}","configs_patch":${data},"entries":[{"kind":"event","type":"t","data":${data}}]}]}`
    const answer = await three.api.request('POST', '/api/v1/entries', { rawBody })
    expectOk(answer, 201)
    const session = await three.api.getSession(logs[0]!.id)
    for (const { text } of [answer, session]) {
      expect(text).toContain('12345678901234567890123')
      expect(text).toContain('1.50')
    }
  })

  const refused: Array<
    [what: string, at: number, more: Partial<SessionAppend>, status: number, error: string, place: string]
  > = [
    [
      'a session that does not exist',
      2,
      { session_id: NOBODYS_ID },
      404,
      'session_not_found',
      '/appends/2/session_id',
    ],
    ['an if_match that does not hold', 1, { if_match: 3 }, 409, 'seq_conflict', '/appends/1/if_match'],
    [
      'an entry that is no message',
      1,
      { entries: [event(), message({ blob: {} })] },
      400,
      'invalid_request',
      '/appends/1/entries/1/blob',
    ],
    ['no entries', 1, { entries: [] }, 400, 'invalid_request', '/appends/1/entries'],
    ['an if_match that is no number', 1, { if_match: '3' }, 400, 'invalid_request', '/appends/1/if_match'],
    [
      'a configs_patch that is no object',
      1,
      { configs_patch: [] },
      400,
      'invalid_request',
      '/appends/1/configs_patch',
    ],
    [
      'a configs_patch over 64 KiB',
      2,
      { configs_patch: { x: 'x'.repeat(65_536) } },
      413,
      'payload_too_large',
      '/appends/2/configs_patch',
    ],
    [
      'an id twice',
      0,
      { entries: ['a', 'b'].map((type) => event({ type, id: NOBODYS_ID })) },
      400,
      'invalid_request',
      '/appends/0/entries/1/id',
    ],
    [
      'a lone surrogate',
      1,
      { configs_patch: { x: '\ud800' } },
      400,
      'invalid_request',
      '/appends/1/configs_patch',
    ],
  ]
  it.each(refused)(
    'with %s stores nothing in any, and names the place',
    async (_what, at, more, status, error, place) => {
      expectError(await send(toAll(at, more)), status, error, place)
      expect(await lengths()).toEqual([0, 0, 0])
    },
  )

  it('of more than 20 sessions, 1,000 entries, or to one session twice is 400 and stores nothing', async () => {
    const of = (count: number) =>
      Array.from({ length: count }, () => ({ session_id: randomUUID(), entries: [event()] }))
    for (const appends of [of(21), [], {}, null])
      expectError(await send(appends), 400, 'invalid_request', 'appends')
    expectError(
      await send(toAll(0, { entries: Array(999).fill(event()) })),
      400,
      'invalid_request',
      '1000',
      '1001',
    )
    expectError(await send([...toAll(), toAll()[0]]), 400, 'invalid_request', '/appends/3/session_id')
    expect(await lengths()).toEqual([0, 0, 0])
  })

  it('to a session of another project gets the answer of an unknown one', async () => {
    const stranger = await newSessionLog(await service.newClient())
    const [foreign, unknown] = await Promise.all(
      [stranger.id, NOBODYS_ID].map((session_id) => send(toAll(1, { session_id }))),
    )
    expectError(foreign!, 404, 'session_not_found')
    expect(foreign!.json).toEqual(unknown!.json)
    expect(expectOk(await stranger.timeline()).items).toEqual([])
    expect(await lengths()).toEqual([0, 0, 0])
  })
})

describe('its configs_patch', () => {
  it('merges into the configs with the entries, and lists find the session by them', async () => {
    const stage = randomUUID()
    expectOk(await send(toAll(1, { configs_patch: { stage, drop: null }, if_match: 0 })), 201)
    expect(await configsOf(logs[1]!)).toEqual({ name: 'b', keep: 1, stage })
    expect(await configsOf(logs[0]!)).toEqual({ name: 'a', keep: 1, drop: 2 })
    const found = async (filter: object) =>
      expectOk(await three.api.listSessions({ filter_by_configs: JSON.stringify(filter) })).items.map(
        ({ id }) => id,
      )
    expect(await found({ stage })).toEqual([logs[1]!.id])
    expect(await found({ name: 'b', drop: 2 })).not.toContain(logs[1]!.id)
  })

  it('changes nothing if another session refuses, and is refused itself where the result would be too large', async () => {
    const big = (name: string) => ({ [name]: 'x'.repeat(65_000) })
    expectError(
      await send(
        toAll(0, { configs_patch: { stage: 1 } }).with(2, { session_id: NOBODYS_ID, entries: [event()] }),
      ),
      404,
      'session_not_found',
    )
    expectOk(await send(toAll(1, { configs_patch: big('one') })), 201)
    expectOk(await send(toAll(1, { configs_patch: big('two') })), 201)
    expectError(
      await send(toAll(1, { configs_patch: big('three') })),
      413,
      'payload_too_large',
      '/appends/1/configs_patch',
    )
    expect(Object.keys(await configsOf(logs[0]!)).sort()).toEqual(['drop', 'keep', 'name'])
    expect(Object.keys(await configsOf(logs[1]!)).sort()).toEqual(['drop', 'keep', 'name', 'one', 'two'])
    expect(await lengths()).toEqual([2, 2, 2])
  })

  it('is not merged again where its entries are stored already', async () => {
    const entries = [event({ id: randomUUID() })]
    const patched = toAll(0, { entries, configs_patch: { stage: 'first' } })
    const { appends } = expectOk(await send(patched), 201)
    expectOk(await send(toAll(0, { configs_patch: { stage: 'second' } })), 201)
    const again = expectOk(await send([patched[0]]), 201)
    expect(again.appends).toEqual([appends[0]])
    expect((await configsOf(logs[0]!)).stage).toBe('second')
  })

  it('loses nothing of 20 at once, through two nodes', async () => {
    const keys = Array.from({ length: 20 }, (_, n) => `k${n}`)
    const all = await Promise.all(
      keys.map((key, n) => send(toAll(n % 3, { configs_patch: { [key]: n } }), {}, n)),
    )
    for (const answer of all) expectOk(answer, 201)
    const configs = await Promise.all(logs.map(configsOf))
    expect(Object.keys(Object.assign({}, ...configs))).toEqual(expect.arrayContaining(keys))
    expect(await lengths()).toEqual([20, 20, 20])
  })
})

describe('a repeat of an append to several sessions', () => {
  it('with its Idempotency-Key stores nothing more and gets the first answer', async () => {
    const headers = { 'Idempotency-Key': randomUUID() }
    const appends = toAll(1, { entries: [message(), event()], configs_patch: { stage: 1 } }).reverse()
    const first = await send(appends, headers)
    expectOk(first, 201)
    expectOk(await send(toAll(1, { configs_patch: { stage: 2 } })), 201)
    for (const node of [0, 1]) {
      const again = await send(appends, headers, node)
      expectOk(again, 201)
      expect(again.json.data).toEqual(first.json.data)
      expect(again.headers['idempotent-replayed']).toBe('true')
    }
    expect(await lengths()).toEqual([2, 3, 2])
    expect((await configsOf(logs[1]!)).stage).toBe(2)
    expectError(await send(toAll(), headers), 422, 'idempotency_key_reused')
    expectError(await three.api.createSession({}, { headers }), 422, 'idempotency_key_reused')
  })

  it('at the same time as the first, through two nodes, stores once and gets the same answer', async () => {
    const headers = { 'Idempotency-Key': randomUUID() }
    const appends = toAll()
    const all = await Promise.all(Array.from({ length: 10 }, (_, n) => send(appends, headers, n)))
    for (const answer of all) expect(expectOk(answer, 201)).toEqual(all[0]!.json.data)
    expect(await lengths()).toEqual([1, 1, 1])
  })

  it('by the ids of entries gets those that are stored, and stores the others', async () => {
    const id = randomUUID()
    const entries = [event({ id: randomUUID() }), message({ id })]
    const first = expectOk(await send(toAll(0, { entries, if_match: 0 })), 201)
    const again = expectOk(await send(toAll(0, { entries, if_match: 0 })), 201)
    expect(again.appends[0]).toEqual(first.appends[0])
    expect(await lengths()).toEqual([2, 2, 2])
    const other = event({ id })
    expectError(
      await send(toAll(0, { entries: [event(), other] })),
      422,
      'idempotency_key_reused',
      '/appends/0/entries/1/id',
    )
    expect(await lengths()).toEqual([2, 2, 2])
  })
})
