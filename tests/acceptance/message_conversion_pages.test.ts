import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog, walkMessages } from '../harness/session_log.ts'

const service = useSharedService()
let api: ApiClient

beforeAll(async () => {
  api = await service.newClient()
})

type Found = Record<string, unknown> & {
  functionResponse?: { id: string; name: string }
  tool_calls?: Array<{ id: string }>
}

/** Every object below a value that has the key. */
function having(value: unknown, key: string): Found[] {
  if (typeof value !== 'object' || value === null) return []
  const below = Object.values(value).flatMap((child) => having(child, key))
  return Object.hasOwn(value, key) ? [value as Found, ...below] : below
}

describe('a tool call and its result in another format, on pages of one message', () => {
  const call = (id: string, name: string) => ({
    id,
    type: 'function',
    function: { name, arguments: '{"n":1}' },
  })
  const openai = [
    { role: 'user', content: 'Go' },
    { role: 'assistant', content: null, tool_calls: [call('c1', 'first'), call('c2', 'second')] },
    { role: 'tool', tool_call_id: 'c1', content: 'one' },
    { role: 'tool', tool_call_id: 'c2', content: 'two' },
  ]
  const gemini = [
    { role: 'user', parts: [{ text: 'Go' }] },
    {
      role: 'model',
      parts: [{ functionCall: { name: 'same', args: {} } }, { functionCall: { name: 'same', args: {} } }],
    },
    {
      role: 'user',
      parts: [
        { functionResponse: { name: 'same', response: { output: 'one' } } },
        { functionResponse: { name: 'same', response: { output: 'two' } } },
      ],
    },
  ]

  it.each([false, true])('keep one id: openai as anthropic and gemini, time_desc %s', async (time_desc) => {
    const log = await newSessionLog(api)
    for (const blob of openai) expectOk(await log.add(blob), 201)
    const anthropic = await walkMessages(log, { limit: 1, format: 'anthropic', time_desc })
    const results = having(
      anthropic.map((page) => page.items),
      'tool_use_id',
    ).map((block) => block.tool_use_id)
    expect([...results].sort()).toEqual(['c1', 'c2'])
    const uses = having(
      anthropic.map((page) => page.items),
      'input',
    ).map((block) => block.id)
    expect([...uses].sort()).toEqual(['c1', 'c2'])
    const pages = (await walkMessages(log, { limit: 1, format: 'gemini', time_desc })).map(
      (page) => page.items,
    )
    const responses = having(pages, 'functionResponse').map(
      ({ functionResponse: { id, name } = { id: '', name: '' } }) => [id, name],
    )
    expect(responses.sort()).toEqual([
      ['c1', 'first'],
      ['c2', 'second'],
    ])
  })

  it.each([false, true])('have one id where gemini gave none, time_desc %s', async (time_desc) => {
    const log = await newSessionLog(api)
    for (const blob of gemini) expectOk(await log.add(blob, { format: 'gemini' }), 201)
    const pages = await walkMessages(log, { limit: 1, format: 'openai', time_desc })
    const items = (time_desc ? pages.toReversed() : pages).flatMap((page) => page.items)
    const calls = having(items, 'tool_calls').flatMap((item) => (item.tool_calls ?? []).map(({ id }) => id))
    const results = having(items, 'tool_call_id')
    expect(new Set(calls).size).toBe(2)
    expect(results.map((item) => item.tool_call_id).sort()).toEqual([...calls].sort())
    expect(Object.fromEntries(results.map((item) => [item.tool_call_id, item.content]))).toEqual({
      [calls[0]!]: expect.stringContaining('one'),
      [calls[1]!]: expect.stringContaining('two'),
    })
  })
})
