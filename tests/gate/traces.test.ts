import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { proxyDatabase } from '../harness/database_proxy.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { whileSessionIsHeld } from '../harness/held_session.ts'
import { type Project, useService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'

const TRACED = { NODE_OPTIONS: `--import=${new URL('../harness/trace_setup.mjs', import.meta.url).href}` }
const BATCH = 'POST /api/v1/session/:session_id/entries'
const SERVER = 1
const ERROR = 2

interface Span {
  name: string
  kind: number
  status: number
  attributes: Record<string, unknown>
  trace_id: string
  span_id: string
  parent_id?: string
  events: string[]
  links: string[]
}

const service = useService()
let folder: string
let file: string
let api: ApiClient
let log: SessionLog
let project: Project

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'annals-spans-'))
  file = join(folder, 'spans')
  const node = await service.startNode({ ...TRACED, SPANS_FILE: file })
  project = await service.newProject()
  api = await service.newClient({ node, token: project.token })
  log = await newSessionLog(api, { user: 'alice-the-user' })
})

afterAll(() => rm(folder, { recursive: true, force: true }))

async function spansOf(trace_id: string, enough: (spans: Span[]) => boolean): Promise<Span[]> {
  return vi.waitFor(
    async () => {
      const spans = (await allSpans()).filter((span) => span.trace_id === trace_id)
      if (!enough(spans)) throw new Error(`not yet: ${JSON.stringify(spans)}`)
      return spans
    },
    { timeout: 20_000 },
  )
}

async function allSpans(): Promise<Span[]> {
  const lines = (await readFile(file, 'utf8')).split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Span)
}

/** A caller's own trace, sampled or not. */
function newTrace(flags: '00' | '01' = '01') {
  const trace_id = randomBytes(16).toString('hex')
  const caller_id = randomBytes(8).toString('hex')
  return { trace_id, caller_id, headers: { traceparent: `00-${trace_id}-${caller_id}-${flags}` } }
}

const entry = (data: unknown = {}) => ({ kind: 'event', type: 'note', data })
const named = (spans: Span[], name: string) => spans.filter((span) => span.name === name)

describe("traces by the user's own OpenTelemetry", () => {
  it("has an append's request below its caller, and below the request its wait and its commit", async () => {
    const { trace_id, caller_id, headers } = newTrace()
    const answer = await log.batch([entry(), entry()], { headers })
    expectOk(answer, 201)
    const spans = await spansOf(trace_id, (found) => found.length === 3)

    const [request] = named(spans, BATCH)
    expect(request).toMatchObject({ kind: SERVER, status: 0, parent_id: caller_id, links: [] })
    expect(request!.attributes).toEqual({
      'http.request.method': 'POST',
      'http.route': '/api/v1/session/:session_id/entries',
      'http.response.status_code': 201,
      'url.scheme': 'http',
      'annals.request_id': answer.headers['x-request-id'],
      'annals.project_id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
    const [commit] = named(spans, 'append commit')
    expect(commit).toMatchObject({ parent_id: request!.span_id, links: [request!.span_id], status: 0 })
    expect(commit!.attributes).toEqual({
      'annals.project_id': request!.attributes['annals.project_id'],
      'annals.flush.requests': 1,
      'annals.flush.entries': 2,
    })
    const [queue] = named(spans, 'append queue')
    expect(queue).toMatchObject({ parent_id: request!.span_id, links: [commit!.span_id] })
  })

  it('links a commit to each of the requests that it served, and each wait to its commit', async () => {
    const traces = Array.from({ length: 40 }, () => newTrace())
    await whileSessionIsHeld(service.databaseUrl, project.id, log.id, async ({ release }) => {
      const answers = traces.map(({ headers }) => log.batch([entry()], { headers }))
      // Most wait for a commit while those in flight wait for the session.
      await vi.waitFor(async () => {
        const { text } = await api.request('GET', '/metrics')
        expect(Number(/^annals_append_queue_requests (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(20)
      }, 10_000)
      await release()
      for (const answer of await Promise.all(answers)) expectOk(answer, 201)
    })
    const requests: Span[] = []
    const waits: Span[] = []
    for (const { trace_id } of traces) {
      const spans = await spansOf(
        trace_id,
        (found) => named(found, BATCH).length + named(found, 'append queue').length === 2,
      )
      requests.push(...named(spans, BATCH))
      waits.push(...named(spans, 'append queue'))
    }
    const ids = new Set(requests.map(({ span_id }) => span_id))
    const commits = await vi.waitFor(async () => {
      const found = named(await allSpans(), 'append commit').filter(({ links }) => ids.has(links[0]!))
      expect(found.flatMap(({ links }) => links).sort()).toEqual([...ids].sort())
      return found
    }, 15_000)
    expect(commits.length).toBeLessThan(requests.length)
    for (const wait of waits) {
      const [commit] = commits.filter(({ span_id }) => span_id === wait.links[0])
      expect(commit?.links).toContain(wait.parent_id)
    }
    for (const commit of commits) {
      expect(commit.links[0]).toBe(commit.parent_id)
      expect(commit.attributes['annals.flush.requests']).toBe(commit.links.length)
    }
  })

  it('records nothing of a request whose caller does not want it', async () => {
    const unwanted = newTrace('00')
    const wanted = newTrace()
    expectOk(await log.batch([entry()], { headers: unwanted.headers }), 201)
    expectOk(await log.batch([entry()], { headers: wanted.headers }), 201)
    await spansOf(wanted.trace_id, (found) => found.length === 3)
    expect((await allSpans()).filter(({ trace_id }) => trace_id === unwanted.trace_id)).toEqual([])
  })

  it('marks what failed for want of the database, and says what the commit met', async () => {
    const proxy = await proxyDatabase(service.databaseUrl)
    try {
      const env = { ...TRACED, SPANS_FILE: file, ANNALS_DATABASE_WAIT_MS_MAX: '1500' }
      const node = await service.startNode({ ...env, DATABASE_URL: proxy.url })
      const caller = await service.newClient({ node })
      const ownLog = await newSessionLog(caller)
      await proxy.refuse()
      const { trace_id, headers } = newTrace()
      expectError(await ownLog.batch([entry()], { headers }), 503, 'unavailable')
      const spans = await spansOf(trace_id, (found) => found.length === 3)
      const [request] = named(spans, BATCH)
      expect(request).toMatchObject({ status: ERROR, attributes: { 'error.type': '503' } })
      const [commit] = named(spans, 'append commit')
      expect(commit).toMatchObject({ status: ERROR, attributes: { 'error.type': 'unavailable' } })
      expect(new Set(commit!.events)).toEqual(new Set(['away', 'unavailable']))
    } finally {
      await proxy.close()
    }
  })

  it("marks no fault of the caller's as an error", async () => {
    const missing = newTrace()
    const path = '/api/v1/session/00000000-0000-4000-8000-000000000000'
    expectError(await api.request('GET', path, { headers: missing.headers }), 404, 'session_not_found')
    const [notFound] = await spansOf(missing.trace_id, (found) => found.length === 1)
    expect(notFound).toMatchObject({ name: 'GET /api/v1/session/:session_id', status: 0 })

    const nowhere = newTrace()
    await api.request('GET', '/no/such/page', { headers: nowhere.headers })
    const [unknown] = await spansOf(nowhere.trace_id, (found) => found.length === 1)
    expect(unknown).toMatchObject({ name: 'GET', status: 0 })
    expect(unknown!.attributes['http.response.status_code']).toBe(404)
  })

  it('has neither a token nor a payload, a query, a user or a path', async () => {
    const { trace_id, headers } = newTrace()
    expectOk(await log.batch([entry({ secret: 'payload-of-the-test' })], { headers }), 201)
    expectOk(await log.timeline({ limit: 7 }))
    await api.request('DELETE', '/api/v1/user/alice-the-user')
    await spansOf(trace_id, (found) => found.length === 3)
    await vi.waitFor(
      async () => expect(await readFile(file, 'utf8')).toContain('DELETE /api/v1/user/'),
      15_000,
    )
    const text = await readFile(file, 'utf8')
    expect(text).not.toMatch(/sk-annals|admin-token|payload-of-the-test|alice-the-user|limit=/)
    expect(text).not.toContain(log.id)
  })
})
