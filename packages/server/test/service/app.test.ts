import { readConfig } from '@annals/kits/configuration/config.js'
import { memoryBudget } from '@annals/kits/fairness/fair_queue.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import { Erasure } from '@annals/kits/lifecycle/erase/erasure.js'
import { registryOf } from '@annals/kits/lifecycle/registry.js'
import { Metrics } from '@annals/kits/metrics/metrics.js'
import type { Kits } from '@annals/kits/module.js'
import { DatabaseAway, type Row } from '@annals/kits/postgres/database.js'
import type { WorkArguments, WorkName } from '@annals/kits/threads/work_thread.js'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ACCESS_MODULE } from '../../src/access/module.ts'
import { AUDIT_MODULE } from '../../src/audit/module.ts'
import { Feed } from '../../src/log/follow/feed.js'
import { LOG_MODULE } from '../../src/log/module.js'
import { PROJECTS_MODULE } from '../../src/projects/module.js'
import type { Grant } from '../../src/projects/tokens/key_look_ups.js'
import { buildApp } from '../../src/service/app.js'
import { MODULES, openModules } from '../../src/service/modules.js'
import { loadRoutes } from '../../src/service/service.js'
import { THREAD_WORK } from '../../src/service/thread_work.js'

const ADMIN_TOKEN = 'a'.repeat(32)
const SESSION = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'
const REQUEST_MS_MAX = 15_000

let app: AppServer
let findToken: () => Promise<Grant | undefined>
let subscriptions: number

beforeEach(async () => {
  subscriptions = 0
  findToken = async () => ({
    key_id: 'key',
    project_id: SESSION,
    scopes: new Set(['read', 'write']),
    expires_at_ms: undefined,
    rate_limit_per_second: undefined,
    quotas: {
      max_sessions: undefined,
      max_bytes: undefined,
      max_blob_bytes: undefined,
      max_tails: undefined,
    },
    has_consumers: false,
    narrow: undefined,
    unmarked_until: 0,
    proof: undefined,
    redaction: undefined,
    masked: false,
  })
  const kits = fakeKits()
  const { all, opened } = openModules(MODULES, kits)
  vi.spyOn(Feed.prototype, 'subscribe').mockImplementation(() => {
    subscriptions += 1
    return ENDLESS as never
  })
  const tokens = { find: () => findToken() } as never
  const { adminSessions } = opened(PROJECTS_MODULE)
  const { sessionTokens } = opened(ACCESS_MODULE)
  const { appender } = opened(LOG_MODULE)
  const { notedReads } = opened(AUDIT_MODULE)
  const own = { tokens, sessionTokens, adminSessions, notedReads, appender }
  app = await buildApp(kits, await loadRoutes(all), own)
})
afterEach(() => app.close())

/** The work of the other thread, on this one: it is started from what was built, which is not what is tested here. */
function inlineThread() {
  const run = async <Name extends WorkName>(_owner: string, name: Name, ...values: WorkArguments<Name>) =>
    (THREAD_WORK[name] as (...values: unknown[]) => unknown)(...values)
  const thread = { run, takes: () => true, for: (): unknown => thread }
  return thread
}

const ENDLESS = {
  ended: false,
  seen_seq: 0,
  end: () => {},
  close: () => {},
  changed: () => new Promise(() => {}),
}

/** Of a service in front of a database that has one empty session and nothing else. */
function fakeKits(): Kits {
  const rows: Row[] = [{ last_seq: '0' }]
  const query = async ({ name }: { name: string }) => (name === 'read_head' ? rows : [])
  const database = { query, transaction: async (work: (connection: object) => unknown) => work({ query }) }
  const parts = {
    config: readConfig({ ANNALS_ADMIN_TOKEN: ADMIN_TOKEN }),
    logger: pino({ level: 'silent' }),
    database: { of: () => database },
    appends: { of: () => database },
    reserved: database,
    background: { database },
    registry: registryOf(MODULES),
    erasure: new Erasure(registryOf(MODULES).tables),
    longWork: { run: (_project_id: string, work: () => unknown) => work() },
    thread: inlineThread(),
    metrics: new Metrics(),
    memory: memoryBudget(100_000_000),
    isReady: () => true,
    isServing: () => true,
  }
  return parts as unknown as Kits
}

async function send(method: string, url: string, headers: Record<string, string> = {}, payload?: string) {
  const answer = app.inject({
    method: method as 'GET',
    url,
    headers: {
      authorization: 'Bearer some-token',
      ...(payload !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(payload !== undefined && { payload }),
  })
  const tooLate = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error(`no answer to ${method} ${url}`)), REQUEST_MS_MAX).unref()
  })
  return Promise.race([answer, tooLate])
}

describe('every answer', () => {
  it.each<[string, string, number]>([
    ['GET', '/api/v1/ping', 200],
    ['GET', '/api/v1/nothing', 404],
    ['PUT', '/api/v1/ping', 405],
    ['GET', '/api/v1/session/not-a-uuid', 400],
    ['GET', '/api/v1/session/%ZZ', 400],
    ['GET', '/api/v1/session/%00', 400],
    ['GET', '/api/v1/session?limit=0', 400],
    ['GET', '/admin/v1/projects', 401],
  ])('has the envelope and the request’s id: %s %s is %i', async (method, url, status) => {
    const answer = await send(method, url, { 'x-request-id': 'mine-1' })
    expect(answer.statusCode).toBe(status)
    expect(answer.headers['x-request-id']).toBe('mine-1')
    expect(answer.json()).toMatchObject({ code: status === 200 ? 0 : status, error: expect.any(String) })
  })

  it('has an id of the service’s own where the caller’s is not sane', async () => {
    for (const id of ['', 'a b', 'x'.repeat(129), 'ä'])
      expect((await send('GET', '/api/v1/ping', { 'x-request-id': id })).headers['x-request-id']).toMatch(
        /^[0-9a-f-]{36}$/,
      )
  })
})

describe('a path', () => {
  it('with a parameter of any length is the caller’s fault and not the service’s', async () => {
    for (const length of [37, 1_023, 1_025, 5_000]) {
      const answer = await send('GET', `/api/v1/session/${'a'.repeat(length)}`)
      expect([400, 404, 414]).toContain(answer.statusCode)
      expect(answer.json()).toMatchObject({ code: answer.statusCode })
    }
  })

  it('leads to a user whatever the identifier, also one that another path has as a word', async () => {
    for (const identifier of ['ls', 'resources', 'user', '%2F', '%20', '%F0%9F%98%80'.repeat(256)]) {
      const answer = await send('DELETE', `/api/v1/user/${identifier}`)
      expect(answer.json()).toMatchObject({ error: 'user_not_found' })
    }
  })

  it.each([
    ['DELETE', '/api/v1/session', 'GET, HEAD, POST'],
    ['DELETE', '/api/v1/sess%69on?limit=1', 'GET, HEAD, POST'],
    ['POST', '/api/v1/user/ls', 'GET, HEAD'],
    ['POST', '/api/v1/user/anna', 'DELETE'],
    ['POST', '/console/', 'GET, HEAD'],
    ['POST', '/console/sessions/1', 'GET, HEAD'],
  ])(
    'is refused with another method by 405, and Allow names those that it takes: %s %s',
    async (method, url, allow) => {
      const answer = await send(method, url)
      expect(answer.statusCode).toBe(405)
      expect(answer.headers.allow).toBe(allow)
    },
  )
})

describe('a tail', () => {
  it('is not opened by HEAD, which would never end', async () => {
    await send('HEAD', `/api/v1/session/${SESSION}/timeline`, { accept: 'text/event-stream' })
    expect(subscriptions).toBe(0)
  })

  it.each(['limit=1', 'cursor=abc', 'time_desc=true'])('takes no parameter of a page: %s', async (query) => {
    const answer = await send('GET', `/api/v1/session/${SESSION}/timeline?${query}`, {
      accept: 'text/event-stream',
    })
    expect(answer.statusCode).toBe(400)
    expect(answer.json().msg).toContain(query.split('=')[0])
  })
})

describe('a token that cannot be looked up', () => {
  it.each(['GET', 'POST'])(
    'because the database broke off leaves nothing in doubt: %s is 503',
    async (method) => {
      findToken = async () => {
        throw new DatabaseAway(false, new Error('Connection terminated unexpectedly'))
      }
      const answer = await send(method, '/api/v1/session', {}, method === 'POST' ? '{}' : undefined)
      expect(answer.statusCode).toBe(503)
      expect(answer.headers['retry-after']).toBe('1')
      expect(answer.json()).toMatchObject({ error: 'unavailable' })
    },
  )
})

describe('a body', () => {
  const create = (payload: string, headers: Record<string, string> = {}) =>
    send('POST', '/api/v1/session', headers, payload)

  it.each<[string, string, number, string]>([
    ['cut short', '{"configs":', 400, 'invalid_json'],
    ['with a byte order mark', '\ufeff{}', 400, 'invalid_json'],
    ['that is a list', '[]', 400, 'invalid_request'],
    ['that is null', 'null', 400, 'invalid_request'],
    ['with an unknown field', '{"__proto__":{"user":"x"}}', 400, 'invalid_request'],
    ['with configs over 64 KiB', `{"configs":{"a":"${'x'.repeat(65_536)}"}}`, 413, 'payload_too_large'],
    [
      'with configs over 64 KiB in one number',
      `{"configs":{"a":${'9'.repeat(65_536)}}}`,
      413,
      'payload_too_large',
    ],
    ['over the limit', `{"user":"${'x'.repeat(1_048_577)}"}`, 413, 'payload_too_large'],
  ])('is refused: one %s', async (_what, payload, status, error) => {
    const answer = await create(payload)
    expect(answer.json()).toMatchObject({ code: status, error })
  })

  it.each([
    ['text/plain', 415],
    ['application/xml', 415],
    ['application/json; charset=latin1', 415],
    ['application/json;charset=UTF-8', 400],
    ['application/json; charset="utf-8"', 400],
  ])('of type %s is %i', async (type, status) => {
    expect((await create('[]', { 'content-type': type })).statusCode).toBe(status)
  })

  it('that is compressed is refused, since nothing unpacks it', async () => {
    expect((await create('{}', { 'content-encoding': 'gzip' })).json()).toMatchObject({ code: 415 })
  })
})
