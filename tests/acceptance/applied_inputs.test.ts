import { randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { newBytes, putBlob, sha256Of } from '../harness/blobs.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { queryRows } from '../harness/sql.ts'
import { verifyDatabase } from '../harness/verification.ts'

/* Input that is applied is stored like the same entries that are appended. */

const service = useSharedService()
let project: Project
let api: ApiClient
let second: ApiClient
let log: SessionLog

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
  second = await service.newClient({ token: project.token, node: service.secondNode })
})

beforeEach(async () => {
  log = await newSessionLog(api)
})

type Entry = Record<string, unknown>

const ATTACHMENT = newBytes(50)
const file = { annals_blob: sha256Of(ATTACHMENT), media_type: 'text/plain' }
const message = (content: string, more: Entry = {}): Entry => ({
  kind: 'message',
  blob: { role: 'user', content },
  ...more,
})
const event = (data: Entry, more: Entry = {}): Entry => ({ kind: 'event', type: 'note', data, ...more })

async function send(entry: Entry, { id }: SessionLog = log): Promise<string> {
  const body = { id: randomUUID(), mode: 'queue', ...entry }
  expectOk(await api.request('POST', `/api/v1/session/${id}/inbox`, { body }), 201)
  return body.id
}

const sendAll = async (entries: Entry[], to = log) => {
  const ids: string[] = []
  for (const entry of entries) ids.push(await send(entry, to))
  return ids
}

const append = (body: object, { id }: SessionLog = log, client = api, headers: Record<string, string> = {}) =>
  client.request<{ items: Entry[] }>('POST', `/api/v1/session/${id}/entries`, { body, headers })

/** All that is stored of a log, but for when and where, and its bytes: those of an input were counted with its `mode`. */
async function stored(of: SessionLog) {
  const [heads, entries, references, size] = await Promise.all(
    [
      `SELECT last_seq, total_tokens, last_message_id, counted,
        bytes = (SELECT sum(e.bytes) FROM entries e WHERE e.session_id = $1) AS adds_up FROM session_heads WHERE session_id = $1`,
      `SELECT seq, id, parent_id, kind, type, role, format, key, tokens, data::text, meta::text, occurred_at
        FROM entries WHERE session_id = $1 ORDER BY seq`,
      'SELECT seq, sha256 FROM blob_references WHERE owner_id = $1 AND seq > 0 ORDER BY seq, sha256',
      'SELECT count(*) AS pending FROM session_inbox WHERE session_id = $1',
    ].map((text) => queryRows(service.databaseUrl, text, [of.id])),
  )
  return { heads, entries, references, size }
}

const without = (items: Entry[]) =>
  items.map(({ session_id: _id, created_at: _at, updated_at: _then, ...item }) => item)

const INPUTS = [
  event({ n: 1e3, exact: 0.1 }, { key: 'state' }),
  message('The first', { meta: { from: 'ada' } }),
  event({ files: [file, { deeper: file }] }),
  {
    ...message('x'),
    format: 'anthropic',
    blob: { role: 'assistant', content: [{ type: 'text', text: 'Hm.' }] },
  },
  message('Bytes of «ü»\n"quoted"', { key: 'last "key"' }),
]
const OTHERS = [event({ own: true }), message('The answer'), message('Another', { key: 'state' })]

it.for<[string, Entry[], Entry[], Entry[]]>([
  ['of all kinds, before other entries', INPUTS, OTHERS, []],
  ['after messages that are there', INPUTS, OTHERS, [message('There already'), event({})]],
  ['alone', INPUTS, [], [message('There already')]],
  ['of events, before messages', [event({})], [message('a')], [message('There already')]],
  ['of messages, before events', [message('a'), message('b')], [event({})], []],
  ['of events only', [event({}), event({ n: 1 })], [], []],
])('input %s is stored as the same entries are, and answered so', async ([, inputs, others, before]) => {
  await putBlob(service.node.url, project.token, ATTACHMENT)
  const twin = await newSessionLog(api)
  const given = (entries: Entry[]) => entries.map((entry) => ({ id: randomUUID(), ...entry }))
  const there = given(before)
  const own = given(others)
  if (there.length > 0) for (const one of [log, twin]) expectOk(await append({ entries: there }, one), 201)
  const apply = await sendAll(inputs)
  const applied = await append({ apply, ...(own.length > 0 ? { entries: own } : {}) })
  const same = inputs.map((entry, index) => ({ ...entry, id: apply[index] }))
  const appended = await append({ entries: [...same, ...own] }, twin)
  expect(await stored(log)).toEqual(await stored(twin))
  const { items } = expectOk(applied, 201)
  expect(without(items)).toEqual(without(expectOk(appended, 201).items))
  const { items: read } = expectOk(await log.timeline())
  expect(items).toEqual(read.slice(before.length))
})

it('input of several sessions is each stored in its own', async () => {
  const other = await newSessionLog(api)
  const [a, b] = [await sendAll(INPUTS.slice(0, 2)), await sendAll(INPUTS.slice(3), other)]
  const appends = [
    { session_id: log.id, apply: a, entries: [message('one')] },
    { session_id: other.id, apply: b, entries: [message('other')] },
  ]
  const answer = await api.request<{ appends: Array<{ items: Entry[] }> }>('POST', '/api/v1/entries', {
    body: { appends },
  })
  const written = expectOk(answer, 201).appends.map(({ items }) => items)
  for (const [index, one] of [log, other].entries())
    expect(written[index]).toEqual(expectOk(await one.timeline()).items)
  const total = expectOk(await other.tokens()).total_tokens
  expect(total).toBeGreaterThan(0)
})

it('input that many apply beside other appends is in each log once, and each append is answered with its own', async () => {
  const logs = await Promise.all(Array.from({ length: 12 }, () => newSessionLog(api)))
  const answers = await Promise.all(
    logs.flatMap((one, n) => [
      sendAll([message(`m${n}`), event({ n })], one).then((apply) =>
        append({ apply, entries: [message(`after ${n}`)] }, one),
      ),
      one.addEvent('beside', { n }),
    ]),
  )
  for (const [n, one] of logs.entries()) {
    const { items } = expectOk(answers[2 * n] as Awaited<ReturnType<typeof append>>, 201)
    const { items: read } = expectOk(await one.timeline())
    expect(read).toHaveLength(4)
    expect(items).toEqual(read.filter((entry) => entry.type !== 'beside'))
  }
})

it('input goes to one of those who apply it, each with a key of its own', async () => {
  for (let round = 0; round < 10; round++) {
    const apply = await sendAll([event({ round })])
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        append({ apply }, log, n % 2 ? api : second, { 'Idempotency-Key': randomUUID() }),
      ),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    for (const answer of answers)
      if (answer.status !== 201) expectError(answer, 409, 'not_pending', apply[0]!)
  }
})

it('input is refused if it is too long together, is in the log by now, or if nobody has the session', async () => {
  const long = 'x'.repeat(600_000)
  const [a, b, c] = await sendAll([event({ long }), event({ long }), event({})])
  expectError(await append({ apply: [a, b] }), 413, 'payload_too_large', '/apply')
  expectOk(await append({ entries: [event({}, { id: c })] }), 201)
  expectError(await append({ apply: [c] }), 409, 'not_pending', 'entry 1')
  expectOk(await append({ apply: [a] }), 201)
  expectOk(await append({ apply: [b] }), 201)
  const nobodys = { ...log, id: randomUUID() }
  expectError(await append({ apply: [a] }, nobodys), 404, 'session_not_found')
})

it('input whose id an entry was given meanwhile is no longer pending once somebody has tried to apply it', async () => {
  const [id, other] = await sendAll([event({}), event({})])
  expectOk(await append({ entries: [event({ by: 'hand' }, { id })] }), 201)
  const run = async () => (expectOk(await api.getSession(log.id)) as unknown as { run: object }).run
  expect(await run()).toMatchObject({ state: 'queued', pending: 2 })
  expectError(await append({ apply: [id, other] }), 409, 'not_pending', 'entry 1')
  expect(await run()).toMatchObject({ state: 'queued', pending: 1 })
  expectOk(await append({ apply: [other] }), 201)
  expect(await run()).toMatchObject({ state: 'idle', pending: 0 })
  expect(expectOk(await log.timeline()).items.map((entry) => entry.id)).toEqual([id, other])
})

it('input that is applied is part of its chain', async () => {
  const chained = await service.newProject()
  const settings = { body: { proof: true } }
  expectOk(await service.adminClient().request('PATCH', `/admin/v1/projects/${chained.id}`, settings))
  const own = await service.newClient({ token: chained.token })
  const one = await newSessionLog(own)
  const sendOwn = async (entry: Entry) => {
    const body = { id: randomUUID(), mode: 'queue', ...entry }
    expectOk(await own.request('POST', `/api/v1/session/${one.id}/inbox`, { body }), 201)
    return body.id
  }
  for (let round = 0; round < 3; round++) {
    const apply = [await sendOwn(message('a')), await sendOwn(event({ round }))]
    expectOk(await append({ apply, entries: OTHERS }, one, own), 201)
  }
  const verified = await verifyDatabase(service.databaseUrl, '--proof', '--project', chained.id)
  expect(verified).toMatchObject({ sound: true, findings: [], projects: [{ links: 15 }] })
})
