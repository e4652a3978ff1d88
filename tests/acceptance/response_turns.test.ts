import { beforeAll, describe, expect, it } from 'vitest'
import { agentRuns } from '../harness/agent_runs.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog, walkMessages } from '../harness/session_log.ts'

const service = useSharedService()
let api: ApiClient

beforeAll(async () => {
  api = await service.newClient()
})

/** One turn of a model with two calls at once, as the Responses API has it. */
const turn = (n: number) => [
  { role: 'user', content: `Question ${n}` },
  { type: 'reasoning', id: `rs_${n}`, summary: [], encrypted_content: 'gAAAAB' },
  {
    type: 'message',
    id: `msg_${n}`,
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: `Let me look ${n}`, annotations: [] }],
  },
  { type: 'function_call', id: `fc_${n}a`, call_id: `${n}a`, name: 'search', arguments: '{"q": 1}' },
  { type: 'function_call', id: `fc_${n}b`, call_id: `${n}b`, name: 'shoot', arguments: '{}' },
  { type: 'function_call_output', call_id: `${n}a`, output: 'found' },
  { type: 'function_call_output', call_id: `${n}b`, output: 'shot' },
]
const inChat = (n: number) => [
  { role: 'user', content: `Question ${n}` },
  {
    role: 'assistant',
    content: `Let me look ${n}`,
    tool_calls: [
      { id: `${n}a`, type: 'function', function: { name: 'search', arguments: '{"q": 1}' } },
      { id: `${n}b`, type: 'function', function: { name: 'shoot', arguments: '{}' } },
    ],
  },
  { role: 'tool', tool_call_id: `${n}a`, content: 'found' },
  { role: 'tool', tool_call_id: `${n}b`, content: 'shot' },
]
/** The messages of a turn that have an item in a format with whole turns. */
const WITH_ITEMS = [0, 1, 5, 6]

async function storeTurns(log: SessionLog, count: number): Promise<{ items: object[]; ids: string[] }> {
  const items = Array.from({ length: count }, (_, n) => turn(n)).flat()
  const ids: string[] = []
  for (let from = 0; from < items.length; from += 980) {
    const entries = items
      .slice(from, from + 980)
      .map((blob, at) => ({ kind: 'message', format: 'responses', blob, meta: { n: from + at } }))
    ids.push(...expectOk(await log.batch(entries), 201).items.map(({ id }) => id))
  }
  return { items, ids }
}

const withItems = <Value>(values: readonly Value[]): Value[] =>
  values.filter((_, at) => WITH_ITEMS.includes(at % 7))

describe('a turn that was stored as items of the Responses API', () => {
  it('comes back item by item, ready to be the input of the next request', async () => {
    const log = await newSessionLog(api)
    const { items, ids } = await storeTurns(log, 2)
    for (const format of ['responses', 'acontext']) {
      const page = expectOk(await log.list({ format }))
      if (format === 'responses') expect(page.items).toEqual(items)
      expect(page.ids).toEqual(ids)
    }
  })

  it('is one message with all of its calls for a provider that has whole turns, in both orders', async () => {
    const log = await newSessionLog(api)
    const { ids } = await storeTurns(log, 2)
    for (const format of ['openai', 'anthropic', 'gemini']) {
      const page = expectOk(await log.list({ format }))
      if (format === 'openai') expect(page.items).toEqual([...inChat(0), ...inChat(1)])
      expect(page.items).toHaveLength(8)
      expect(page.ids).toEqual(withItems(ids))
      expect(page.metas).toEqual(page.ids.map((id) => ({ n: ids.indexOf(id) })))
      expect(expectOk(await log.list({ format, time_desc: true }))).toEqual(page)
    }
  })

  it('is one message wherever a long session is read in pieces, with ids and metas in step', async () => {
    const log = await newSessionLog(api)
    const { ids } = await storeTurns(log, 300)
    for (const time_desc of [false, true]) {
      const page = expectOk(await log.list({ format: 'openai', time_desc }))
      expect(page.items).toEqual(Array.from({ length: 300 }, (_, n) => inChat(n)).flat())
      expect(page.ids).toEqual(withItems(ids))
      expect(page.metas).toEqual(withItems(ids.map((_, n) => ({ n }))))
    }
  })

  it.each([false, true])('is left to the next page rather than cut, time_desc %s', async (time_desc) => {
    const log = await newSessionLog(api)
    const { ids } = await storeTurns(log, 3)
    for (const limit of [4, 5, 9]) {
      const pages = await walkMessages(log, { limit, format: 'openai', time_desc })
      const inOrder = time_desc ? pages.toReversed() : pages
      const items = inOrder.flatMap((page) => page.items)
      expect(items).toEqual([...inChat(0), ...inChat(1), ...inChat(2)])
      expect(inOrder.flatMap((page) => page.ids)).toEqual(withItems(ids))
      for (const page of pages) expect(page.ids).toHaveLength(page.items.length)
    }
  })

  it('that is longer than a page is one message on each page, and says everything once', async () => {
    const log = await newSessionLog(api)
    const { ids } = await storeTurns(log, 1)
    const backward = await walkMessages(log, { limit: 2, format: 'openai', time_desc: true })
    const calls = (items: object[]) => items.flatMap((item) => (item as { tool_calls?: [] }).tool_calls ?? [])
    expect(calls(backward.toReversed().flatMap(({ items }) => items))).toEqual(calls(inChat(0)))
    expect(backward.flatMap((page) => page.ids).every((id) => ids.includes(id))).toBe(true)
    const pages = await walkMessages(log, { limit: 3, format: 'openai' })
    const [question, reply, ...results] = inChat(0) as [object, { tool_calls: object[] }, ...object[]]
    expect(pages.map(({ items }) => items)).toEqual([
      [question],
      [{ ...reply, tool_calls: reply.tool_calls.slice(0, 1) }],
      [{ role: 'assistant', content: null, tool_calls: reply.tool_calls.slice(1) }, ...results],
    ])
  })

  it('is read though its items are nested as deeply as a body may be', async () => {
    const log = await newSessionLog(api)
    const deep = `${'['.repeat(998)}${']'.repeat(998)}`
    const blob = `{"type":"message","role":"assistant","content":"Deep","deep":${deep}}`
    for (let n = 0; n < 2; n++) {
      const rawBody = `{"format":"responses","blob":${blob}}`
      expectOk(await api.request('POST', `/api/v1/session/${log.id}/messages`, { rawBody }), 201)
    }
    const text = { type: 'text', text: 'Deep' }
    expect(expectOk(await log.list()).items).toEqual([{ role: 'assistant', content: [text, text] }])
  })

  it('has the messages of other formats between its items as messages of their own', async () => {
    const log = await newSessionLog(api)
    const said = { type: 'message', role: 'assistant', content: 'A' }
    for (const [format, blob] of [
      ['responses', said],
      ['openai', { role: 'assistant', content: 'B' }],
      ['responses', { ...said, content: 'C' }],
      ['responses', { ...said, content: 'D' }],
    ])
      expectOk(await log.add(blob, { format }), 201)
    const texts = (content: string) => ({ type: 'text', text: content })
    expect(expectOk(await log.list({ format: 'anthropic' })).items).toEqual([
      { role: 'assistant', content: [texts('A')] },
      { role: 'assistant', content: [texts('B')] },
      { role: 'assistant', content: [texts('C'), texts('D')] },
    ])
  })

  it('is one message in a context, too, also where its arguments are cleared', async () => {
    const log = await newSessionLog(api)
    const { ids } = await storeTurns(log, 2)
    const contextOf = async (query: Record<string, string | number | boolean>) =>
      expectOk<{ items: object[]; ids: string[] }>(
        await api.request('GET', `/api/v1/session/${log.id}/context`, { query }),
      )
    const whole = await contextOf({})
    expect(whole.items).toEqual([...inChat(0), ...inChat(1)])
    // What the model thought has no place in this format: the turn has the id of what it says first.
    expect(whole.ids).toEqual(ids.filter((_, at) => [0, 2, 5, 6].includes(at % 7)))
    const short = await contextOf({ keep_tool_results: 0, clear_tool_inputs: true })
    const called = short.items.map((item) => (item as { tool_calls?: { function: object }[] }).tool_calls)
    const cleared = (name: string) => ({ name, arguments: '{}' })
    expect(called[1]?.map((call) => call.function)).toEqual([cleared('search'), cleared('shoot')])
  })

  it('is what it was after a whole run of an agent went there and back', async () => {
    for (const { messages } of agentRuns().slice(0, 12)) {
      const chat = await newSessionLog(api)
      expectOk(await chat.batch(messages.map((blob) => ({ kind: 'message', blob }))), 201)
      const { items } = expectOk(await chat.list({ format: 'responses' }))
      const there = await newSessionLog(api)
      const entries = items.map((blob) => ({ kind: 'message', format: 'responses', blob }))
      expectOk(await there.batch(entries), 201)
      expect(expectOk(await there.list({ format: 'responses' })).items).toEqual(items)
      // OpenAI has no place for the name of a result's function, which is the call's.
      const nameless = (messages as { name?: string }[]).map(({ name: _, ...message }) => message)
      expect(expectOk(await there.list({ format: 'openai' })).items).toEqual(nameless)
      expect(expectOk(await there.tokens())).toEqual(expectOk(await chat.tokens()))
    }
  })
})
