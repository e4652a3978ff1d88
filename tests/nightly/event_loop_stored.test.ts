import { beforeAll, describe, expect, it } from 'vitest'
import { costlyTexts, shareOf } from '../../fuzz/costly_shapes.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { watchEventLoop } from '../harness/event_loop_watch.ts'
import { expectOk } from '../harness/expectations.ts'
import type { HttpClient } from '../harness/http_client.ts'
import { useService } from '../harness/service.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'

/** How the messages of a page may be edited. */
const EDITS = [
  [
    {
      type: 'remove_tool_result',
      params: { keep_recent_n_tool_results: 0, tool_result_placeholder: '猫'.repeat(256) },
    },
  ],
  [{ type: 'remove_tool_call_params', params: { keep_recent_n_tool_calls: 0 } }],
  [{ type: 'token_limit', params: { limit_tokens: 1_000 } }],
  [{ type: 'middle_out', params: { token_reduce_to: 1_000 } }],
]
/** Unless the run is thorough, each of them takes half of what can be asked, and two neighbours all of it. */
const FORMATS = ['openai', 'anthropic', 'gemini', 'acontext', 'responses']
/** Fifty reads of megabytes keep a processor for half a minute, and others use it, too. What is bounded is each turn. */
const PATIENTLY = { timeout: 300_000 }
const CONTEXTS = ['max_tokens=1000', 'max_tokens=10000000', 'keep_tool_results=1&clear_tool_inputs=true']

const watch = watchEventLoop()
const service = useService(watch.env)
let api: ApiClient

beforeAll(async () => {
  api = await service.newClient()
})

const get = (path: string, below = '/api/v1', client: HttpClient = api) =>
  watch.check(path, () => client.request('GET', `${below}/${path}`))

describe('the event loop is held for 20 ms at most', () => {
  it('by reading messages of a megabyte in any format', PATIENTLY, async () => {
    const { id } = expectOk(await api.createSession({}), 201)
    const call = (index: number) => ({
      id: `call_${index}`,
      type: 'function',
      function: { name: 'f', arguments: '{"a":[{},{},1e10]}' },
    })
    const calls = {
      role: 'assistant',
      content: null,
      tool_calls: Array.from({ length: 9_000 }, (_, n) => call(n)),
    }
    const texts = {
      role: 'user',
      content: Array.from({ length: 25_000 }, () => ({ type: 'text', text: 'a' })),
    }
    const results = Array.from({ length: 900 }, (_, n) => ({
      role: 'tool',
      tool_call_id: `call_${n}`,
      content: 'b',
    }))
    for (const blob of [calls, texts])
      expectOk(await api.request('POST', `/api/v1/session/${id}/messages`, { body: { blob } }), 201)
    const items = results.map((_, n) => ({
      kind: 'message',
      format: 'responses',
      blob: { type: 'function_call', call_id: `item_${n}`, name: 'f', arguments: '{"a":[{},{},1e10]}' },
    }))
    expectOk(await api.request('POST', `/api/v1/session/${id}/entries`, { body: { entries: items } }), 201)
    const entries = results.map((blob) => ({ kind: 'message', blob }))
    expectOk(await api.request('POST', `/api/v1/session/${id}/entries`, { body: { entries } }), 201)
    const edited = [...EDITS, EDITS.flat()].map(
      (edits) => `edit_strategies=${encodeURIComponent(JSON.stringify(edits))}`,
    )
    const queries = ['', 'limit=1', 'limit=50&time_desc=true', ...edited]
    const reads = [
      ...queries.map((query) => `messages?${query}&format=`),
      ...CONTEXTS.map((query) => `context?${query}&format=`),
    ]
    for (const [place, format] of FORMATS.entries())
      for (const read of IS_THOROUGH ? reads : shareOf(reads, place, Math.ceil(reads.length / 4)))
        await get(`session/${id}/${read}${format}`)
    for (const path of [
      'timeline',
      'timeline?limit=200&time_desc=true',
      'messages?limit=200&with_events=true',
    ])
      await get(`session/${id}/${path}`)
    await get(`figures?ids=${id}`, '/console/data')
    expect(watch.noted().join('\n')).toBe('')
  })

  it('by a list of 200 sessions with large configs', PATIENTLY, async () => {
    const client = await service.newClient()
    const configs = { a: costlyTexts(60_000).find(([name]) => name === 'emoji')![1], b: 'large' }
    for (let count = 0; count < 200; count++)
      expectOk(await client.request('POST', '/api/v1/session', { body: { configs } }), 201)
    const filter = encodeURIComponent(JSON.stringify({ b: 'large' }))
    for (const query of ['limit=200', 'limit=200&time_desc=true', `limit=200&filter_by_configs=${filter}`])
      await get(`session?${query}`, '/api/v1', client)
    expect(watch.noted().join('\n')).toBe('')
  })
})
