import { beforeAll, describe, expect, it, vi } from 'vitest'
import { costlyJson, costlyTexts, fittingJson } from '../../fuzz/costly_shapes.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { watchEventLoop } from '../harness/event_loop_watch.ts'
import { expectOk } from '../harness/expectations.ts'
import { search, switchSearch, untilIndexed } from '../harness/search.ts'
import { useService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'

/** As much as is worked on without leaving the event loop, and twice that: four events of it are what a tool reads at once. */
const SIZES = [30_000, 60_000]
/** What has many places in a text, or many words. */
const QUERIES = [
  'a '.repeat(32),
  `"${'a '.repeat(32)}"`,
  'a* '.repeat(32),
  '一 '.repeat(32),
  `e${'\u0301'.repeat(1_000)}`,
  'x',
]
const TOOLS = { read_session: { limit: 50 }, get_tool_call: { seq: 2 } }
const MCP = { accept: 'application/json, text/event-stream' }

const watch = watchEventLoop()
const service = useService(watch.env)
let api: ApiClient
let project_id: string

beforeAll(async () => {
  const project = await service.newProject()
  project_id = project.id
  api = await service.newClient({ token: project.token })
})

/** What is costly to read, of a size; unless the run is thorough, each of it has one of the sizes. */
const costlyValues = (bytes: number): [string, string][] =>
  [
    ...costlyTexts(bytes).map(([name, text]): [string, string] => [name, fittingJson(text, bytes)]),
    ...costlyJson(bytes),
  ].filter((_value, index) => IS_THOROUGH || index % SIZES.length === SIZES.indexOf(bytes))
const EVENTS = [
  '{"type":"x","data":{"a":@}}',
  '{"type":"tool_call","data":{"id":"c","name":"f","arguments":@}}',
  '{"type":"tool_result","data":{"id":"c","error":@}}',
  '{"type":"tool_call","data":{"id":"d","name":"f","arguments":@,"result":"done"}}',
]

/** A session with these events, from which a learning space learns. */
async function learntSession(space_id: string, value: string): Promise<string> {
  const { id } = await newSessionLog(api)
  for (const event of EVENTS) {
    const rawBody = event.replace('@', () => value)
    const { status } = await api.request('POST', `/api/v1/session/${id}/events`, { rawBody })
    expect([200, 400]).toContain(status)
  }
  const body = { session_id: id }
  expectOk(await api.request('POST', `/api/v1/learning_spaces/${space_id}/learn`, { body }), 201)
  return id
}

async function untilLearnt(space_id: string): Promise<void> {
  const path = `/api/v1/learning_spaces/${space_id}/sessions`
  const isDone = async () => {
    const sessions = expectOk(await api.request<{ status: string }[]>('GET', path))
    expect(sessions.filter(({ status }) => status !== 'completed')).toEqual([])
  }
  await vi.waitFor(isDone, { timeout: 240_000, interval: 200 })
}

describe('the event loop is held for 20 ms at most', () => {
  it('by anything that is indexed, searched, learnt from, or asked for through MCP', {
    // It waits for the background, which a busy machine may be slow with.
    timeout: 900_000,
  }, async () => {
    await switchSearch(service.adminClient(), project_id, true)
    const { id: space_id } = expectOk(await api.createLearningSpace(), 201)
    for (const bytes of SIZES) {
      const values = costlyValues(bytes)
      let ids: string[] = []
      await watch.check(`indexed and learnt from, of ${bytes}`, async () => {
        ids = []
        for (const [, value] of values) ids.push(await learntSession(space_id, value))
        await untilLearnt(space_id)
        await untilIndexed(api)
        return { status: 200 }
      })
      for (const [index, session_id] of ids.entries()) {
        const name = `${values[index]![0]} of ${bytes}`
        for (const [tool, asked] of Object.entries(TOOLS)) {
          const params = { name: tool, arguments: { session_id, ...asked } }
          const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
          await watch.check(`${tool}, ${name}`, () => api.request('POST', '/mcp', { body, headers: MCP }))
        }
        await watch.check(`figures, ${name}`, () =>
          api.request('GET', '/console/data/figures', { query: { ids: session_id } }),
        )
      }
    }
    for (const q of QUERIES)
      for (const order of ['newest', 'relevance'])
        await watch.check(`search ${q.slice(0, 20)} by ${order}`, () => search(api, q, { limit: 200, order }))
    expect(watch.noted().join('\n')).toBe('')
  })
})
