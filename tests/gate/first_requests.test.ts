import { afterAll, beforeAll, expect, it } from 'vitest'
import { startObjectStore, type TestObjectStore } from '../../lab/object_store.ts'
import type { AnnalsServer } from '../harness/annals_process.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { newBytes, sha256Of } from '../harness/blobs.ts'
import { STRETCH_MS_MAX, watchEventLoop } from '../harness/event_loop_watch.ts'
import { useService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'

/** On a busy machine, a process may be unlucky. */
const PROCESSES = 6

const env: Record<string, string> = {}
let store: TestObjectStore
beforeAll(async () => {
  store = await startObjectStore()
  Object.assign(env, store.env)
})
const service = useService(env)
afterAll(() => store.end())

/** What loads, compiles or makes something when it is first asked for. */
async function firstRequests(api: ApiClient) {
  const { id } = await newSessionLog(api)
  const path = `/api/v1/session/${id}`
  const bytes = newBytes(1_000)
  const blob = `/api/v1/blobs/${sha256Of(bytes)}`
  const file = { type: 'file', data: { annals_blob: sha256Of(bytes), media_type: 'image/png' } }
  const mcp = (method: string, params: object) => () =>
    api.request('POST', '/mcp', {
      body: { jsonrpc: '2.0', id: 1, method, params },
      headers: { accept: 'application/json, text/event-stream' },
    })
  const message = (content: string) => () =>
    api.request('POST', `${path}/messages`, { body: { blob: { role: 'user', content } } })
  const capabilities = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'a', version: '1' },
  }
  return {
    'a message': message('Hello'),
    'a large message': message('Hello. '.repeat(10_000)),
    'messages in another format': () => api.request('GET', `${path}/messages?format=gemini`),
    'a context': () => api.request('GET', `${path}/context`),
    'a blob sent': () =>
      api.request('PUT', blob, { rawBody: bytes, headers: { 'Content-Type': 'image/png' } }),
    'a blob read': () => api.request('GET', blob),
    'a reference to it': () => api.request('POST', `${path}/events`, { body: file }),
    'signed URLs': () => api.request('GET', `${path}/messages?with_asset_public_url=true`),
    '/openapi.json': () => api.request('GET', '/openapi.json'),
    '/openapi.json, compressed': () =>
      api.request('GET', '/openapi.json', { headers: { 'accept-encoding': 'gzip' } }),
    '/docs': () => api.request('GET', '/docs'),
    'the reference': () =>
      api.request('GET', '/docs/reference.js', { headers: { 'accept-encoding': 'gzip' } }),
    '/metrics': () => api.request('GET', '/metrics'),
    'MCP: initialize': mcp('initialize', capabilities),
    'MCP: tools': mcp('tools/list', {}),
    'MCP: a session': mcp('tools/call', { name: 'read_session', arguments: { session_id: id } }),
  }
}

it('the first request of a process holds its event loop for 20 ms at most, whatever it asks for', async () => {
  const shortest = new Map<string, number>()
  const long = () => [...shortest].filter(([, stretch_ms]) => stretch_ms > STRETCH_MS_MAX)
  for (let processes = 0; processes === 0 || (processes < PROCESSES && long().length > 0); processes++) {
    const watch = watchEventLoop()
    const node: AnnalsServer = await service.startNode(watch.env)
    const requests = await firstRequests(await service.newClient({ node }))
    for (const [name, request] of Object.entries(requests)) {
      const stretch_ms = await watch.stretchOfFirst(request)
      shortest.set(name, Math.min(shortest.get(name) ?? Number.POSITIVE_INFINITY, stretch_ms))
    }
    await node.stop()
  }
  expect(long()).toEqual([])
})
