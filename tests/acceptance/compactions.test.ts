import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient, SessionEvent } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { Answer, RequestOptions } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog, sessionLog, type TimelineItem } from '../harness/session_log.ts'
import { issueToken } from '../harness/tokens.ts'

interface Context {
  items: Array<Record<string, unknown>>
  ids: string[]
  tokens: number
  from_seq: number
  compaction_seq: number
  pin: string
}

type Logged = TimelineItem & { type?: string; data?: { to_seq: number }; retracted_by?: number }

const service = useSharedService()
let api: ApiClient
beforeAll(async () => {
  api = await service.newClient()
})

const compact = (log: SessionLog, body: object, options: RequestOptions = {}, client = api) =>
  client.request<SessionEvent>('POST', `/api/v1/session/${log.id}/compactions`, { body, ...options })
const retract = (log: SessionLog, body: unknown, client = api) =>
  client.request<{ retraction: SessionEvent; items: TimelineItem[] }>(
    'POST',
    `/api/v1/session/${log.id}/retractions`,
    { body },
  )
const contextOf = async ({ id }: SessionLog, query: Record<string, string | number> = {}, client = api) => {
  const text = Object.entries(query).map(([key, value]) => [key, String(value)])
  return expectOk<Context>(
    await client.request('GET', `/api/v1/session/${id}/context?${new URLSearchParams(text as [])}`),
  )
}
const expectRefused = (answer: Answer<unknown>, why: string) =>
  expectError(answer, 400, 'invalid_request', why)
const textsOf = ({ items }: Context) => items.map(({ content }) => content)

const user = (content: string) => ({ role: 'user', content })
const summary = (content = 'What was said before.') => ({ blob: user(content) })
const message = (blob: object) => ({ kind: 'message', blob })
const said = (...texts: string[]) => texts.map((text) => message(user(text)))
const call = (id: string) =>
  message({
    role: 'assistant',
    content: null,
    tool_calls: [{ id, type: 'function', function: { name: 'look', arguments: '{}' } }],
  })
const result = (tool_call_id: string) =>
  message({ role: 'tool', tool_call_id, content: `result of ${tool_call_id}` })

async function logOf(...entries: object[]): Promise<{ log: SessionLog; items: TimelineItem[] }> {
  const log = await newSessionLog(api)
  const { items } = expectOk(await log.batch(entries), 201)
  return { log, items }
}

describe('a compaction', () => {
  it('is an event whose summary contexts begin with, after the instructions and ahead of what follows', async () => {
    const { log, items } = await logOf(
      message({ role: 'system', content: 'Be brief.' }),
      ...said('a', 'b', 'c', 'd'),
    )
    const event = expectOk(
      await compact(log, { to_seq: 4, except: [items[2]!.id], summary: summary(), by: 'me', model: 'm' }),
      201,
    )
    expect(event).toMatchObject({ seq: 6, type: 'annals.compaction' })
    expect(event.data).toEqual({
      from_seq: 1,
      to_seq: 4,
      except_seqs: [3],
      summary: [{ format: 'openai', blob: user('What was said before.') }],
      by: 'me',
      model: 'm',
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      entries: 4,
      tokens: expect.any(Number),
    })
    const context = await contextOf(log)
    expect(textsOf(context)).toEqual(['Be brief.', 'What was said before.', 'b', 'd'])
    expect(context.ids).toEqual([items[0]!.id, event.id, items[2]!.id, items[4]!.id])
    expect(context).toMatchObject({ compaction_seq: 6, from_seq: 5 })
    const whole = await contextOf(log, { compaction: 'none' })
    expect(textsOf(whole)).toEqual(['Be brief.', 'a', 'b', 'c', 'd'])
    expect(whole.compaction_seq).toBe(0)
    expect(context.tokens).toBe(whole.tokens - 2 * 1 + (event.data as { tokens: number }).tokens)
    expect(expectOk(await log.list()).items).toHaveLength(5)
  })

  it('may have several messages, each in its own format, which are converted like others', async () => {
    const { log } = await logOf(...said('a', 'b'))
    const messages = [
      { blob: { role: 'user', parts: [{ text: 'one' }] }, format: 'gemini' },
      { blob: { type: 'message', role: 'user', content: 'two' }, format: 'responses' },
    ]
    expectOk(await compact(log, { to_seq: 1, summary: messages }), 201)
    expect(textsOf(await contextOf(log))).toEqual(['one', 'two', 'b'])
    const { items } = await contextOf(log, { format: 'gemini' })
    expect(items[0]).toEqual({ role: 'user', parts: [{ text: 'one' }] })
  })

  it('that covers everything leaves the summary, to which later messages are added', async () => {
    const { log } = await logOf(...said('a', 'b'))
    expectOk(await compact(log, { to_seq: 2, summary: summary('s') }), 201)
    const { pin, ...empty } = await contextOf(log)
    expect(textsOf(empty as Context)).toEqual(['s'])
    expectOk(await log.add(user('c')), 201)
    expect(textsOf(await contextOf(log, { pin }))).toEqual(['s', 'c'])
  })

  it('stays ahead of a context that is cut, whose messages follow without a gap from from_seq on', async () => {
    const { log } = await logOf(
      ...said('a', 'b', ...Array.from({ length: 40 }, (_, n) => `${n} ${'word '.repeat(50)}`)),
    )
    expectOk(await compact(log, { to_seq: 2, summary: summary('s') }), 201)
    const all = await contextOf(log, { max_tokens: 3_000 })
    expect(all).toMatchObject({ from_seq: 3 })
    expect(all.items).toHaveLength(41)
    const cut = await contextOf(log, { max_tokens: 1_000 })
    expect(textsOf(cut)[0]).toBe('s')
    expect(cut.tokens).toBeLessThanOrEqual(600)
    expect(cut.items).toHaveLength(1 + 42 - cut.from_seq + 1)
  })

  it('is sent again, byte for byte, over 1,000 appends with a pin, until there is a newer one', async () => {
    const { log } = await logOf(...said(...Array.from({ length: 20 }, (_, n) => `message ${n}`)))
    expectOk(await compact(log, { to_seq: 10, summary: summary('s') }), 201)
    let before = await contextOf(log, { max_tokens: 8_000 })
    let cuts = 0
    for (let round = 0; round < 50; round++) {
      expectOk(
        await log.batch(said(...Array.from({ length: 20 }, (_, n) => `${round} ${n} ${'word '.repeat(20)}`))),
        201,
      )
      const next = await contextOf(log, { max_tokens: 8_000, pin: before.pin })
      const isSame = next.from_seq === before.from_seq
      if (!isSame) cuts++
      expect(next.items.slice(0, isSame ? before.items.length : 1)).toEqual(
        before.items.slice(0, isSame ? undefined : 1),
      )
      before = next
    }
    expect(cuts).toBeLessThan(8)
    const { seq } = expectOk(await compact(log, { to_seq: 500, summary: summary('t') }), 201)
    const next = await contextOf(log, { max_tokens: 8_000, pin: before.pin })
    expect(next.compaction_seq).toBe(seq)
    expect(textsOf(next)[0]).toBe('t')
  })

  it('takes bytes out of a summary and puts them back', async () => {
    const { log } = await logOf(...said('a', 'b'))
    const url = `data:image/png;base64,${Buffer.alloc(60_000, 7).toString('base64')}`
    const blob = { role: 'user', content: [{ type: 'image_url', image_url: { url } }] }
    const { data } = expectOk(await compact(log, { to_seq: 1, summary: { blob } }), 201)
    expect(JSON.stringify(data)).toContain('annals_blob')
    expect((await contextOf(log)).items[0]).toEqual(blob)
  })
})

describe('a key that may only write', () => {
  it('compacts, and is not told the digest, from which short messages can be guessed', async () => {
    const project = await service.newProject()
    const { token } = await issueToken(service.adminClient(), project.id, { name: 'w', scopes: ['write'] })
    const client = await service.newClient({ token })
    const log = await newSessionLog(client)
    expectOk(await log.batch(said('a')), 201)
    const { data } = expectOk(await compact(log, { to_seq: 1, summary: summary() }, {}, client), 201)
    expect(data).not.toHaveProperty('digest')
    expect(data).toMatchObject({ to_seq: 1, summary: [{ blob: user('What was said before.') }] })
  })
})

describe('a retraction', () => {
  it('inside what a compaction covers takes the summary out of the very next read, and retracts it', async () => {
    const { log, items } = await logOf(...said('a', 'b', 'c'))
    const { seq } = expectOk(await compact(log, { to_seq: 2, summary: summary('secret') }), 201)
    const { retraction, items: gone } = expectOk(await retract(log, { ids: [items[0]!.id] }))
    expect(retraction.data).toEqual({ seqs: [1, seq], compactions: [seq] })
    expect(gone.map((item) => item.seq)).toEqual([1])
    const context = await contextOf(log)
    expect(textsOf(context)).toEqual(['b', 'c'])
    expect(context.compaction_seq).toBe(0)
    const [event] = expectOk(await api.listEvents(log.id)).items
    expect(event).toMatchObject({ seq, retracted_by: retraction.seq })
  })

  it('of an event that it covers does so, too', async () => {
    const { log, items } = await logOf(...said('a'), { kind: 'event', type: 'note', data: {} }, ...said('b'))
    expectOk(await compact(log, { to_seq: 2, summary: summary() }), 201)
    expectOk(await retract(log, { ids: [items[1]!.id] }))
    expect((await contextOf(log)).compaction_seq).toBe(0)
  })

  it('after what it covers leaves it, and one before the newest leaves those that do not cover it', async () => {
    const { log, items } = await logOf(...said('a', 'b', 'c', 'd'))
    const first = expectOk(await compact(log, { to_seq: 1, summary: summary('s1') }), 201)
    const second = expectOk(await compact(log, { to_seq: 3, summary: summary('s2') }), 201)
    expectOk(await retract(log, { ids: [items[3]!.id] }))
    expect((await contextOf(log)).compaction_seq).toBe(second.seq)
    expectOk(await retract(log, { ids: [items[2]!.id] }))
    const context = await contextOf(log)
    expect(context.compaction_seq).toBe(first.seq)
    expect(textsOf(context)).toEqual(['s1', 'b'])
  })

  it('pops the entries that were asked for, also many at once, and tells which compactions fell', async () => {
    const { log } = await logOf(...said('a', 'b', 'c', 'd', 'e', 'f'))
    for (const to_seq of [2, 4, 5]) expectOk(await compact(log, { to_seq, summary: summary() }), 201)
    const pops = await Promise.all(
      Array.from({ length: 5 }, () => retract(log, { last: 1, kind: 'message' })),
    )
    const popped = pops.map((pop) => expectOk(pop))
    expect(popped.map(({ items }) => items.map(({ seq }) => seq))).toHaveLength(5)
    expect(popped.flatMap(({ items }) => items.map(({ seq }) => seq)).sort()).toEqual([2, 3, 4, 5, 6])
    const fell = popped.flatMap(({ retraction, items }) => {
      const { compactions = [] } = retraction.data as { compactions?: number[] }
      return compactions.map((seq) => [items[0]!.seq, seq])
    })
    expect(fell.sort()).toEqual([
      [2, 7],
      [4, 8],
      [5, 9],
    ])
    expect(textsOf(await contextOf(log))).toEqual(['a'])
  })

  it('of the compaction itself takes it back', async () => {
    const { log } = await logOf(...said('a', 'b'))
    const { id } = expectOk(await compact(log, { to_seq: 1, summary: summary() }), 201)
    expectOk(await retract(log, { ids: [id] }))
    expect(textsOf(await contextOf(log))).toEqual(['a', 'b'])
  })
})

describe('a compaction is refused', () => {
  it('where it would part a call from its result, and told the nearest seq', async () => {
    const { log, items } = await logOf(
      ...said('a'),
      call('x'),
      call('y'),
      result('x'),
      result('y'),
      ...said('b'),
      call('z'),
    )
    for (const to_seq of [2, 3, 4])
      expectRefused(
        await compact(log, { to_seq, summary: summary() }),
        'The nearest seq that does not: 1 or 5.',
      )
    expectRefused(await compact(log, { to_seq: 7, summary: summary() }), 'The nearest seq that does not: 6.')
    const from = { from_seq: 3, to_seq: 6, summary: summary() }
    expectRefused(await compact(log, from), '2 or 6.')
    const except = { to_seq: 6, except: [items[1]!.id], summary: summary() }
    expectRefused(await compact(log, except), 'seq 2, but not the one at seq 4')
    expectOk(await compact(log, { ...except, except: [items[1]!.id, items[3]!.id] }), 201)
    // The run that called z was given up.
    expectOk(await log.batch(said('c')), 201)
    expectOk(await compact(log, { to_seq: 9, summary: summary() }), 201)
  })

  it('where it covers less than an earlier one', async () => {
    const { log } = await logOf(...said('a', 'b', 'c', 'd'))
    expectOk(await compact(log, { from_seq: 2, to_seq: 3, summary: summary() }), 201)
    expectRefused(await compact(log, { to_seq: 2, summary: summary() }), '/to_seq must be at least 3')
    const later = { from_seq: 3, to_seq: 4, summary: summary() }
    expectRefused(await compact(log, later), '/from_seq must be at most 2')
    expectOk(await compact(log, { to_seq: 3, summary: summary() }), 201)
  })

  it('where its range or its exceptions are not of the log, or it has no message', async () => {
    const { log, items } = await logOf({ kind: 'event', type: 'note', data: {} }, ...said('a', 'b'))
    expectError(await compact(log, { to_seq: 9, summary: summary() }), 409, 'seq_ahead')
    expectError(await compact(log, { to_seq: 1, summary: summary() }), 400, 'invalid_request')
    expectError(await compact(log, { from_seq: 3, to_seq: 2, summary: summary() }), 400, 'invalid_request')
    const except = (id: string) => compact(log, { to_seq: 2, except: [id], summary: summary() })
    expectError(await except(NOBODYS_ID), 404, 'entry_not_found')
    expectError(await except(items[0]!.id), 400, 'invalid_request')
    expectError(await except(items[2]!.id), 400, 'invalid_request')
    expectOk(await retract(log, { ids: [items[1]!.id] }))
    expectError(await except(items[1]!.id), 400, 'invalid_request')
    expectError(
      await compact(sessionLog(api, NOBODYS_ID), { to_seq: 1, summary: summary() }),
      404,
      'session_not_found',
    )
  })

  it('where the summary is no message, which is named, and as an event of a caller', async () => {
    const { log } = await logOf(...said('a'))
    const wrong = { to_seq: 1, summary: [summary(), { blob: { role: 'user', content: 1 } }] }
    expectRefused(await compact(log, wrong), '/summary/1/blob/content')
    expectError(await compact(log, { to_seq: 1, summary: [] }), 400, 'invalid_request')
    expectError(await log.addEvent('annals.compaction'), 400, 'invalid_request')
  })
})

describe('a compaction beside other changes', () => {
  it('honours If-Match, and a retry with its key is answered as before, whatever came meanwhile', async () => {
    const { log } = await logOf(...said('a', 'b', 'c'))
    const headers = { 'If-Match': '"3"', 'Idempotency-Key': randomUUID() }
    const body = { to_seq: 2, summary: summary() }
    expectError(await compact(log, body, { headers: { ...headers, 'If-Match': '"2"' } }), 409, 'seq_conflict')
    const first = expectOk(await compact(log, body, { headers }), 201)
    expectOk(await compact(log, { to_seq: 3, summary: summary() }), 201)
    const again = await compact(log, body, { headers })
    expect(expectOk(again, 201)).toEqual(first)
    expect(again.headers['idempotent-replayed']).toBe('true')
    expectError(await compact(log, body), 400, 'invalid_request')
    const reused = await compact(log, { ...body, to_seq: 1 }, { headers })
    expectError(reused, 422, 'idempotency_key_reused')
  })

  it('is never valid over what a retraction at the same time takes out, on two nodes', async () => {
    const { token } = await service.newProject()
    const clients = await Promise.all(
      [service.node, service.secondNode].map((node) => service.newClient({ token, node })),
    )
    const api = clients[0]!
    for (let round = 0; round < 20; round++) {
      const log = await newSessionLog(api)
      const { items } = expectOk(await log.batch(said('a', 'b', 'c', 'd')), 201)
      const bodies = [1, 2, 3].map((to_seq) =>
        compact(log, { to_seq, summary: summary(`s${to_seq}`) }, {}, clients[to_seq % 2]!),
      )
      const [, ...compacted] = await Promise.all([
        retract(log, { ids: [items[1]!.id] }, clients[round % 2]),
        ...bodies,
      ])
      for (const answer of compacted) expect([201, 400]).toContain(answer.status)
      const timeline = expectOk(await log.timeline()).items as Logged[]
      const retraction = timeline.find(({ type }) => type === 'annals.retraction')!
      for (const { seq, data, retracted_by } of timeline.filter(({ type }) => type === 'annals.compaction')) {
        // Those that came before the retraction fell with it, if they cover the second message.
        const falls = seq < retraction.seq && data!.to_seq >= 2
        expect(retracted_by).toBe(falls ? retraction.seq : undefined)
      }
      expect(textsOf(await contextOf(log, {}, api))).not.toContain('b')
      const live = timeline.filter(({ type, retracted_by }) => type === 'annals.compaction' && !retracted_by)
      const ends = live.map(({ data }) => data!.to_seq)
      expect(ends).toEqual(ends.toSorted())
    }
  })

  it('and the deletion of its session at the same time leave nothing', async () => {
    for (let round = 0; round < 5; round++) {
      const { log } = await logOf(...said('a', 'b'))
      const [compacted] = await Promise.all([
        compact(log, { to_seq: 1, summary: summary() }),
        api.request('DELETE', `/api/v1/session/${log.id}`),
      ])
      expect([201, 404]).toContain(compacted.status)
      expectError(await log.timeline(), 404, 'session_not_found')
    }
  })
})

describe('a fork', () => {
  it('keeps the compactions that lie before its seq, as they were then', async () => {
    const { log, items } = await logOf(...said('a', 'b', 'c'))
    expectOk(await compact(log, { to_seq: 1, summary: summary('s1') }), 201)
    expectOk(await compact(log, { to_seq: 2, summary: summary('s2') }), 201)
    expectOk(await retract(log, { ids: [items[0]!.id] }))
    const forkAt = async (up_to_seq: number) => {
      const { new_session_id } = expectOk(await log.copy({ body: { up_to_seq } }))
      return contextOf(sessionLog(api, new_session_id))
    }
    expect(textsOf(await forkAt(3))).toEqual(['a', 'b', 'c'])
    expect(textsOf(await forkAt(4))).toEqual(['s1', 'b', 'c'])
    expect(textsOf(await forkAt(5))).toEqual(['s2', 'c'])
    expect(textsOf(await forkAt(6))).toEqual(['b', 'c'])
  })
})
