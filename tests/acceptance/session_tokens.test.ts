import { randomUUID } from 'node:crypto'
import { Annals } from '@annals/client'
import * as jose from 'jose'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { guardedOperations, type Sessions, tokenFor, tryOperation } from '../harness/access_requests.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { putBlob, sha256Of } from '../harness/blobs.ts'
import { openTail } from '../harness/event_stream.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { Answer, HttpClient, Query } from '../harness/http_client.ts'
import { ASSET_SHA256, oneOfEach } from '../harness/one_of_each.ts'
import { newSearchingProjects, search, untilIndexed } from '../harness/search.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { queryRows } from '../harness/sql.ts'
import { expiring, signingKey } from '../harness/tokens.ts'

const ALL = ['read', 'append', 'inbox', 'resolve']
const EVENT = { type: 'note', data: {} }
const service = useSharedService()
let project: Project
let api: ApiClient
let own: SessionLog
let other: Awaited<ReturnType<typeof oneOfEach>>
/** Of another project. */
let strange: ApiClient
let theirs: SessionLog

beforeAll(async () => {
  project = (await newSearchingProjects(service, 1))[0]!
  api = await service.newClient({ token: project.token })
  own = await newSessionLog(api, { user: 'ada', configs: { agent: 'a' } })
  other = await oneOfEach(service.node.url, api, project.token)
  strange = await service.newClient()
  theirs = await newSessionLog(strange, { user: 'ada' })
  other.ids.member_id = NOBODYS_ID
  other.ids.token_id = expectOk(await api.request<{ id: string }>('GET', '/api/v1/key')).id
})

const tokenClient = async (...issued: Parameters<typeof tokenFor>) =>
  service.rawClient(await tokenFor(...issued))
const idsIn = async (client: HttpClient, query: Query = {}) =>
  expectOk(await client.request<{ items: { id: string }[] }>('GET', '/api/v1/session', { query })).items.map(
    ({ id }) => id,
  )

it('lists the runs and requests of what a token reaches, all of it, beside those of others', async () => {
  const newSession = async (more: object) => expectOk(await api.createSession(more), 201).id
  const parent = await newSession({ user: 'bea' })
  const child = await newSession({ user: 'bea', parent })
  const grandchild = await newSession({ user: 'bea', parent: child })
  const sessions = [parent, child, grandchild, await newSession({})]
  for (const id of sessions) {
    const at = `/api/v1/session/${id}`
    expectOk(await api.request('POST', `${at}/lease`, { body: { owner: 'a', ttl_ms: 600_000 } }))
    expectOk(await api.request('POST', `${at}/requests`, { body: { kind: 'question' } }), 201)
  }
  const listed = async (client: HttpClient, path: string, query: Query = {}) => {
    const seen: string[] = []
    for (let cursor: string | undefined; cursor !== ''; ) {
      const answer = await client.request<{ items: { session_id: string }[]; next_cursor: string }>(
        'GET',
        `/api/v1/${path}`,
        { query: { limit: 1, cursor, ...query } },
      )
      const { items, next_cursor } = expectOk(answer)
      // A cursor is a position: it may name no other session, and no other request.
      expect(items.length).toBe(next_cursor === '' ? items.length : 1)
      seen.push(...items.map(({ session_id }) => session_id))
      cursor = next_cursor
    }
    return seen.sort()
  }
  for (const [reach, reached] of [
    [{ session_id: child }, [child]],
    [{ user: 'bea' }, [parent, child, grandchild]],
    [{ parent }, [child, grandchild]],
    [{ user: 'nobody' }, []],
  ] as const) {
    const client = await tokenClient(api, reach, ['read'])
    for (const state of ['running', 'waiting'])
      expect(await listed(client, 'runs', { state }), JSON.stringify(reach)).toEqual([...reached].sort())
    expect(await listed(client, 'requests')).toEqual([...reached].sort())
    for (const session_id of sessions)
      expect(await listed(client, 'requests', { session_id })).toEqual(
        (reached as readonly string[]).includes(session_id) ? [session_id] : [],
      )
  }
})

describe('a token', () => {
  it.each<[string, () => Sessions, () => Sessions]>([
    ['a session', () => ({ session_id: own.id }), () => ({ session_id: theirs.id })],
    ['a user', () => ({ user: 'ada' }), () => ({ user: 'ada' })],
    ['a parent', () => ({ parent: own.id }), () => ({ parent: theirs.id })],
  ])(
    'of %s gets answers about all else that are byte for byte those about nothing, and those of a stranger',
    async (_of, reach, theirReach) => {
      const insider = await tokenClient(api, reach(), ALL)
      const stranger = await tokenClient(strange, theirReach(), ALL)
      const { identifier, session_id } = other.ids
      const named = (ids: Record<string, string>) => ({
        ids,
        bodies: { createSession: { parent: ids.session_id! } },
      })
      const there = named({ ...other.ids, sha256: ASSET_SHA256 })
      const names = Object.keys(other.ids).map((name) => [name, NOBODYS_ID])
      const nowhere = named({ ...Object.fromEntries(names), identifier: 'nobody', sha256: 'a'.repeat(64) })
      const stream = { Accept: 'text/event-stream' }
      for (const operation of guardedOperations) {
        if (operation.reach === 'any') continue
        const query = { q: 'secret' }
        const asked = (operation.operation.parameters ?? []).map(({ name }) => name)
        const tries: Array<[there: object, nowhere: object, headers?: Record<string, string>]> = [[{}, {}]]
        if (['readTimeline', 'readInbox'].includes(operation.name)) tries.push([{}, {}, stream])
        if (asked.includes('user')) tries.push([{ user: identifier! }, { user: 'nobody' }])
        for (const name of ['session_id', 'parent', 'id_prefix'])
          if (asked.includes(name)) tries.push([{ [name]: session_id! }, { [name]: NOBODYS_ID }])
        if (asked.includes('sha256')) tries.push([{ sha256: ASSET_SHA256 }, { sha256: 'a'.repeat(64) }])
        for (const [filter, noFilter, headers = {}] of tries) {
          const one = { ...there, query: { ...query, ...filter }, headers }
          const none = { ...nowhere, query: { ...query, ...noFilter }, headers }
          const [found, nothing, unknown] = await Promise.all([
            tryOperation(insider, operation, one),
            tryOperation(insider, operation, none),
            tryOperation(stranger, operation, one),
          ])
          const said = ({ status, text, headers }: Answer) => {
            const { date: _, 'x-request-id': __, ...shown } = headers
            return `${status} ${JSON.stringify(shown)} ${text.replace(/"indexed_through":"[^"]*"/, '')}`
          }
          const what = `${operation.name} ${JSON.stringify(filter)}: ${said(found)}`
          expect(said(found), what).toBe(said(nothing))
          // Without a filter, lists have what is the token's own.
          expect(
            Object.values(other.ids).filter((id) => found.text.includes(id)),
            what,
          ).toEqual([])
          if (found.text.includes(own.id)) continue
          // That search is off is a fact of the stranger's own project.
          if (operation.name !== 'search') expect(said(found), what).toBe(said(unknown))
          expect([403, 404].includes(found.status) || found.text.includes('"items":[]'), what).toBe(true)
        }
      }
      expectOk(await api.getSession(other.log.id))
    },
  )
})

describe('a token of one session', () => {
  it('reads and appends in its own, with what its scopes allow', async () => {
    const reader = await tokenClient(api, { session_id: own.id.toUpperCase() }, ['read'])
    const path = `/api/v1/session/${own.id}`
    expectOk(
      await reader.request(
        'GET',
        `${path.toUpperCase().replace('/API/V1/SESSION', '/api/v1/session')}/timeline`,
      ),
    )
    expectError(
      await reader.request('POST', `${path}/events`, { body: EVENT }),
      403,
      'insufficient_scope',
      '"append"',
    )
    const writer = await tokenClient(api, { session_id: own.id }, ['append'])
    expectOk(await writer.request('POST', `${path}/events`, { body: EVENT }))
    for (const scoped of [reader, writer]) {
      expectError(await scoped.request('DELETE', path), 403, 'insufficient_scope', '"write"')
      expectError(await scoped.request('POST', '/mcp', { body: {} }), 403, 'insufficient_scope')
      expectError(
        await scoped.request('POST', '/api/v1/tokens', {
          body: { for: { session_id: own.id }, scopes: ['read'], ttl_s: 60 },
        }),
        403,
        'insufficient_scope',
      )
    }
    expectError(await writer.request('GET', path), 403, 'insufficient_scope', '"read"')
    const told = expectOk(await reader.request('GET', '/api/v1/key'))
    expect(told).toMatchObject({ project_id: project.id, scopes: ['read'], reaches: { session_id: own.id } })
  })

  it('is made for no session that is not there, and for no more than its key allows', async () => {
    const ask = (client: HttpClient, body: object) => client.request('POST', '/api/v1/tokens', { body })
    const body = { for: { session_id: NOBODYS_ID }, scopes: ['read'], ttl_s: 60 }
    expectError(await ask(api, body), 404, 'session_not_found', '/for/session_id')
    for (const wrong of [
      { ttl_s: 29 },
      { ttl_s: 86_401 },
      { scopes: [] },
      { scopes: ['write'] },
      { origin: 'https://a.b/c' },
      { for: {} },
    ])
      expectError(await ask(api, { ...body, for: { session_id: own.id }, ...wrong }), 400, 'invalid_request')
    const path = `/admin/v1/projects/${project.id}/tokens`
    const made = await service
      .adminClient()
      .request<{ token: string }>('POST', path, { body: { name: 'r', scopes: ['read'] } })
    const reader = service.rawClient(expectOk(made, 201).token)
    const wanted = { ...body, for: { session_id: own.id }, scopes: ['read', 'append'] }
    expectError(await ask(reader, wanted), 403, 'insufficient_scope', '"append"')
    expectOk(await ask(reader, { ...wanted, scopes: ['read'] }), 201)
  })

  it('shares neither idempotency keys nor attachments with what it does not reach', async () => {
    const key = { headers: { 'Idempotency-Key': randomUUID() } }
    expectOk(await api.appendEvent(other.log.id, { type: 'other', data: {} }, key))
    const path = `/api/v1/session/${own.id}/events`
    const writer = await tokenClient(api, { session_id: own.id }, ALL)
    const stored = expectOk(await writer.request('POST', path, { body: EVENT, ...key }))
    const again = await tokenClient(api, { session_id: own.id }, ALL)
    expect(expectOk(await again.request('POST', path, { body: EVENT, ...key }))).toEqual(stored)
    const refer = (sha256: string) => ({
      body: { type: 'file', data: { annals_blob: sha256, media_type: 'text/plain' } },
    })
    const refused = await writer.request('POST', path, refer(ASSET_SHA256))
    const unknown = await writer.request('POST', path, refer('a'.repeat(64)))
    expect(refused.status).toBe(409)
    expect(refused.text).toBe(unknown.text.replace('a'.repeat(64), ASSET_SHA256))
    const bytes = Buffer.from(randomUUID())
    await putBlob(service.node.url, project.token, bytes)
    expectOk(await api.appendEvent(own.id, refer(sha256Of(bytes)).body))
    expectOk(await writer.request('POST', path, refer(sha256Of(bytes))))
  })
})

describe('lists', () => {
  it('have what a token reaches, with every filter', async () => {
    const root = await newSessionLog(api)
    const child = await newSessionLog(api, { parent: root.id, user: 'ada' })
    const grandchild = await newSessionLog(api, { parent: child.id })
    const one = await tokenClient(api, { session_id: own.id }, ['read'])
    const ada = await tokenClient(api, { user: 'ada' }, ['read'])
    const below = await tokenClient(api, { parent: root.id }, ['read'])
    const filter_by_configs = '{"agent":"a"}'
    expect(await idsIn(one)).toEqual([own.id])
    expect(
      await idsIn(one, { user: 'ada', filter_by_configs, parent: 'none', order_by: 'last_activity' }),
    ).toEqual([own.id])
    for (const query of [
      { user: 'bob' },
      { filter_by_configs: '{"agent":"b"}' },
      { parent: root.id },
      { id_prefix: other.log.id },
    ])
      expect(await idsIn(one, query), JSON.stringify(query)).toEqual([])
    expect(await idsIn(one, { id_prefix: own.id.slice(0, 8) })).toEqual([own.id])
    expect((await idsIn(ada)).toSorted()).toEqual([own.id, child.id].toSorted())
    expect(await idsIn(ada, { filter_by_configs })).toEqual([own.id])
    expect(await idsIn(ada, { parent: root.id })).toEqual([child.id])
    expect(await idsIn(ada, { id_prefix: other.log.id })).toEqual([])
    expect(await idsIn(ada, { user: other.ids.identifier! })).toEqual([])
    expect(await idsIn(below)).toEqual([child.id])
    expect(await idsIn(below, { parent: child.id })).toEqual([grandchild.id])
    for (const parent of ['none', own.id]) expect(await idsIn(below, { parent })).toEqual([])
    expectOk(await below.request('GET', `/api/v1/session/${grandchild.id}`))
    for (const outside of [root.id, own.id])
      expectError(await below.request('GET', `/api/v1/session/${outside}`), 404, 'session_not_found')
  })

  it('of what is searched have what a token reaches', async () => {
    for (const log of [own, other.log]) expectOk(await log.addEvent('word', { said: 'quixotic' }))
    await untilIndexed(api)
    const found = async (client: HttpClient, query: Query = {}) =>
      expectOk(await search(client, 'quixotic', query)).items.map(({ session_id }) => session_id)
    expect((await found(api)).toSorted()).toEqual([own.id, other.log.id].toSorted())
    const one = await tokenClient(api, { session_id: own.id }, ['read'])
    const ada = await tokenClient(api, { user: 'ada' }, ['read'])
    for (const client of [one, ada]) {
      expect(await found(client)).toEqual([own.id])
      expect(await found(client, { session_id: other.log.id })).toEqual([])
      expectError(await search(client, 'quixotic', { order: 'relevance' }), 403, 'insufficient_scope')
      expectError(await search(client, 'quixotic', { mode: 'recall' }), 403, 'insufficient_scope')
    }
    expect(await found(ada, { user: other.ids.identifier! })).toEqual([])
  })
})

it('a token of a user creates sessions of that user, one of a parent below it, and neither chooses an id', async () => {
  const ada = await tokenClient(api, { user: 'ada' }, ALL)
  const below = await tokenClient(api, { parent: own.id }, ALL)
  const create = (client: HttpClient, body: object) =>
    client.request<{ id: string }>('POST', '/api/v1/session', { body })
  const made = expectOk(await create(ada, { user: 'ada' }), 201)
  expectOk(await ada.request('GET', `/api/v1/session/${made.id}`))
  for (const body of [{}, { user: 'bob' }, { user: 'ada', use_uuid: other.log.id }])
    expectError(await create(ada, body), 403, 'insufficient_scope')
  for (const parent of [other.log.id, NOBODYS_ID])
    expectError(await create(ada, { user: 'ada', parent }), 404, 'session_not_found')
  const child = expectOk(await create(below, { parent: own.id }), 201)
  expectOk(await create(below, { parent: child.id }), 201)
  expectError(await create(below, {}), 404, 'session_not_found')
  expectError(await create(below, { parent: own.id, user: 'bob' }), 403, 'insufficient_scope')
})

describe('a forged token', () => {
  it('is refused, however it is made', async () => {
    const genuine = await tokenFor(api, { session_id: own.id }, ALL)
    const [head, body, signature] = genuine.split('.') as [string, string, string]
    const claims = jose.decodeJwt(genuine)
    const header = jose.decodeProtectedHeader(genuine) as jose.JWTHeaderParameters
    const { secret, publicKey } = await signingKey(service.databaseUrl, header.kid!)
    const sign = (changes: object, given: object = {}, key: jose.KeyInput = secret) =>
      new jose.SignJWT({ ...claims, ...changes })
        .setProtectedHeader({ ...header, ...given } as jose.JWTHeaderParameters)
        .sign(key)
    const text = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const shared = new TextEncoder().encode(JSON.stringify(await jose.exportJWK(publicKey)))
    const stranger = (await jose.generateKeyPair('EdDSA')).privateKey
    const forged = {
      'of another session': `${head}.${text({ ...claims, for: { session_id: other.log.id } })}.${signature}`,
      'without a signature': `${head}.${body}.`,
      'with alg none': `${text({ ...header, alg: 'none' })}.${body}.`,
      'signed by a stranger': await sign({}, {}, stranger),
      'signed with the public key as a shared secret': await sign({}, { alg: 'HS256' }, shared),
      'naming a key that there is not': await sign({}, { kid: '999' }),
      'naming a key by a path': await sign({}, { kid: "../1' OR '1'='1" }),
      'bringing its own key': await sign(
        {},
        { jwk: await jose.exportJWK(publicKey), kid: undefined },
        stranger,
      ),
      'of another type': await sign({}, { typ: 'JWT' }),
      'for another audience': await sign({ aud: 'elsewhere' }),
      'of another installation': await sign({ iss: randomUUID() }),
      'that never expires': await sign({ exp: undefined }),
      'that has expired': await sign({ exp: Math.floor(Date.now() / 1_000) - 1 }),
      'of a key that was never there': await sign({ key: NOBODYS_ID }),
      huge: `${head}.${'A'.repeat(4_000)}.${signature}`,
    }
    const statusOf = async (token: string) =>
      (await service.rawClient(token).request('GET', `/api/v1/session/${own.id}`)).status
    expect(await statusOf(genuine)).toBe(200)
    expect(await statusOf(await sign({}))).toBe(200)
    for (const [how, token] of Object.entries(forged)) expect(await statusOf(token), how).toBe(401)
  })

  it('is a JWT of the installation, whose newest key signs and whose others verify', async () => {
    const token = await tokenFor(api, { session_id: own.id }, ALL)
    const rows = await queryRows<{ generation: number }>(
      service.databaseUrl,
      'SELECT generation FROM signing_keys',
    )
    const newest = Math.max(...rows.map(({ generation }) => generation))
    expect(jose.decodeProtectedHeader(token)).toEqual({
      typ: 'annals+jwt',
      alg: 'EdDSA',
      kid: String(newest),
    })
  })
})

it('a token is not taken from a URL, also where a browser could send no header', async () => {
  const token = await tokenFor(api, { session_id: own.id }, ALL)
  const stream = { Accept: 'text/event-stream' }
  for (const name of ['token', 'access_token', 'api_key', 'key', 'authorization', 'jwt'])
    for (const headers of [{}, stream]) {
      const path = `/api/v1/session/${own.id}/timeline`
      const bare = await service.rawClient().request('GET', path, { headers })
      const given = await service.rawClient().request('GET', path, { headers, query: { [name]: token } })
      expect([given.status, given.text], name).toEqual([401, bare.text])
    }
  const inPath = await service.rawClient().request('GET', `/api/v1/session/${token}/timeline`)
  expect(inPath.status).toBe(401)
})

describe('a tail', () => {
  it('ends with an event that asks for a new token, and goes on with Last-Event-ID', async () => {
    const log = await newSessionLog(api)
    expectOk(await log.addEvent('a', {}))
    const genuine = await tokenFor(api, { session_id: log.id }, ['read'])
    const exp = Math.ceil(Date.now() / 1_000) + 62
    const short = await expiring(service.databaseUrl, genuine, exp)
    const tail = await openTail(service.node.url, short, log.id)
    await tail.whenEnded(30_000)
    const end = `event: renew\ndata: {"expires_at":"${new Date(exp * 1_000).toISOString()}"}\n\n`
    expect(tail.text.endsWith(end)).toBe(true)
    expect(tail.text.match(/^event: event$/gm)).toHaveLength(1)
    expectOk(await log.addEvent('b', {}))
    const next = await openTail(service.node.url, genuine, log.id, {
      headers: { 'Last-Event-ID': tail.lastEventId },
    })
    await next.received(1)
    expect(next.seqs()).toEqual([2])
    next.close()
  })

  it('goes on across tokens in the client, which also repeats a call that was refused', async () => {
    const log = await newSessionLog(api)
    const genuine = await tokenFor(api, { session_id: log.id }, ['read', 'append'])
    const until = (exp: number) => expiring(service.databaseUrl, genuine, exp)
    const now = Math.ceil(Date.now() / 1_000)
    const given = [await until(now + 62), genuine]
    const renew = async () => {
      const next = given.shift()!
      if (given.length === 0) expectOk(await log.addEvent('b', {}))
      return next
    }
    const client = new Annals({ url: service.node.url, token: await until(now - 1), renew })
    await client.sessions.append(log.id, { type: 'a', data: {} })
    expect(given).toHaveLength(1)
    const seqs: number[] = []
    for await (const { seq } of client.sessions.tail(log.id)) {
      seqs.push(seq)
      if (seq === 2) break
    }
    expect(given).toEqual([])
    expect(seqs).toEqual([1, 2])
  })

  it('of one token stands beside seven others at most', async () => {
    const token = await tokenFor(api, { session_id: own.id }, ['read'])
    const tails = await Promise.all(
      Array.from({ length: 8 }, () => openTail(service.node.url, token, own.id)),
    )
    expect(tails.map(({ status }) => status)).toEqual(Array(8).fill(200))
    const beyond = await openTail(service.node.url, token, own.id)
    expect(beyond.status).toBe(403)
    for (const tail of tails) tail.close()
    await vi.waitFor(async () => {
      const tail = await openTail(service.node.url, token, own.id)
      tail.close()
      expect(tail.status).toBe(200)
    })
  })
})

it('a token makes a part of the requests of its key, and its key of the project', async () => {
  const limited = await service.newProject()
  const path = `/admin/v1/projects/${limited.id}`
  expectOk(await service.adminClient().request('PATCH', path, { body: { rate_limit_per_second: 100 } }))
  const owner = await service.newClient({ token: limited.token })
  const client = await tokenClient(owner, { user: 'ada' }, ['read'])
  await vi.waitFor(async () => {
    const answers = await Promise.all(Array.from({ length: 60 }, () => client.request('GET', '/api/v1/ping')))
    const refused = answers.find(({ status }) => status === 429)
    expect(refused?.json.msg).toContain('This token may make 25 requests per second.')
  }, 20_000)
  expectOk(await owner.request('GET', '/api/v1/key'))
})

it('all tokens of a key together make as many requests as the key may', async () => {
  const limited = await service.newProject()
  const path = `/admin/v1/projects/${limited.id}`
  expectOk(await service.adminClient().request('PATCH', path, { body: { rate_limit_per_second: 12 } }))
  const owner = await service.newClient({ token: limited.token })
  const clients: HttpClient[] = []
  for (let count = 0; count < 6; count++)
    clients.push(await vi.waitFor(() => tokenClient(owner, { user: 'ada' }, ['read']), 20_000))
  await vi.waitFor(async () => {
    // Each makes no more than its own part.
    const answers = await Promise.all(
      clients.flatMap((client) => [1, 2, 3].map(() => client.request('GET', '/api/v1/ping'))),
    )
    const refused = answers.filter(({ status }) => status === 429).map(({ json }) => json.msg)
    expect(refused).toContainEqual(expect.stringContaining('This API key may make 12 requests per second.'))
  }, 20_000)
})

describe('a page', () => {
  const ORIGIN = 'https://app.example.com'
  it('of the origin that a token names may read the answers, also that it has expired, and no other page', async () => {
    const preflight = await service.rawClient().request('OPTIONS', `/api/v1/session/${own.id}/events`, {
      headers: {
        Origin: ORIGIN,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'authorization',
      },
    })
    expect([preflight.status, preflight.headers['access-control-allow-origin']]).toEqual([204, '*'])
    expect(preflight.headers['access-control-allow-headers']).toMatch(/Authorization/)
    const token = await tokenFor(api, { session_id: own.id }, ALL, { origin: ORIGIN })
    const path = `/api/v1/session/${own.id}`
    const from = (origin: string, given = token) =>
      service.rawClient(given).request('GET', path, { headers: { Origin: origin } })
    const shown = await from(ORIGIN)
    expect([shown.status, shown.headers['access-control-allow-origin']]).toEqual([200, ORIGIN])
    expect(shown.headers.vary).toMatch(/Origin/)
    const hidden = await from('https://evil.example')
    expect([hidden.status, hidden.headers['access-control-allow-origin']]).toEqual([403, undefined])
    expectOk(await service.rawClient(token).request('GET', path))
    const expired = await from(ORIGIN, await expiring(service.databaseUrl, token, 1))
    expect([expired.status, expired.headers['access-control-allow-origin']]).toEqual([401, ORIGIN])
    const keyed = await from(ORIGIN, project.token)
    expect(keyed.headers['access-control-allow-origin']).toBeUndefined()
  })
})
