import { beforeAll, describe, expect, it, vi } from 'vitest'
import { Annals } from '../../packages/client/dist/index.js'
import { ADMIN_TOKEN } from '../harness/annals_process.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { type Project, useService } from '../harness/service.ts'

type LogLine = Record<string, unknown>

const service = useService({ LOG_LEVEL: 'trace' })
let project: Project

beforeAll(async () => {
  project = await service.newProject()
})

const logLines = (): LogLine[] => service.node.logLines.map((line) => JSON.parse(line) as LogLine)
const linesOf = (requestId: string) => logLines().filter((line) => line.request_id === requestId)
const waitForLine = (requestId: string) =>
  vi.waitFor(
    () => {
      const line = linesOf(requestId).find((candidate) => candidate.status !== undefined)
      if (!line) throw new Error(`No line tells how request ${requestId} ended`)
      return line
    },
    { timeout: 5_000, interval: 20 },
  )

describe('the log', () => {
  it('tells of each request its id, project, route, status and duration', async () => {
    const api = await service.newClient({ token: project.token })
    const session = expectOk(await api.createSession({}), 201)
    const headers = { 'X-Request-Id': 'logged-append' }
    expectOk(await api.appendEvent(session.id, { type: 'a', data: {} }, { headers }))
    expect(await waitForLine('logged-append')).toMatchObject({
      request_id: 'logged-append',
      project_id: project.id,
      method: 'POST',
      route: expect.stringMatching(/^\/api\/v1\/session\/[:{]\w+\}?\/events$/),
      status: 200,
      duration_ms: expect.any(Number),
    })
  })

  it('tells of a refused request as well', async () => {
    const request = async (token: string, path: string, id: string) =>
      service.rawClient(token).request('GET', path, { headers: { 'X-Request-Id': id } })
    expectError(
      await request(project.token, `/api/v1/session/${NOBODYS_ID}`, 'logged-404'),
      404,
      'session_not_found',
    )
    expect(await waitForLine('logged-404')).toMatchObject({ status: 404, project_id: project.id })
    expectError(await request('sk-stranger', '/api/v1/session', 'logged-401'), 401, 'unauthorized')
    expect(await waitForLine('logged-401')).toMatchObject({ status: 401 })
    const thrown = await new Annals({ url: service.node.url, token: project.token }).sessions
      .get(NOBODYS_ID)
      .catch((error) => error)
    expect(await waitForLine(thrown.requestId)).toMatchObject({ status: 404 })
  })

  it('holds no token and nothing of what was stored, also where a request fails, at any level', async () => {
    const secret = 'payload-that-must-not-be-logged'
    const api = await service.newClient({ token: project.token })
    const session = expectOk(await api.createSession({ user: secret, configs: { [secret]: secret } }), 201)
    expectOk(await api.appendEvent(session.id, { type: secret, data: { [secret]: secret } }))
    expectError(
      await api.appendEvent(session.id, { type: secret, data: { secret, x: '\u0000' } }),
      400,
      'invalid_request',
    )
    expectError(
      await api.request('POST', '/api/v1/session', { rawBody: `{"user":"${secret}` }),
      400,
      'invalid_json',
    )
    expectError(await api.createSession({ user: 5, configs: { secret } }), 400, 'invalid_request')
    expectOk(await api.listSessions({ user: secret, filter_by_configs: JSON.stringify({ a: secret }) }))
    expectError(await api.listSessions({ user: secret, limit: 0 }), 400, 'invalid_request')
    expectOk(await api.createLearningSpace({ user: secret, meta: { secret } }), 201)
    const stranger = await service.rawClient(`sk-${secret}`).request('GET', '/api/v1/session')
    expectError(stranger, 401, 'unauthorized')
    await api.request('GET', '/api/v1/ping', { headers: { 'X-Request-Id': 'last-of-secrets' } })
    await waitForLine('last-of-secrets')
    const log = service.node.logLines.join('\n')
    for (const word of [project.token, ADMIN_TOKEN, secret, 'Bearer ']) expect(log).not.toContain(word)
  })

  it('is JSON, line by line, to the end', async () => {
    expect(logLines().length).toBeGreaterThan(5)
    for (const line of logLines())
      expect(line).toMatchObject({ level: expect.anything(), time: expect.anything() })
  })
})
