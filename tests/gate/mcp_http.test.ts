import { describe, expect, it, vi } from 'vitest'
import { expectError, expectOk } from '../harness/expectations.ts'
import type { HttpClient } from '../harness/http_client.ts'
import { connectMcp } from '../harness/mcp_client.ts'
import { readRawAnswer, sendRaw } from '../harness/raw_connection.ts'
import { useService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { issueToken } from '../harness/tokens.ts'

const service = useService({ ANNALS_CORS_ORIGINS: 'https://tools.example' })
const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
const ACCEPT = { accept: 'application/json, text/event-stream' }

const ask = (client: HttpClient, body: unknown, headers: Record<string, string> = {}) =>
  client.request('POST', '/mcp', { body, headers: { ...ACCEPT, ...headers } })

describe('the route /mcp', () => {
  it('takes only keys that read', async () => {
    const { id } = await service.newProject()
    const { token } = await issueToken(service.adminClient(), id, { name: 'writer', scopes: ['write'] })
    expect((await ask(service.rawClient(), LIST)).status).toBe(401)
    expect((await ask(service.rawClient('sk-unknown'), LIST)).status).toBe(401)
    expect((await ask(service.rawClient(token), LIST)).status).toBe(403)
  })

  it('refuses other methods, what is not JSON, and bodies of more than a tool takes', async () => {
    const client = await service.newClient()
    expect((await client.request('GET', '/mcp')).status).toBe(405)
    expect((await client.request('DELETE', '/mcp')).status).toBe(405)
    expect((await client.request('POST', '/mcp', { rawBody: '{"jsonrpc"' })).status).toBe(400)
    expect((await ask(client, { ...LIST, params: { padding: 'x'.repeat(70_000) } })).status).toBe(413)
    for (const body of [[], [LIST], Array(100).fill(LIST)])
      expectError(await ask(client, body), 400, 'invalid_request', 'one message')
    for (const body of [1, 'x', null, {}, { ...LIST, id: {} }, { ...LIST, method: 7 }])
      expect((await ask(client, body)).status, JSON.stringify(body)).toBeLessThan(500)
  })

  it('refuses pages of origins that the settings do not name', async () => {
    const client = await service.newClient()
    expect((await ask(client, LIST, { origin: 'https://other.example' })).status).toBe(403)
    expect((await ask(client, LIST, { origin: 'https://tools.example' })).status).toBe(200)
    expect((await ask(client, LIST, { origin: 'http://localhost:3000' })).status).toBe(200)
  })

  it('answers as all of the service does: stored by no cache, on a connection that is kept or closed as asked', async () => {
    const { token } = await service.newProject()
    const client = await service.newClient({ token })
    for (const body of [
      LIST,
      { ...LIST, method: 'tools/call', params: { name: 'list_sessions', arguments: {} } },
    ]) {
      const { status, headers } = await ask(client, body)
      expect(status).toBe(200)
      expect(headers['cache-control']).toBe('no-store')
    }
    const text = JSON.stringify(LIST)
    const head = [
      'POST /mcp HTTP/1.1',
      'Host: annals',
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      `Accept: ${ACCEPT.accept}`,
      `Content-Length: ${text.length}`,
      'Connection: close',
    ]
    const answer = readRawAnswer(await sendRaw(service.node.url, `${head.join('\r\n')}\r\n\r\n${text}`))
    expect([answer.status, answer.headers.connection]).toEqual([200, 'close'])
  })

  it('keeps no stream open: a subscription is refused', async () => {
    const { client } = await connectMcp(service.node.url, (await service.newProject()).token)
    await expect(client.listen({ toolsListChanged: true })).rejects.toThrow()
  })
})

it('a client that appends through a service that is killed in between has appended each event once', async () => {
  const { token } = await service.newProject()
  const first = await service.startNode()
  const { port } = new URL(first.url)
  const log = await newSessionLog(await service.newClient({ token }))
  const { value } = await connectMcp(first.url, token, 'stdio')
  // Where the tool's own retries end before the service is back, its caller calls again.
  const append = (number: number) => {
    const asked = { session_id: log.id, type: 'step', data: { number }, idempotency_key: `step ${number}` }
    return vi.waitFor(() => value('append_event', asked), { timeout: 60_000, interval: 500 })
  }
  for (let number = 1; number <= 5; number += 1) await append(number)
  const rest = Promise.all([6, 7, 8, 9, 10].map(append))
  await first.kill()
  await service.startNode({ PORT: port })
  await rest
  const numbers = expectOk(await log.timeline()).items.map(({ data }) => (data as { number: number }).number)
  expect(numbers.sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  const { entries } = await value<{ entries: unknown[] }>('read_session', { session_id: log.id })
  expect(entries).toHaveLength(10)
})
