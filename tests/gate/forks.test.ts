import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { exactAt, exactJson } from '../harness/exact_json.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { ENTRIES, useLongSession } from '../harness/long_copy.ts'
import {
  mixedEntries,
  newSessionLog,
  type SessionLog,
  sessionLog,
  type TimelineItem,
} from '../harness/session_log.ts'
import { queryRows } from '../harness/sql.ts'
import { walkPages } from '../harness/walk_pages.ts'

const on = useLongSession()
let api: ApiClient

beforeAll(async () => {
  api = await on.service.newClient()
})

const itemsOf = (log: SessionLog) => walkPages((cursor) => log.timeline({ limit: 200, cursor }))
/** What a fork keeps of an entry: all but ids. */
const kept = ({ id: _id, session_id: _session, parent_id: _parent, ...rest }: TimelineItem) => rest
const fork = async (log: SessionLog, body: unknown, client = api) =>
  sessionLog(client, expectOk(await log.copy({ body })).new_session_id)

describe('a fork of a session', () => {
  it('is its log up to a seq, with the same seqs and times, and remembers where it comes from', async () => {
    const log = await newSessionLog(api, { user: 'ada', configs: { a: 1 } })
    expectOk(await log.batch(mixedEntries(10)), 201)
    const original = await itemsOf(log)
    for (const up_to_seq of [0, 1, 2, 4, 10]) {
      const copy = await fork(log, { up_to_seq })
      expect((await itemsOf(copy)).map(kept)).toEqual(original.slice(0, up_to_seq).map(kept))
      const session = expectOk(await api.getSession(copy.id))
      const { user_id, configs } = expectOk(await api.getSession(log.id))
      expect(session).toMatchObject({ user_id, configs, forked_from: log.id, forked_at_seq: up_to_seq })
      const page = expectOk(await copy.list())
      expect(expectOk(await copy.tokens()).total_tokens).toBe(page.this_time_tokens)
      // The next message continues the fork, not the original.
      const { parent_id } = expectOk(await copy.add({ role: 'user', content: 'on' }), 201)
      expect(parent_id).toBe(page.ids.at(-1) ?? null)
      expect((await itemsOf(copy)).at(-1)!.seq).toBe(up_to_seq + 1)
    }
    expect(await itemsOf(log)).toEqual(original)
  })

  it('has a user and configs of its own if they are given, and keeps every digit of these', async () => {
    const log = await newSessionLog(api, { user: 'ada', configs: { a: 1 }, disable_task_tracking: true })
    const number = '0.12345678901234567890'
    const answer = await log.copy({ rawBody: `{"user":"grace","configs":{"b":${number}}}` })
    const { new_session_id } = expectOk(answer as Awaited<ReturnType<typeof log.copy>>)
    const session = await api.getSession(new_session_id)
    expect(exactAt(session.text, 'data', 'configs')).toEqual(exactJson(`{"b":${number}}`))
    expect(expectOk(session).disable_task_tracking).toBe(true)
    const found = expectOk(await api.listSessions({ user: 'grace', filter_by_configs: `{"b":${number}}` }))
    expect(found.items.map(({ id }) => id)).toEqual([new_session_id])
    const same = await fork(log, { user: null, configs: null, up_to_seq: null })
    expect(expectOk(await api.getSession(same.id))).toMatchObject({ configs: { a: 1 } })
  })

  it('is made once for one use_uuid, however often and by however many it is asked for', async () => {
    const log = await newSessionLog(api)
    expectOk(await log.batch(mixedEntries(6)), 201)
    const use_uuid = randomUUID()
    const body = { use_uuid, up_to_seq: 3, user: 'linus', configs: { c: 1 } }
    const answers = await Promise.all(Array.from({ length: 10 }, () => log.copy({ body })))
    for (const answer of answers) expect(expectOk(answer).new_session_id).toBe(use_uuid)
    expect(await itemsOf(sessionLog(api, use_uuid))).toHaveLength(3)
    const others = [{ up_to_seq: 4 }, { user: 'other' }, { configs: { c: 2 } }]
    for (const other of others)
      expectError(await log.copy({ body: { ...body, ...other } }), 409, 'session_exists')
    const unrelated = await newSessionLog(api)
    expectError(await unrelated.copy({ body: { use_uuid } }), 409, 'session_exists')
    expectError(await log.copy({ body: { use_uuid: unrelated.id } }), 409, 'session_exists')
  })

  it('beyond the end of the log, or of what is no seq, is refused and leaves nothing', async () => {
    const own = await on.service.newClient()
    const log = await newSessionLog(own)
    expectOk(await log.batch(mixedEntries(3)), 201)
    expectError(await log.copy({ body: { up_to_seq: 4 } }), 409, 'seq_ahead', 'up_to_seq')
    const nobodys = await api.request('POST', `/api/v1/session/${NOBODYS_ID}/copy`, {
      body: { up_to_seq: 4 },
    })
    expectError(nobodys, 404, 'session_not_found')
    for (const up_to_seq of [-1, 1.5, '2', 2 ** 60])
      expectError(await log.copy({ body: { up_to_seq } }), 400, 'invalid_request', 'up_to_seq')
    for (const wrong of [{ user: '' }, { configs: [] }, { use_uuid: 'x' }, { surprise: 1 }])
      expectError(await log.copy({ body: wrong }), 400, 'invalid_request', Object.keys(wrong)[0]!)
    const configs = { x: 'x'.repeat(65_536) }
    expectError(await log.copy({ body: { configs } }), 413, 'payload_too_large', 'configs')
    expect(expectOk(await own.listSessions()).items).toHaveLength(1)
  })

  it('stays when its original is deleted or the user of that is erased, and names it no longer', async () => {
    for (const erase of [
      (id: string) => api.deleteSession(id),
      () => api.request('DELETE', '/api/v1/user/gone'),
    ]) {
      const log = await newSessionLog(api, { user: 'gone' })
      expectOk(await log.batch(mixedEntries(3)), 201)
      const copy = await fork(log, { user: 'stays', up_to_seq: 2 })
      expectOk(await erase(log.id))
      expect(await itemsOf(copy)).toHaveLength(2)
      const session = expectOk(await api.getSession(copy.id))
      expect(Object.keys(session).filter((name) => name.startsWith('forked'))).toEqual([])
      const left = await queryRows(on.service.databaseUrl, 'SELECT id FROM sessions WHERE forked_from = $1', [
        log.id,
      ])
      expect(left).toEqual([])
    }
  })

  it('made while others append is a prefix of the log', async () => {
    const log = await newSessionLog(api)
    expectOk(await log.batch(mixedEntries(30)), 201)
    let enough = false
    const appending = Array.from({ length: 4 }, async (_, n) => {
      while (!enough) expectOk(await log.batch(mixedEntries(5, `w${n}`)), 201)
    })
    const copies: SessionLog[] = []
    try {
      for (let n = 0; n < 10; n += 1) copies.push(await fork(log, n % 2 ? {} : { up_to_seq: 3 * n }))
    } finally {
      enough = true
      await Promise.all(appending)
    }
    const original = (await itemsOf(log)).map(kept)
    for (const copy of copies) {
      const items = (await itemsOf(copy)).map(kept)
      expect(items).toEqual(original.slice(0, items.length))
      const { forked_at_seq } = expectOk(await api.getSession(copy.id)) as { forked_at_seq?: number }
      expect(items).toHaveLength(forked_at_seq!)
    }
  })
})

describe('a fork that is longer than one statement copies', () => {
  it('is the log up to a seq, sound, and made once for one use_uuid', async () => {
    const use_uuid = randomUUID()
    const body = { up_to_seq: 4_001, user: 'grace', configs: { b: 1 }, use_uuid }
    const copy = await fork(on.source, body, on.api)
    expect(copy.id).toBe(use_uuid)
    expectOk(await on.source.copy({ body }))
    expect(await on.rows()).toMatchObject({ sessions: 3, entries: ENTRIES + 4_001, erased_sessions: 0 })
    const newest = expectOk(await copy.timeline({ time_desc: true, limit: 1 })).items
    expect(newest.map(({ seq }) => seq)).toEqual([4_001])
    expect(expectOk(await copy.tokens())).toEqual(expectOk(await on.source.tokens()))
    expect(expectOk(await on.api.getSession(copy.id))).toMatchObject({
      configs: { b: 1 },
      forked_from: on.source.id,
      forked_at_seq: 4_001,
    })
    expect(expectOk(await on.api.listSessions({ user: 'grace' })).items.map(({ id }) => id)).toEqual([
      copy.id,
    ])
    expectError(await on.source.copy({ body: { up_to_seq: ENTRIES + 1 } }), 409, 'seq_ahead', 'up_to_seq')
    await on.expectSound()
  })

  it('and a new session with the id that it asks for are never both made', async () => {
    for (let round = 0; round < 3; round += 1) {
      const use_uuid = randomUUID()
      const [copied, created] = await Promise.all([
        on.source.copy({ body: { use_uuid } }),
        on.api.createSession({ use_uuid }),
      ])
      expect([copied.status, created.status].filter((status) => status < 300).length).toBeLessThanOrEqual(1)
    }
    await on.untilUnleased()
    await on.expectSound()
  })
})

it('a fork needs room for what it has, and not for the whole log', async () => {
  const project = await on.service.newProject()
  const quota = { body: { max_bytes: 5_000 } }
  expectOk(await on.service.adminClient().request('PATCH', `/admin/v1/projects/${project.id}`, quota))
  const client = await on.service.newClient({ token: project.token })
  const log = await newSessionLog(client)
  const data = { text: 'x'.repeat(1_000) }
  for (const type of ['first', 'second', 'third']) expectOk(await log.addEvent(type, data))
  expectError(await log.copy(), 403, 'quota_exceeded')
  expectOk(await log.copy({ body: { up_to_seq: 1 } }))
  expectError(await log.copy({ body: { up_to_seq: 2 } }), 403, 'quota_exceeded')
})
