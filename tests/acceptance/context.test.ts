import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'

interface Context {
  items: Array<Record<string, unknown>>
  ids: string[]
  tokens: number
  from_seq: number
  cleared_through_seq: number
  pin: string
}

const service = useSharedService()
let api: ApiClient

beforeAll(async () => {
  api = await service.newClient()
})

const contextOf = async ({ id }: SessionLog, query: Record<string, string | number | boolean> = {}) =>
  expectOk<Context>(
    await api.request('GET', `/api/v1/session/${id}/context?${new URLSearchParams(asText(query))}`),
  )
const asText = (query: object) =>
  Object.fromEntries(Object.entries(query).map(([key, value]) => [key, String(value)]))

const say = (role: string, content: string) => ({ kind: 'message', blob: { role, content } })
const event = { kind: 'event', type: 'tick', data: {} }
/** A turn in which a tool is called once and answers so many words. */
const turn = (n: number, words: number) => [
  say('user', `question ${n}`),
  {
    kind: 'message',
    blob: {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: `call_${n}`, type: 'function', function: { name: 'look', arguments: `{"n":${n}}` } },
      ],
    },
  },
  { kind: 'message', blob: { role: 'tool', tool_call_id: `call_${n}`, content: 'word '.repeat(words) } },
  say('assistant', `answer ${n}`),
]
const turns = (count: number, words: number) => Array.from({ length: count }, (_, n) => turn(n, words)).flat()

async function sessionOf(...entries: object[]): Promise<SessionLog> {
  const log = await newSessionLog(api)
  for (let from = 0; from < entries.length; from += 1_000)
    expectOk(await log.batch(entries.slice(from, from + 1_000)), 201)
  return log
}

describe('a context', () => {
  it('of a session that fits is all of its messages, in any format', async () => {
    const log = await sessionOf(say('system', 'Be brief.'), event, ...turns(2, 10), event)
    const page = expectOk(await log.list())
    const context = await contextOf(log)
    expect(context.items).toEqual(page.items)
    expect(context.ids).toEqual(page.ids)
    expect(context).toMatchObject({ tokens: page.this_time_tokens, from_seq: 1, cleared_through_seq: 0 })
    const converted = await contextOf(log, { format: 'anthropic' })
    expect(converted.items).toEqual(expectOk(await log.list({ format: 'anthropic' })).items)
  })

  it('of a session that fits is whole also where it has more than it would be cut down to', async () => {
    const log = await sessionOf(say('system', 'Be brief.'), event, ...turns(12, 100))
    const { items, this_time_tokens } = expectOk(await log.list())
    const fits = await contextOf(log, { max_tokens: this_time_tokens })
    expect(fits).toMatchObject({ items, tokens: this_time_tokens, from_seq: 1 })
    const cut = await contextOf(log, { max_tokens: this_time_tokens - 1 })
    expect(cut.tokens).toBeLessThanOrEqual(Math.ceil(0.6 * this_time_tokens))
    const cleared = await contextOf(log, { max_tokens: this_time_tokens - 1, keep_tool_results: 9 })
    expect(cleared.items).toHaveLength(items.length)
  })

  it('is read in as many pieces as it takes', async () => {
    const short = await sessionOf(say('system', 'Be brief.'), ...turns(400, 1), event)
    expect((await contextOf(short)).items).toEqual(expectOk(await short.list()).items)
    const long = await sessionOf(event)
    for (let n = 0; n < 5; n++)
      expectOk(
        await long.batch([say('user', `${n} ${'word '.repeat(60_000)}`), say('assistant', `Yes, ${n}.`)]),
        201,
      )
    const { items, this_time_tokens } = expectOk(await long.list())
    expect((await contextOf(long, { max_tokens: this_time_tokens })).items).toEqual(items)
    const cut = await contextOf(long, {
      max_tokens: this_time_tokens - 1,
      target_tokens: this_time_tokens - 2,
    })
    expect(cut.items).toEqual(items.slice(2))
  })

  it('of a session without messages is empty', async () => {
    expect(await contextOf(await sessionOf(event))).toMatchObject({
      items: [],
      ids: [],
      tokens: 0,
      from_seq: 0,
    })
  })

  it('of a long session begins with a user’s message and has what fits the target, the system message ahead', async () => {
    const log = await sessionOf(say('system', 'Be brief.'), ...turns(400, 100))
    const { items, tokens, from_seq } = await contextOf(log, { max_tokens: 2_000 })
    expect(items[0]).toEqual({ role: 'system', content: 'Be brief.' })
    expect(items[1]).toMatchObject({ role: 'user' })
    expect(items.at(-1)).toEqual({ role: 'assistant', content: 'answer 399' })
    expect(items.length).toBe(1 + 1_601 - from_seq + 1)
    expect(tokens).toBeGreaterThan(1_000)
    expect(tokens).toBeLessThanOrEqual(1_200)
    const narrow = await contextOf(log, { max_tokens: 2_000, target_tokens: 300 })
    expect(narrow.tokens).toBeLessThanOrEqual(300)
  })

  it('keeps its prefix byte for byte while its pin is sent, until the limit is passed', async () => {
    const rules = { max_tokens: 1_500, keep_tool_results: 1 }
    const log = await sessionOf(say('system', 'Be brief.'), ...turns(30, 60))
    let context = await contextOf(log, rules)
    const kept: boolean[] = []
    for (let n = 30; n < 50; n++) {
      expectOk(await log.batch(turn(n, 60)), 201)
      const next = await contextOf(log, { ...rules, pin: context.pin })
      const before = JSON.stringify(context.items).slice(0, -1)
      kept.push(JSON.stringify(next.items).startsWith(before))
      if (kept.at(-1))
        expect(next).toMatchObject({
          from_seq: context.from_seq,
          cleared_through_seq: context.cleared_through_seq,
        })
      expect(next.tokens).toBeLessThanOrEqual(1_500)
      context = next
    }
    expect(kept).toContain(true)
    expect(kept).toContain(false)
    expect(kept.filter((isKept) => !isKept).length).toBeLessThan(6)
  })

  it('has a short text for each tool result but the newest, and for no excluded tool', async () => {
    const log = await sessionOf(...turns(3, 100))
    const all = await contextOf(log)
    const context = await contextOf(log, { keep_tool_results: 1 })
    expect(context.cleared_through_seq).toBe(7)
    expect(context.items[2]).toEqual({
      role: 'tool',
      tool_call_id: 'call_0',
      content: '[result cleared: seq 3, 500 characters]',
    })
    expect(context.items[10]).toEqual(all.items[10])
    expect(context.tokens).toBeLessThan(all.tokens)
    const inputs = await contextOf(log, { keep_tool_results: 1, clear_tool_inputs: true })
    expect(inputs.items[1]).toMatchObject({ tool_calls: [{ function: { name: 'look', arguments: '{}' } }] })
    expect(inputs.items[9]).toEqual(all.items[9])
    const excluded = await contextOf(log, { keep_tool_results: 0, exclude_tools: 'search,look' })
    expect(excluded.items).toEqual(all.items)
    const gemini = await contextOf(log, { keep_tool_results: 0, format: 'gemini' })
    expect(JSON.stringify(gemini.items)).not.toContain('word word')
  })

  it('of one turn that is too long has its question and its newest steps', async () => {
    const steps = Array.from({ length: 200 }, (_, n) => turn(n, 50).slice(1, 3)).flat()
    const log = await sessionOf(...turns(2, 10), say('user', 'Do it all.'), ...steps)
    const { items, tokens, from_seq, pin } = await contextOf(log, { max_tokens: 1_000 })
    expect(items[0]).toEqual({ role: 'user', content: 'Do it all.' })
    expect(items[1]).toMatchObject({ role: 'assistant', tool_calls: [{ id: expect.any(String) }] })
    expect(tokens).toBeLessThanOrEqual(600)
    expectOk(await log.batch(turn(200, 50).slice(1, 3)), 201)
    const next = await contextOf(log, { max_tokens: 1_000, pin })
    expect(next.from_seq).toBe(from_seq)
    expect(next.items.slice(0, items.length)).toEqual(items)
    expect(next.items.length).toBe(items.length + 2)
  })

  it('of such a turn keeps instructions that came within it, also while its pin is sent', async () => {
    const [question, ...steps] = turn(0, 200)
    const log = await sessionOf(
      question!,
      ...steps,
      say('system', 'Careful now.'),
      ...turn(1, 200).slice(1),
      ...turn(2, 200).slice(1),
    )
    const query = { max_tokens: 500, target_tokens: 300 }
    const { items, pin, from_seq } = await contextOf(log, query)
    expect(from_seq).toBeGreaterThan(5)
    expect(items.slice(0, 2)).toEqual([
      { role: 'user', content: 'question 0' },
      { role: 'system', content: 'Careful now.' },
    ])
    expectOk(await log.batch(turn(3, 1).slice(1)), 201)
    const next = await contextOf(log, { ...query, pin })
    expect(next.items.slice(0, items.length)).toEqual(items)
    expect(next.items.length).toBeGreaterThan(items.length)
  })

  it('keeps its prefix also where it is too long and can be cut no further', async () => {
    const calls = ['a', 'b'].map((id) => ({
      id,
      type: 'function',
      function: { name: 'look', arguments: JSON.stringify({ text: 'word '.repeat(200) }) },
    }))
    const called = { kind: 'message', blob: { role: 'assistant', content: null, tool_calls: calls } }
    const log = await sessionOf(say('user', 'x'), called)
    const rules = { max_tokens: 100 }
    const { items, pin } = await contextOf(log, rules)
    const result = { role: 'tool', tool_call_id: 'a', content: 'word '.repeat(100) }
    expectOk(await log.batch([{ kind: 'message', blob: result }]), 201)
    const next = await contextOf(log, { ...rules, pin })
    expect(next.items.slice(0, items.length)).toEqual(items)
    expect(next.items).toHaveLength(items.length + 1)
  })

  it('shows a step that is longer than the limit by itself', async () => {
    const log = await sessionOf(...turn(0, 150_000).slice(0, 3))
    const { items, tokens } = await contextOf(log, { max_tokens: 1_000 })
    expect(items).toHaveLength(3)
    expect(tokens).toBeGreaterThan(100_000)
    const cleared = await contextOf(log, { max_tokens: 1_000, keep_tool_results: 0 })
    expect(cleared.tokens).toBeLessThan(1_000)
  })

  it('is refused with a pin of another session, a target above the limit, and for a session that nobody has', async () => {
    const log = await sessionOf(say('user', 'Hello'))
    const { pin } = await contextOf(log)
    const other = await sessionOf(say('user', 'Hello'))
    const path = `/api/v1/session/${other.id}/context`
    for (const wrong of [pin, 'nonsense', `${pin}x`])
      expectError(await api.request('GET', `${path}?pin=${wrong}`), 400, 'invalid_cursor', 'pin')
    const beyond = await api.request('GET', `${path}?max_tokens=100&target_tokens=101`)
    expectError(beyond, 400, 'invalid_request', 'target_tokens')
    expectError(await api.request('GET', `/api/v1/session/${NOBODYS_ID}/context`), 404, 'session_not_found')
  })
})
