import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { tokenFor } from '../harness/access_requests.ts'
import { type ApiClient, apiClient } from '../harness/api_client.ts'
import { newBytes } from '../harness/blobs.ts'
import { openTail } from '../harness/event_stream.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import type { Answer, HttpClient } from '../harness/http_client.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog, sessionLog } from '../harness/session_log.ts'
import { execute } from '../harness/sql.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'

const service = useSharedService()
let project: Project
let api: ApiClient
beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

const READS = [
  'timeline',
  'timeline?limit=2&time_desc=true',
  'timeline?kind=message',
  'timeline?type=note&after_seq=1',
  'events?limit=3',
  'latest',
  'latest?key=a',
  'messages',
  'messages?limit=2&time_desc=true&format=anthropic',
  'messages?limit=0&format=acontext&with_events=true',
  'messages?fit=true',
  'context',
  'context?max_tokens=40&keep_tool_results=0',
]
const RECORDED = Array.from(
  { length: 8 },
  (_, n) => `Message ${n}, and some more words that count as tokens.`,
)

const read = (log: SessionLog, path: string, tag?: string, client: HttpClient = api) =>
  client.request('GET', `/api/v1/session/${log.id}/${path}`, tag ? { headers: { 'If-None-Match': tag } } : {})
const user = (content: string) => ({ kind: 'message', blob: { role: 'user', content } })
const note = (more = {}) => ({ kind: 'event', type: 'note', data: { n: 1 }, ...more })

async function filledLog(body: unknown = {}) {
  const log = await newSessionLog(api, body)
  const entries = [...RECORDED.map(user), note({ key: 'a' }), note({ key: 'b' })]
  const { items } = expectOk(await log.batch(entries), 201)
  return { log, items }
}

/** The reads, and a context with the pin of an earlier one. */
async function readsOf(log: SessionLog): Promise<string[]> {
  const cut = 'context?max_tokens=60'
  const { pin } = expectOk(await read(log, cut)) as { pin: string }
  return [...READS, `${cut}&pin=${encodeURIComponent(pin)}`]
}

function tagged(answer: Answer<unknown>): string {
  expect(answer.status, answer.text).toBe(200)
  expect(answer.headers.etag).toMatch(/^W\/"[\w-]{22}"$/)
  return answer.headers.etag!
}

describe('a read of a log', () => {
  it('is 304 and nothing else on every node while it would be what it was', async () => {
    const { log } = await filledLog()
    const other = apiClient(service.secondNode.url, project.token)
    for (const path of await readsOf(log)) {
      const tag = tagged(await read(log, path))
      for (const client of [api, other]) {
        const { status, text, headers } = await read(log, path, tag, client)
        expect([path, status, text, headers.etag]).toEqual([path, 304, '', tag])
        expect([headers['cache-control'], headers['content-type']]).toEqual(['no-store', undefined])
        expect(headers['x-request-id']).toMatch(/\S/)
      }
    }
    other.close()
  })

  it('is 304 for a tag among several, weak or strong, and for no other one', async () => {
    const { log } = await filledLog()
    const tag = tagged(await read(log, 'timeline'))
    const strong = tag.slice(2)
    for (const named of [strong, `"a", ${tag}`, `W/"b",${strong} , "c"`])
      expect([named, (await read(log, 'timeline', named)).status]).toEqual([named, 304])
    const ofAnotherPage = tagged(await read(log, 'timeline?limit=10'))
    for (const named of ['*', '""', strong.slice(1, -1), `${strong}x`, ofAnotherPage, ',,,'])
      expect([named, (await read(log, 'timeline', named)).status]).toEqual([named, 200])
  })

  it('that is an error has no tag, and a stranger with the tag of a session still finds none', async () => {
    const { log } = await filledLog()
    const { log: another } = await filledLog()
    const stranger = await service.newClient()
    const ofAnother = service.rawClient(await tokenFor(api, { session_id: another.id }, ['read']))
    const own = service.rawClient(await tokenFor(api, { session_id: log.id }, ['read']))
    for (const path of READS) {
      const tag = tagged(await read(log, path))
      expect((await read(log, path, tag, own)).status).toBe(304)
      for (const client of [stranger, ofAnother]) {
        const answer = await read(log, path, tag, client)
        expectError(answer, 404, 'session_not_found')
        expect([answer.text, answer.headers.etag]).toEqual([
          (await read(log, path, undefined, client)).text,
          undefined,
        ])
      }
    }
    const ahead = await read(log, 'timeline?after_seq=999')
    expectError(ahead, 409, 'seq_ahead')
    expect(ahead.headers.etag).toBeUndefined()
  })

  it('has no tag where something else than the log is shown', async () => {
    const { log, items } = await filledLog()
    const url = `data:image/png;base64,${newBytes(40_000).toString('base64')}`
    const image = { role: 'user', content: [{ type: 'image_url', image_url: { url } }] }
    expectOk(await log.add(image), 201)
    for (const path of ['messages', 'timeline', 'context', 'messages?with_asset_public_url=true'])
      expect([path, (await read(log, path)).headers.etag]).toEqual([path, undefined])
    tagged(await read(log, `timeline?limit=${items.length}`))
  })

  it('is a tail although a tag is named', async () => {
    const { log } = await filledLog()
    const headers = { 'If-None-Match': tagged(await read(log, 'timeline')) }
    const tail = await openTail(service.node.url, project.token, log.id, { headers })
    expect(tail.status).toBe(200)
    tail.close()
  })

  it('has no tag for a masked key, and is read again by one that knows another key’s', async () => {
    const { log } = await filledLog()
    const path = `/admin/v1/projects/${project.id}/tokens`
    const body = { name: 'masked', masked: true }
    const key = expectOk(await service.adminClient().request<{ token: string }>('POST', path, { body }), 201)
    const masked = service.rawClient(key.token)
    for (const path of READS) {
      const answer = await read(log, path, tagged(await read(log, path)), masked)
      expect([path, answer.status, answer.headers.etag]).toEqual([path, 200, undefined])
    }
  })

  it('has another tag once the session was deleted and made again', async () => {
    const use_uuid = randomUUID()
    const { log } = await filledLog({ use_uuid })
    const before = await Promise.all(READS.map((path) => read(log, path)))
    expectOk(await api.deleteSession(use_uuid))
    for (const [at, path] of READS.entries())
      expectError(await read(log, path, tagged(before[at]!)), 404, 'session_not_found')
    await filledLog({ use_uuid })
    for (const [at, path] of READS.entries())
      expect([path, (await read(log, path, tagged(before[at]!))).status]).toEqual([path, 200])
  })
})

/** Whatever changes a session, or does not. */
const WRITES: Record<string, (log: SessionLog, n: number) => Promise<Answer<unknown>>> = {
  message: (log, n) => log.add({ role: 'user', content: `more ${n}` }),
  event: (log, n) => log.batch([note({ key: n % 2 ? 'a' : 'c' })]),
  batch: (log, n) => log.batch([user(`one ${n}`), note(), { kind: 'event', type: 'other', data: {} }]),
  'retraction of the last': (log) => retract(log, { last: 1 }),
  'retraction of a message': async (log, n) => {
    const { ids } = expectOk(await log.list())
    return retract(log, { ids: [ids[n % ids.length] ?? randomUUID()] })
  },
  'meta of a message': async (log, n) => {
    const { ids } = expectOk(await log.list())
    return log.patchMeta(ids[n % ids.length] ?? randomUUID(), { n })
  },
  compaction: async (log) => {
    const { items } = expectOk(await log.timeline({ kind: 'message' }))
    const to_seq = items[Math.floor(items.length / 2)]?.seq ?? 1
    const summary = { blob: { role: 'user', content: 'So far.' } }
    return api.request('POST', `/api/v1/session/${log.id}/compactions`, { body: { to_seq, summary } })
  },
  configs: (log, n) =>
    api.request('PATCH', `/api/v1/session/${log.id}/configs`, { body: { configs: { n } } }),
  expiry: (log) => api.request('PATCH', `/api/v1/session/${log.id}`, { body: { expires_in_s: 3_600 } }),
  fork: (log) => log.copy({ body: { up_to_seq: 3 } }),
  lease: (log) =>
    api.request('POST', `/api/v1/session/${log.id}/lease`, { body: { owner: 'a', ttl_ms: 1_000 } }),
  input: (log) =>
    api.request('POST', `/api/v1/session/${log.id}/inbox`, {
      body: { mode: 'queue', ...user('in') },
    }),
  'append to two': async (log) => {
    const { id } = await newSessionLog(api)
    const appends = [log.id, id].map((session_id) => ({
      session_id,
      entries: [note()],
      configs_patch: { a: 1 },
    }))
    return api.request('POST', '/api/v1/entries', { body: { appends } })
  },
  nothing: (log) => api.getSession(log.id),
}
const WRITE_NAMES = Object.keys(WRITES)

const retract = (log: SessionLog, body: unknown) =>
  api.request('POST', `/api/v1/session/${log.id}/retractions`, { body })

/** Writes one after the other, and asks for everything again after each, with the tags of what it was before. */
async function readAgainAfter(writes: Array<[name: string, n: number]>): Promise<number[]> {
  const { log } = await filledLog()
  const paths = await readsOf(log)
  let before = await Promise.all(paths.map((path) => read(log, path)))
  const statuses: number[] = []
  for (const [name, n] of writes) {
    statuses.push((await WRITES[name]!(log, n)).status)
    const after = await Promise.all(paths.map((path) => read(log, path)))
    const again = await Promise.all(paths.map((path, at) => read(log, path, tagged(before[at]!))))
    for (const [at, path] of paths.entries()) {
      const { status, text } = again[at]!
      const why = `${path} after ${name}`
      const isSame = after[at]!.text === before[at]!.text
      if (!isSame || status === 200) expect([status, text], why).toEqual([200, after[at]!.text])
      else expect([status, text], why).toEqual([304, ''])
      if (name === 'nothing' || name === 'fork') expect(status, why).toBe(304)
    }
    before = after
  }
  return statuses
}

describe('a tag', () => {
  it.each(WRITE_NAMES)('is never that of an answer with other bytes after this write: %s', async (name) => {
    const [status] = await readAgainAfter([[name, 1]])
    expect([200, 201]).toContain(status)
  })

  it('is never that of an answer with other bytes, whatever is written', async () => {
    const write = fc.tuple(fc.constantFrom(...WRITE_NAMES), fc.nat(9))
    await fc.assert(
      fc.asyncProperty(fc.array(write, { minLength: 2, maxLength: 6 }), async (writes) => {
        await readAgainAfter(writes)
      }),
      { numRuns: IS_THOROUGH ? 40 : 8 },
    )
  })

  it('changes with each write while the clock is behind', async () => {
    const { log, items } = await filledLog()
    const ahead = "UPDATE session_heads SET updated_at = now() + interval '1 hour' WHERE session_id = $1"
    await execute(service.databaseUrl, ahead, [log.id])
    for (let n = 0; n < 3; n++) {
      const tag = tagged(await read(log, 'messages'))
      expectOk(await log.patchMeta(items[0]!.id, { n }))
      expect((await read(log, 'messages', tag)).status).toBe(200)
    }
  })

  it('that was seen amid writes is of the bytes that came with it', async () => {
    const { log, items } = await filledLog()
    const paths = ['timeline', 'messages', (await readsOf(log)).at(-1)!]
    const seen = new Map<string, Set<string>>()
    let isWriting = true
    const reader = async (path: string) => {
      do {
        const answer = await read(log, path)
        const { etag } = answer.headers
        if (!etag) continue
        const texts = seen.get(`${path} ${etag}`) ?? new Set()
        seen.set(`${path} ${etag}`, texts.add(answer.text))
      } while (isWriting)
    }
    const readers = paths.map(reader)
    const id = items[0]!.id
    const writer = async (own: number) => {
      for (let n = 0; n < 12; n++) {
        // Several wait for the head at once, so that their times do not tell them apart.
        await log.patchMeta(id, { [own]: n })
        if (own === 0 && n < 6) await log.batch([user(`by ${own}`), note({ key: 'a' })])
        if (own === 1 && n < 6) await retract(log, { last: 1, kind: 'event' })
      }
    }
    await Promise.all(Array.from({ length: 6 }, (_, own) => writer(own)))
    isWriting = false
    await Promise.all(readers)
    const last = new Map(await Promise.all(paths.map(async (path) => [path, await read(log, path)] as const)))
    expect(seen.size).toBeGreaterThan(2 * paths.length)
    for (const [place, texts] of seen) {
      const [path, tag] = place.split(' ') as [string, string]
      const { status } = await read(log, path, tag)
      const isLast = texts.size === 1 && texts.has(last.get(path)!.text)
      if (status === 304) expect([place, isLast]).toEqual([place, true])
      if (tag === last.get(path)!.headers.etag) expect([place, status]).toEqual([place, 304])
    }
  })
})

it('lets pages of any origin name and see tags', async () => {
  const headers = {
    Origin: 'https://app.example',
    'Access-Control-Request-Method': 'GET',
    'Access-Control-Request-Headers': 'authorization,if-none-match',
  }
  const answer = await service.rawClient().request('OPTIONS', '/api/v1/session', { headers })
  expect(answer.headers['access-control-allow-headers']).toContain('If-None-Match')
})

it('reads a log that is too long for one piece without a tag', async () => {
  const log = sessionLog(api, (await newSessionLog(api)).id)
  const entries = Array.from({ length: 12 }, () => note({ data: { text: 'x'.repeat(100_000) } }))
  for (const half of [entries.slice(0, 6), entries.slice(6)]) expectOk(await log.batch(half), 201)
  expect((await read(log, 'timeline')).headers.etag).toBeUndefined()
  tagged(await read(log, 'timeline?limit=3'))
})

it('has another tag once the tokens of its messages were recounted, also to the same sum', async () => {
  const { id, token } = await service.newProject()
  const client = await service.newClient({ token })
  const log = await newSessionLog(client)
  expectOk(await log.batch([user('a b c'), user('d e f')]), 201)
  const first = () => read(log, 'messages?limit=1', undefined, client)
  const right = (await first()).text
  const write = (text: string) => execute(service.databaseUrl, text, [id])
  await write(
    'UPDATE entries SET tokens = tokens + CASE WHEN seq = 1 THEN 1 ELSE -1 END WHERE project_id = $1',
  )
  const wrong = await first()
  expect(wrong.text).not.toBe(right)
  await write(
    "INSERT INTO token_recounts (project_id, session_id, seq, leased_until) VALUES ($1, '00000000-0000-0000-0000-000000000000', 0, now())",
  )
  await vi.waitFor(async () => expect((await first()).text).toBe(right), { timeout: 90_000 })
  expect((await read(log, 'messages?limit=1', wrong.headers.etag, client)).text).toBe(right)
})
