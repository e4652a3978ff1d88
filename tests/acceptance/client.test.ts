import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Annals, AnnalsError, type Session, type TimelineItem } from '../../packages/client/dist/index.js'
import { NOBODYS_ID, UUID } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
let annals: Annals
let session: Session

beforeAll(async () => {
  const { token } = await service.newProject()
  annals = new Annals({ url: service.node.url, token })
})

beforeEach(async () => {
  session = await annals.sessions.create()
})

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = []
  for await (const item of items) collected.push(item)
  return collected
}

describe('sessions', () => {
  it('are created, read, copied and deleted', async () => {
    const created = await annals.sessions.create({ user: 'ada', configs: { agent: 'a' } })
    expect(created).toMatchObject({ id: expect.stringMatching(UUID), configs: { agent: 'a' } })
    expect(await annals.sessions.get(created.id)).toEqual(created)
    await annals.sessions.append(created.id, { type: 'note', data: { n: 1 } })
    const { old_session_id, new_session_id } = await annals.sessions.copy(created.id)
    expect(old_session_id).toBe(created.id)
    expect(await annals.sessions.delete(created.id)).toBeUndefined()
    await expect(annals.sessions.get(created.id)).rejects.toMatchObject({ error: 'session_not_found' })
    expect(await all(annals.sessions.events(new_session_id))).toMatchObject([{ seq: 1, data: { n: 1 } }])
  })

  it('are listed page by page and one by one, with every filter', async () => {
    const ids: string[] = []
    for (let n = 0; n < 7; n += 1) {
      ids.push((await annals.sessions.create({ user: 'grace', configs: { n, part: { of: 'seven' } } })).id)
    }
    const list = annals.sessions.list({ user: 'grace', limit: 3 })
    expect((await all(list)).map(({ id }) => id)).toEqual(ids)
    expect((await all(list.pages())).map(({ items }) => items.length)).toEqual([3, 3, 1])
    const { next_cursor, has_more } = await list.page()
    expect(has_more).toBe(true)
    expect((await list.page(next_cursor)).items.map(({ id }) => id)).toEqual(ids.slice(3, 6))
    const newest = annals.sessions.list({ user: 'grace', time_desc: true, limit: 2 })
    expect((await all(newest)).map(({ id }) => id)).toEqual(ids.toReversed())
    const filtered = annals.sessions.list({ filter_by_configs: { n: 4, part: { of: 'seven' } } })
    expect((await all(filtered)).map(({ id }) => id)).toEqual([ids[4]])
    expect(await all(annals.sessions.list({ user: 'nobody' }))).toEqual([])
  })

  it('have configs that are replaced and merged', async () => {
    expect(await annals.sessions.configs.replace(session.id, { a: 1, b: { c: 2 } })).toBeUndefined()
    expect(await annals.sessions.configs.merge(session.id, { a: null, d: 3 })).toEqual({
      configs: { b: { c: 2 }, d: 3 },
    })
    expect((await annals.sessions.configs.get(session.id)).configs).toEqual({ b: { c: 2 }, d: 3 })
  })
})

/** With `__proto__` as a key of its own, which no literal makes. */
const special = () =>
  JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"x":1}}}') as Record<string, unknown>

describe('the log of a session', () => {
  const question = { role: 'user', content: 'Where is my flight?' }
  const answer = { role: 'assistant', content: 'In the air.' }

  it('takes events, messages and batches, and returns them in order', async () => {
    const event = await annals.sessions.append(session.id, { type: 'call', data: { name: 'find' } })
    expect(event).toMatchObject({ seq: 1, type: 'call', data: { name: 'find' }, session_id: session.id })
    const message = await annals.sessions.appendMessage(session.id, { blob: question, meta: { from: 'web' } })
    expect(message).toMatchObject({ seq: 2, role: 'user', parent_id: null, meta: { from: 'web' } })
    const { items } = await annals.sessions.appendBatch(session.id, [
      { kind: 'message', blob: answer, format: 'openai' },
      { kind: 'event', type: 'end', data: {} },
    ])
    expect(items.map(({ seq, kind }) => [seq, kind])).toEqual([
      [3, 'message'],
      [4, 'event'],
    ])
    const timeline = await all(annals.sessions.timeline(session.id, { limit: 1 }))
    expect(timeline.map(({ seq }) => seq)).toEqual([1, 2, 3, 4])
    expect(timeline.slice(2)).toEqual(items)
    expect(await all(annals.sessions.events(session.id, { type: 'end' }))).toMatchObject([{ seq: 4 }])
    const after = annals.sessions.timeline(session.id, { after_seq: 1, kind: 'event' })
    expect((await all(after)).map(({ seq }) => seq)).toEqual([4])
  })

  it('tells messages and events apart by their kind', async () => {
    await annals.sessions.append(session.id, { type: 'call', data: {} })
    await annals.sessions.appendMessage(session.id, { blob: question })
    const words = (item: TimelineItem) => (item.kind === 'event' ? item.type : item.blob.content)
    const timeline = await all(annals.sessions.timeline(session.id))
    expect(timeline.map(words)).toEqual(['call', question.content])
  })

  it('returns messages in every format, over as many pages as there are', async () => {
    await annals.sessions.append(session.id, { type: 'before', data: {} })
    for (const blob of [question, answer]) await annals.sessions.appendMessage(session.id, { blob })
    expect(await all(annals.sessions.messages<typeof question>(session.id, { limit: 1 }))).toEqual([
      question,
      answer,
    ])
    const [first] = await all(annals.sessions.messages(session.id, { format: 'gemini' }))
    expect(first).toEqual({ role: 'user', parts: [{ text: question.content }] })
    const page = await annals.sessions.messages(session.id, { with_events: true }).page()
    expect(page).toMatchObject({ metas: [{}, {}], has_more: false, events: [{ type: 'before' }] })
    const meta = await annals.sessions.patchMessageMeta(session.id, page.ids[0]!, { rating: 5, none: null })
    expect(meta).toEqual({ meta: { rating: 5 } })
    const { total_tokens } = await annals.sessions.tokenCounts(session.id)
    expect(total_tokens).toBe(page.this_time_tokens)
    expect(total_tokens).toBeGreaterThan(0)
  })

  it('takes an append on condition', async () => {
    const event = { type: 'note', data: {} }
    await annals.sessions.append(session.id, event, { if_match: 0 })
    const late = annals.sessions.append(session.id, event, { if_match: 0 })
    await expect(late).rejects.toMatchObject({ status: 409, error: 'seq_conflict' })
    await annals.sessions.appendBatch(session.id, [{ kind: 'event', ...event }], { if_match: 1 })
    expect(await all(annals.sessions.events(session.id))).toHaveLength(2)
  })

  it('keeps keys that JavaScript treats specially', async () => {
    const session = await annals.sessions.create({ configs: special() })
    expect((await annals.sessions.get(session.id)).configs).toEqual(special())
    const event = await annals.sessions.append(session.id, { type: 'special', data: special() })
    expect(event.data).toEqual(special())
    expect(Object.keys((await all(annals.sessions.events(session.id)))[0]!.data)).toEqual(
      Object.keys(special()),
    )
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })

  it('keeps every digit for a client that reads and writes them', async () => {
    const text = '{"type":"exact","data":{"n":12345678901234567890.123}}'
    const read: string[] = []
    const parse = (json: string) => {
      read.push(json)
      return JSON.parse(json)
    }
    const { token } = await service.newProject()
    const exact = new Annals({ url: service.node.url, token, parse, stringify: () => text })
    const { id } = await new Annals({ url: service.node.url, token }).sessions.create()
    await exact.sessions.append(id, { type: 'exact', data: {} })
    expect(read[0]).toContain('12345678901234567890.123')
  })
})

describe('users and learning spaces', () => {
  it('sends blobs and reads them, whole or in part', async () => {
    const content = crypto.getRandomValues(new Uint8Array(60_000))
    const blob = await annals.blobs.put(content)
    expect(blob.bytes).toBe(60_000)
    expect(await annals.blobs.put(content)).toEqual(blob)
    expect(await annals.blobs.get(blob.sha256)).toEqual(content)
    expect(await annals.blobs.get(blob.sha256, { from: 7, to: 20 })).toEqual(content.slice(7, 20))
    await expect(annals.blobs.get('0'.repeat(64))).rejects.toMatchObject({ error: 'blob_not_found' })
  })

  it('are listed, counted, changed and erased', async () => {
    const user = 'linus/../ü?'
    await annals.sessions.create({ user })
    const space = await annals.learningSpaces.create({ user, meta: { topic: 'refunds' } })
    expect(await annals.learningSpaces.get(space.id)).toEqual(space)
    const merged = await annals.learningSpaces.merge(space.id, { level: 2 })
    expect(merged.meta).toEqual({ topic: 'refunds', level: 2 })
    const spaces = annals.learningSpaces.list({ user, filter_by_meta: { level: 2 } })
    expect((await all(spaces)).map(({ id }) => id)).toEqual([space.id])
    const users = await all(annals.users.list({ limit: 2 }))
    expect(users.find(({ identifier }) => identifier === user)?.id).toBe(space.user_id)
    const { counts } = await annals.users.resources(user)
    expect(counts).toMatchObject({ sessions_count: 1, learning_spaces_count: 1 })
    expect(await annals.users.erase(user)).toMatchObject({
      deleted: { sessions: 1, entries: 0, learning_spaces: 1 },
    })
    await expect(annals.users.erase(user)).rejects.toMatchObject({ error: 'user_not_found' })
  })

  it('do without each other', async () => {
    const space = await annals.learningSpaces.create()
    expect(space).toMatchObject({ user_id: null, meta: {} })
    expect(await annals.learningSpaces.delete(space.id)).toBeUndefined()
    const gone = annals.learningSpaces.get(space.id)
    await expect(gone).rejects.toMatchObject({ error: 'learning_space_not_found' })
  })
})

describe('a refusal', () => {
  it('is an AnnalsError with what the service said', async () => {
    const error = await annals.sessions.get(NOBODYS_ID).catch((thrown) => thrown)
    expect(error).toBeInstanceOf(AnnalsError)
    expect(error).toMatchObject({ status: 404, error: 'session_not_found' })
    expect(error.message).toMatch(/session/)
    expect(error.requestId).toMatch(UUID)
  })

  it('comes for a wrong token, a wrong value and a key that is used twice', async () => {
    const stranger = new Annals({ url: service.node.url, token: 'sk-nobody' })
    await expect(stranger.ping()).rejects.toMatchObject({ status: 401, error: 'unauthorized' })
    const tooMany = annals.sessions.list({ limit: 201 }).page()
    await expect(tooMany).rejects.toMatchObject({ status: 400, error: 'invalid_request' })
    const options = { idempotency_key: 'the-same' }
    await annals.sessions.append(session.id, { type: 'a', data: {} }, options)
    const other = annals.sessions.append(session.id, { type: 'b', data: {} }, options)
    await expect(other).rejects.toMatchObject({ status: 422, error: 'idempotency_key_reused' })
    await expect(annals.ping()).resolves.toBeUndefined()
  })
})
