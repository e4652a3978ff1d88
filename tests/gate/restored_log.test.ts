import { beforeAll, describe, expect, it } from 'vitest'
import { expectError, expectOk } from '../harness/expectations.ts'
import { type NodeAddress, useService } from '../harness/service.ts'
import { execute } from '../harness/sql.ts'
import { useTails } from '../harness/tails.ts'

const service = useService({ ANNALS_FEED_POLL_MS: '200' })
const tails = useTails(service)
let second: NodeAddress

beforeAll(async () => {
  second = await service.startNode()
})

/** The log as a backup had it, after its first entries. */
async function restoreTo(last_seq: number): Promise<void> {
  const parameters = [tails.project.id, tails.log.id, last_seq]
  await execute(
    service.databaseUrl,
    'DELETE FROM entries WHERE project_id = $1 AND session_id = $2 AND seq > $3',
    parameters,
  )
  await execute(
    service.databaseUrl,
    'UPDATE session_heads SET last_seq = $3, last_message_id = NULL WHERE project_id = $1 AND session_id = $2',
    parameters,
  )
}

/** The log as it is when other entries were stored after a restore, until it was longer than before. */
async function replaceAfter(seq: number): Promise<void> {
  await execute(
    service.databaseUrl,
    "UPDATE entries SET created_at = (created_at AT TIME ZONE 'UTC' + interval '1 microsecond') AT TIME ZONE 'UTC' WHERE project_id = $1 AND session_id = $2 AND seq > $3",
    [tails.project.id, tails.log.id, seq],
  )
  await addMessages(1)
}

async function addMessages(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) expectOk(await tails.log.add({ role: 'user', content: `${n}` }), 201)
}

const get = (path: string, query: Record<string, string | number | boolean> = {}) =>
  tails.api.request<{ items: unknown[]; next_cursor: string }>(
    'GET',
    `/api/v1/session/${tails.log.id}/${path}`,
    {
      query,
    },
  )

describe('a log that was restored to an earlier time', () => {
  it.each(['Last-Event-ID', 'after_seq'])('refuses a tail that goes on beyond its end, by %s', async (by) => {
    await addMessages(4)
    const from = by === 'after_seq' ? { query: { after_seq: 4 } } : { headers: { 'Last-Event-ID': '4' } }
    expect((await tails.open(from)).status).toBe(200)
    await restoreTo(2)
    const refused = await tails.open(from)
    await refused.whenEnded(5_000)
    expect([refused.status, JSON.parse(refused.text)]).toEqual([
      409,
      { code: 409, error: 'seq_ahead', msg: expect.stringMatching(/Seq 4 .* last seq 2/) },
    ])
    const beginning = await tails.open({ query: { after_seq: 2 } })
    await addMessages(1)
    await beginning.received(1)
  })

  it('ends a tail that has seen more, at each node', async () => {
    await addMessages(3)
    const open = [await tails.open(), await tails.open({ node: second, query: { after_seq: 3 } })]
    await open[0]!.received(3)
    await restoreTo(1)
    for (const tail of open) await tail.whenEnded(15_000)
  })

  it.each(['timeline', 'messages', 'events'])(
    'refuses the next page of %s, in both directions',
    async (list) => {
      for (let n = 0; n < 6; n += 1) expectOk(await tails.log.addEvent())
      await addMessages(6)
      const forward = expectOk(await get(list, { limit: 5 }))
      const backward = expectOk(await get(list, { limit: 1, time_desc: true }))
      await restoreTo(2)
      for (const query of [
        { cursor: forward.next_cursor },
        { cursor: backward.next_cursor, time_desc: true },
      ])
        expectError(await get(list, query), 409, 'seq_ahead')
    },
  )

  it('refuses a caller who polls with the last seq that it has seen, until there is as much again', async () => {
    await addMessages(3)
    expect(expectOk(await get('timeline', { after_seq: 3 })).items).toEqual([])
    await restoreTo(0)
    expectError(await get('timeline', { after_seq: 3 }), 409, 'seq_ahead')
    expect(expectOk(await get('timeline', { after_seq: 0 })).items).toEqual([])
  })
})

it('an empty log can be tailed from its beginning', async () => {
  const tail = await tails.open({ headers: { 'Last-Event-ID': '0' } })
  await addMessages(1)
  await tail.received(1)
})

describe('a log that was restored to an earlier time and has grown again', () => {
  const at = (id: string) => ({ headers: { 'Last-Event-ID': id } })

  it('refuses a tail that has seen an entry which is another by now, and no other tail', async () => {
    await addMessages(4)
    const early = await tails.open({ query: { kind: 'message' } })
    const frames = await early.received(4)
    const { seq, created_at } = frames[1]!.item
    expect(frames.map(({ id }) => id)).toEqual(['1', '2', '3', '4'])
    await expect.poll(() => early.lastEventId).toBe(`4@${frames[3]!.item.created_at}`)
    await replaceAfter(2)
    const refused = await tails.open(at(early.lastEventId))
    await refused.whenEnded(5_000)
    expect([refused.status, JSON.parse(refused.text)]).toEqual([
      409,
      { code: 409, error: 'log_diverged', msg: expect.stringContaining('Entry 4') },
    ])
    for (const id of [`${seq}@${created_at}`, '2']) {
      const tail = await tails.open(at(id))
      expect((await tail.received(3)).map(({ item }) => item.seq)).toEqual([3, 4, 5])
    }
  })

  it('refuses a tail that has seen entries which its filter left out, and which are others by now', async () => {
    const query = { type: 'other' }
    const early = await tails.open({ query })
    await addMessages(4)
    await expect.poll(() => early.lastEventId).toMatch(/^4@/)
    await replaceAfter(2)
    const refused = await tails.open({ ...at(early.lastEventId), query })
    await refused.whenEnded(5_000)
    expect(JSON.parse(refused.text)).toMatchObject({ code: 409, error: 'log_diverged' })
    expect(early.frames).toEqual([])
  })

  it.each([{}, { type: 'other' }])(
    'ends a tail that is open, at each node, with the filter %j',
    async (filter) => {
      await addMessages(3)
      const open = [await tails.open({ query: filter }), await tails.open({ node: second, query: filter })]
      expectOk(await tails.log.addEvent('other'))
      for (const tail of open) await tail.received(1)
      await replaceAfter(1)
      for (const tail of open) await tail.whenEnded(15_000)
    },
  )

  it.each([
    ['timeline', {}],
    ['timeline', { kind: 'message' }],
    ['timeline', { type: 'note', after_seq: 1 }],
    ['messages', {}],
    ['messages', { with_events: true, format: 'anthropic' }],
    ['events', {}],
    ['events', { type: 'note' }],
  ])('refuses the next page of %s %j, in both directions', async (list, filter) => {
    for (let n = 0; n < 7; n += 1) expectOk(await tails.log.addEvent('note'))
    await addMessages(6)
    const forward = expectOk(await get(list, { ...filter, limit: 5 }))
    const backward = expectOk(await get(list, { ...filter, limit: 1, time_desc: true }))
    const cursors = [{ cursor: forward.next_cursor }, { cursor: backward.next_cursor, time_desc: true }]
    for (const query of cursors) expectOk(await get(list, { ...filter, ...query }))
    await replaceAfter(2)
    for (const query of cursors) expectError(await get(list, { ...filter, ...query }), 409, 'log_diverged')
  })

  it.each([
    ['its first message', 0, {}],
    ['a result that it cleared', 2, { keep_tool_results: 1 }],
    ['its last message', 4, {}],
  ])('refuses the pin of a context where %s is another', async (_, kept, rules) => {
    await addMessages(1)
    for (const id of ['a', 'b']) {
      const tool_calls = [{ id, type: 'function', function: { name: 'look', arguments: '{}' } }]
      expectOk(await tails.log.add({ role: 'assistant', content: null, tool_calls }), 201)
      expectOk(await tails.log.add({ role: 'tool', tool_call_id: id, content: 'seen' }), 201)
    }
    const { pin } = expectOk(await get('context', rules)) as unknown as { pin: string }
    expect(expectOk(await get('context', { ...rules, pin }))).toMatchObject({ pin, from_seq: 1 })
    await replaceAfter(kept)
    expectError(await get('context', { ...rules, pin }), 409, 'log_diverged')
  })
})
