import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { type MessagePage, newSessionLog, type SessionLog, walkMessages } from '../harness/session_log.ts'

const service = useSharedService()
let api: ApiClient

beforeAll(async () => {
  api = await service.newClient()
})

const message = (blob: object, format = 'openai') => ({ kind: 'message', blob, format, meta: { of: format } })
const say = (role: string, content: string) => message({ role, content })
const called = (n: number, name = 'look') =>
  message({
    role: 'assistant',
    content: null,
    tool_calls: [{ id: `call_${n}`, type: 'function', function: { name, arguments: `{"n":${n}}` } }],
  })
const returned = (n: number) =>
  message({ role: 'tool', tool_call_id: `call_${n}`, content: `result ${n} `.repeat(20) })

/** A system message, and turns in which a tool is called once: 1 + 4 n messages. */
async function conversation(turns: number): Promise<SessionLog> {
  const log = await newSessionLog(api)
  const entries = Array.from({ length: turns }, (_, n) => [
    say('user', `question ${n}`),
    called(n),
    returned(n),
    { kind: 'event', type: 'tick', data: {} },
    say('assistant', `answer ${n}`),
  ]).flat()
  expectOk(await log.batch([say('system', 'Be brief.'), ...entries]), 201)
  return log
}

const edited = (strategies: unknown, more: object = {}) => ({
  edit_strategies: JSON.stringify(strategies),
  ...more,
})
const page = async (log: SessionLog, query: Record<string, string | number | boolean> = {}) =>
  expectOk(await log.list(query))
const contents = ({ items }: MessagePage) =>
  items.map(({ content, tool_calls }) => (tool_calls ? JSON.stringify(tool_calls) : content))
const cleared = (n: number) => ({ type: 'remove_tool_result', params: { keep_recent_n_tool_results: n } })

describe('edit_strategies', () => {
  it('clear older results and arguments of calls, and nothing else, whatever the format', async () => {
    const log = await conversation(4)
    const whole = await page(log)
    const strategies = [
      {
        type: 'remove_tool_result',
        params: { keep_recent_n_tool_results: 1, tool_result_placeholder: 'gone' },
      },
      { type: 'remove_tool_call_params', params: { keep_recent_n_tool_calls: 2 } },
    ]
    const short = await page(log, edited(strategies))
    expect(short.ids).toEqual(whole.ids)
    expect(short.metas).toEqual(whole.metas)
    expect(short.edit_at_message_id).toBe(whole.ids.at(-1))
    expect(short.this_time_tokens).toBeLessThan(whole.this_time_tokens)
    const expected = contents(whole).map((text) =>
      /^result [012] /.test(String(text)) ? 'gone' : String(text).replace(/\{\\"n\\":[01]\}/, '{}'),
    )
    expect(contents(short)).toEqual(expected)
    for (const format of ['anthropic', 'gemini', 'acontext', 'responses']) {
      const other = await page(log, edited(strategies, { format }))
      const text = JSON.stringify(other.items)
      expect(text.match(/gone/g)).toHaveLength(3)
      for (const n of [0, 1, 2]) expect(text).not.toContain(`result ${n}`)
      expect(text).toContain('result 3')
      expect(text.match(/n\\*":[0-9]/g)).toHaveLength(2)
      expect(other.ids).toEqual((await page(log, { format })).ids)
    }
    expect(await page(log)).toEqual(whole)
    expect((await page(log, edited([]))).items).toEqual(whole.items)
  })

  it('leave out messages down to a number of tokens, a call with its result, and say what is left', async () => {
    const log = await conversation(6)
    const whole = await page(log)
    const limit_tokens = Math.floor(whole.this_time_tokens / 2)
    const short = await page(log, edited([{ type: 'token_limit', params: { limit_tokens } }]))
    expect(short.this_time_tokens).toBeLessThanOrEqual(limit_tokens)
    expect(short.items).toEqual([whole.items[0], ...whole.items.slice(1 - short.items.length)])
    expect(short.ids).toEqual([whole.ids[0], ...whole.ids.slice(1 - short.ids.length)])
    expect(short.metas).toHaveLength(short.items.length)
    expect(short.items[1]!.role).not.toBe('tool')
    const middle = await page(
      log,
      edited([{ type: 'middle_out', params: { token_reduce_to: limit_tokens } }, cleared(0)]),
    )
    expect(contents(middle).slice(0, 2)).toEqual(['Be brief.', 'question 0'])
    expect(contents(middle).at(-1)).toBe('answer 5')
    expect(contents(middle).filter((text) => text === 'Done').length).toBeGreaterThan(0)
    const nothing = await page(log, edited([{ type: 'token_limit', params: { limit_tokens: 0 } }]))
    expect(contents(nothing)).toEqual(['Be brief.', 'answer 5'])
  })

  it('end at the pin: what is after it is as it was, and so is the prefix while the log grows', async () => {
    const log = await conversation(4)
    const whole = await page(log)
    const pin_editing_strategies_at_message = whole.ids[8]!
    const query = edited([cleared(0)], { pin_editing_strategies_at_message })
    const short = await page(log, query)
    expect(short.edit_at_message_id).toBe(pin_editing_strategies_at_message)
    expect(contents(short).filter((text) => text === 'Done')).toHaveLength(2)
    expect(short.items.slice(9)).toEqual(whole.items.slice(9))
    expectOk(await log.batch([called(9), returned(9)]), 201)
    const grown = await page(log, query)
    expect(grown.items.slice(0, short.items.length)).toEqual(short.items)
    const unedited = await page(log, { pin_editing_strategies_at_message })
    expect(unedited.edit_at_message_id).toBe(pin_editing_strategies_at_message)
    expect(unedited.items.slice(0, whole.items.length)).toEqual(whole.items)
    for (const pin of [NOBODYS_ID, (await newSessionLog(api)).id])
      expectError(await log.list({ pin_editing_strategies_at_message: pin }), 404, 'message_not_found')
    const [event] = expectOk(await api.listEvents(log.id)).items
    const atEvent = await log.list({ pin_editing_strategies_at_message: event!.id })
    expectError(atEvent, 404, 'message_not_found')
  })

  it('edit each page of a walk by itself, in either direction, with events on one page each', async () => {
    const log = await conversation(6)
    const whole = await page(log)
    for (const time_desc of [false, true]) {
      const query = edited([cleared(1), { type: 'token_limit', params: { limit_tokens: 60 } }])
      const pages = await walkMessages(log, { ...query, limit: 6, time_desc, with_events: true })
      expect(pages.length).toBeGreaterThan(3)
      expect(pages.flatMap(({ events }) => events!)).toHaveLength(6)
      const ids = (time_desc ? pages.toReversed() : pages).flatMap((one) => one.ids)
      expect(ids.length).toBeLessThan(whole.ids.length)
      expect(ids).toEqual(whole.ids.filter((id) => ids.includes(id)))
      const { next_cursor } = pages[0]!
      const other = { limit: 6, time_desc, with_events: true, cursor: next_cursor }
      expectError(await log.list(other), 400, 'invalid_cursor')
      expectError(await log.list({ ...other, ...edited([]) }), 400, 'invalid_cursor')
    }
  })

  it('know the items of one turn of the Responses API, of which some are edited or left out', async () => {
    const log = await newSessionLog(api)
    const item = (blob: object) => message(blob, 'responses')
    const call = (n: number) =>
      item({ type: 'function_call', call_id: `c${n}`, name: 'look', arguments: `{"n":${n}}` })
    const output = (n: number) =>
      item({ type: 'function_call_output', call_id: `c${n}`, output: 'long '.repeat(50) })
    const entries = [say('user', 'Look'), call(1), call(2), output(1), output(2), call(3), output(3)]
    expectOk(await log.batch(entries), 201)
    const strategies = [
      { type: 'remove_tool_call_params', params: { keep_recent_n_tool_calls: 2 } },
      cleared(1),
    ]
    const { items } = await page(log, edited(strategies))
    const [, turn] = items as [object, { tool_calls: Array<{ function: { arguments: string } }> }]
    expect(turn.tool_calls.map((made) => made.function.arguments)).toEqual(['{}', '{"n":2}'])
    expect(items.filter(({ content }) => content === 'Done')).toHaveLength(2)
    const limited = await page(log, edited([{ type: 'token_limit', params: { limit_tokens: 70 } }]))
    expect(limited.items.map(({ role }) => role)).toEqual(['assistant', 'tool'])
  })
})

describe('edit_strategies that are none', () => {
  it.each([
    ['', 'edit_strategies'],
    ['{}', 'must be'],
    ['[1]', '/0'],
    ['[{"params":{}}]', '/0/type'],
    ['[{"type":"forget"}]', 'remove_tool_result'],
    ['[{"type":"token_limit"}]', '/0/params'],
    ['[{"type":"token_limit","params":{"limit_tokens":"8"}}]', '/0/params/limit_tokens'],
    ['[{"type":"middle_out","params":{"token_reduce_to":-1}}]', '/0/params/token_reduce_to'],
    ['[{"type":"remove_tool_result","params":{"keep":1}}]', '/0/params/keep'],
    ['[{"type":"remove_tool_result","params":{"keep_tools":[1]}}]', '/0/params/keep_tools/0'],
    ['[{"type":"remove_tool_result","params":{"tool_result_placeholder":"\\u0000"}}]', 'U+0000'],
    [`[${Array(17).fill('{"type":"remove_tool_result"}').join(',')}]`, '16'],
  ])('are refused, and the place is named: %s', async (edit_strategies, place) => {
    const log = await newSessionLog(api)
    const answer = await log.list({ edit_strategies })
    expectError(answer, 400, 'invalid_request', 'edit_strategies')
    expect(answer.text).toContain(place)
  })

  it('are refused for more messages than can be edited at once', async () => {
    const log = await newSessionLog(api)
    const entries = Array.from({ length: 1_000 }, () => say('user', 'x'))
    for (let n = 0; n < 20; n++) expectOk(await log.batch(entries), 201)
    expect((await page(log, edited([cleared(1)]))).items).toHaveLength(20_000)
    expectOk(await log.add({ role: 'user', content: 'one more' }), 201)
    expectError(await log.list(edited([cleared(1)])), 400, 'invalid_request', '20000')
    expect((await page(log, edited([cleared(1)], { limit: 9 }))).items).toHaveLength(9)
  }, 60_000)
})
