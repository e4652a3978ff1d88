import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { describedOperations } from '../harness/described_operations.ts'
import { expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { HttpClient } from '../harness/http_client.ts'
import { type Project, useService } from '../harness/service.ts'
import { placesOf } from '../harness/string_places.ts'

/** What takes effect where a text becomes a part of SQL, of a log, or of a header. */
const SQL = ["'; DROP TABLE entries; --", "x' || pg_sleep(60) || '", "\\'; DELETE FROM sessions; --"]
const LOG = ['\n{"level":60,"injected":true}\u001b[2J', '","injected":true,"x":"']
const HEADER = ['x\r\nX-Injected: 1\nSet-Cookie: injected=1\r\n\r\n', '%0d%0aX-Injected:%201']

const service = useService({ LOG_LEVEL: 'trace' })
let project: Project
let api: ApiClient
let admin: HttpClient
let witness: ApiClient
let witnessed: string

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
  admin = service.adminClient()
  witness = await service.newClient()
  witnessed = expectOk(await witness.createSession({ user: 'witness', configs: { a: 1 } }), 201).id
  expectOk(await witness.appendEvent(witnessed, { type: 'witness', data: { a: 1 } }))
})

/** Ids that exist, but of what an operation would take away. */
async function idsFor(): Promise<Record<string, string>> {
  const user = 'somebody'
  const { id: session_id } = expectOk(await api.createSession({ user }), 201)
  const { id: learning_space_id } = expectOk(await api.createLearningSpace({ user }), 201)
  const message = { format: 'openai', blob: { role: 'user', content: 'Hello' } }
  const stored = await api.request<{ id: string }>('POST', `/api/v1/session/${session_id}/messages`, {
    body: message,
  })
  const { id: message_id } = expectOk(stored, 201)
  // Of these, none that exists: the operations of an operator could erase the project.
  return {
    session_id,
    learning_space_id,
    message_id,
    identifier: user,
    project_id: NOBODYS_ID,
    token_id: NOBODYS_ID,
  }
}

const everythingOfTheWitness = async () => [
  (await witness.getSession(witnessed)).text,
  (await witness.listEvents(witnessed)).text,
  (await witness.listSessions()).text,
]

describe('a text that would be SQL, a line of a log or a header', () => {
  it.each(describedOperations)('is a text in every place: $method $path', async (described) => {
    const before = await everythingOfTheWitness()
    const client = described.path.startsWith('/admin/') ? admin : api
    const ids = await idsFor()
    for (const text of [...SQL, ...LOG, ...HEADER])
      for (const { place, path, headers, body } of placesOf(described, ids, text)) {
        const answer = await client.request(described.method.toUpperCase(), path, {
          headers,
          ...(body !== undefined && { body }),
        })
        const told = `${place} ${JSON.stringify(text)}: ${answer.text}`
        expect(answer.status, told).toBeLessThan(500)
        expect(Object.keys(answer.headers), told).not.toContain('x-injected')
        expect(answer.headers['set-cookie'], told).toBeUndefined()
        expect(answer.json, told).toBeTypeOf('object')
      }
    expect(await everythingOfTheWitness()).toEqual(before)
  })

  it('is looked for in many places', () => {
    const places = describedOperations.flatMap((described) => placesOf(described, {}, 'x'))
    expect(places.length).toBeGreaterThan(120)
    const names = places.map(({ place }) => place)
    for (const place of [
      'path identifier',
      'query cursor',
      'header idempotency-key',
      'body /entries/0/type',
      'body /configs/(name)',
    ])
      expect(names.map((name) => name.toLowerCase())).toContain(place)
  })

  it('has written no line of the log and no field of one', async () => {
    await api.request('GET', '/api/v1/ping', { headers: { 'X-Request-Id': 'last-of-injections' } })
    const lines = () => service.node.logLines.map((line) => JSON.parse(line) as Record<string, unknown>)
    await vi.waitFor(
      () => expect(lines().some(({ request_id }) => request_id === 'last-of-injections')).toBe(true),
      { timeout: 15_000 },
    )
    expect(lines().filter((line) => 'injected' in line || line.level === 60)).toEqual([])
    expect(service.node.logLines.join('\n')).not.toContain('\u001b')
  })
})
