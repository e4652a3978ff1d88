import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { runCommand } from '../harness/command_process.ts'
import { withDatabasePassword } from '../harness/database_url.ts'
import { describedOperations, sampleOf } from '../harness/described_operations.ts'
import { expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { Answer, HttpClient, RequestOptions } from '../harness/http_client.ts'
import { ADMIN_TOKEN, PASSWORD, PAYLOAD } from '../harness/leaks.ts'
import { type Project, useService } from '../harness/service.ts'

// Nodes log all they can here. What they and all others showed is searched when the whole run is over.
const service = useService({ LOG_LEVEL: 'trace' })
let project: Project
let api: ApiClient
let admin: HttpClient
let sessionId: string

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
  admin = service.adminClient()
  sessionId = expectOk(await api.createSession({ user: PAYLOAD, configs: { [PAYLOAD]: PAYLOAD } }), 201).id
})

/** A sample with the payload in the place of every text. */
function filled(value: unknown): unknown {
  if (typeof value === 'string') return PAYLOAD
  if (Array.isArray(value)) return value.map(filled)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item)]))
}

/** The ways in which a request can carry what nobody else may see, and go wrong. */
function requestsOf({
  path,
  operation,
}: (typeof describedOperations)[number]): Array<[string, RequestOptions]> {
  const real = path
    .replace('{session_id}', sessionId)
    .replace('{identifier}', PAYLOAD)
    .replaceAll(/\{\w+\}/g, NOBODYS_ID)
  const schema = operation.requestBody?.content['application/json']?.schema
  const headers = { 'Idempotency-Key': PAYLOAD, 'If-Match': PAYLOAD, 'Last-Event-ID': PAYLOAD }
  const plain: RequestOptions = schema ? { body: sampleOf(schema) } : {}
  const broken: Array<[string, RequestOptions]> = [
    [path.replaceAll(/\{\w+\}/g, PAYLOAD), plain],
    [`${real}?${PAYLOAD}=${PAYLOAD}&user=${PAYLOAD}`, plain],
    [`${real}?cursor=${PAYLOAD}`, plain],
    [real, { ...plain, headers }],
  ]
  if (!schema) return [...broken, [real, plain]]
  const bodies: RequestOptions[] = [
    { body: filled(sampleOf(schema)) },
    { body: { [PAYLOAD]: PAYLOAD } },
    { body: [PAYLOAD] },
    { rawBody: `{"${PAYLOAD}":"${PAYLOAD}` },
    { rawBody: PAYLOAD, headers: { 'Content-Type': `text/${PAYLOAD}` } },
    { body: { configs: { [PAYLOAD]: `${PAYLOAD}\u0000` } } },
  ]
  return [...broken, ...bodies.map((body): [string, RequestOptions] => [real, body])]
}

function expectNoSecret(answer: Answer<unknown>): void {
  const shown = `${answer.text}\n${JSON.stringify(answer.headers)}`
  for (const secret of [project.token, ADMIN_TOKEN, PASSWORD, service.databaseUrl])
    expect(shown).not.toContain(secret)
}

describe('an answer', () => {
  it.each(describedOperations)('shows no token and no password: $method $path', async (operation) => {
    const isAdmin = operation.path.startsWith('/admin/')
    const stranger = service.rawClient(`${PAYLOAD}-${'x'.repeat(40)}`)
    for (const [path, options] of requestsOf(operation)) {
      for (const client of [isAdmin ? admin : api, stranger]) {
        const answer = await client.request(operation.method.toUpperCase(), path, options)
        expectNoSecret(answer)
        expect(answer.status, `${path} ${answer.text}`).toBeLessThan(500)
      }
    }
  })

  it('of the pages for everyone shows none either, nor anything that was stored', async () => {
    for (const path of ['/health', '/ready', '/metrics', '/openapi.json', '/docs', `/${PAYLOAD}`]) {
      const answer = await service.rawClient().request('GET', path)
      expectNoSecret(answer)
      if (!path.includes(PAYLOAD)) expect(answer.text).not.toContain(PAYLOAD)
    }
  })
})

describe('a database password', () => {
  it('is not shown by a node that has one', async () => {
    const node = await service.startNode({
      DATABASE_URL: withDatabasePassword(service.databaseUrl, PASSWORD),
    })
    const client = await service.newClient({ token: project.token, node })
    expectNoSecret(await client.listSessions())
    expect([...node.lines, ...node.logLines].join('\n')).not.toContain(PASSWORD)
  })

  it.each([
    'postgresql://annals:%@127.0.0.1:1/annals',
    'postgresql://annals:%@[::bad/annals',
    'mysql://annals:%@db/annals',
  ])('is not shown by a command that cannot connect: %s', async (url) => {
    const env = { DATABASE_URL: url.replace('%', PASSWORD), ANNALS_DATABASE_WAIT_MS_MAX: '200' }
    const { code, stdout, stderr } = await runCommand(['migrate'], env)
    expect(code).not.toBe(0)
    expect(stderr).not.toBe('')
    expect(stdout + stderr).not.toContain(PASSWORD)
  })
})
