import { Annals } from '@annals/client'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'

interface FitList {
  items: Array<Record<string, unknown>>
  ids: string[]
  pin: string
  tokens: number
  metas?: object[]
  omitted: Array<{ id: string; reason: string; what?: string; call_id?: string }>
  added: Array<{ id: string; reason: string; call_id?: string }>
  names: Record<string, string>
}
type Format = 'openai' | 'anthropic' | 'gemini' | 'acontext' | 'responses'

const service = useSharedService()
let api: ApiClient
let annals: Annals

beforeAll(async () => {
  const { token } = await service.newProject()
  api = await service.newClient({ token })
  annals = new Annals({ url: service.node.url, token })
})

class Session {
  constructor(readonly id: string) {}

  async add(format: Format, ...blobs: object[]): Promise<void> {
    const entries = blobs.map((blob) => ({ kind: 'message', format, blob }))
    expectOk(await api.request('POST', `/api/v1/session/${this.id}/entries`, { body: { entries } }), 201)
  }

  async get(path: 'context' | 'messages', query: Record<string, string>): Promise<FitList> {
    return expectOk(
      await api.request('GET', `/api/v1/session/${this.id}/${path}?${new URLSearchParams(query)}`),
    )
  }

  context(format: Format, query: Record<string, string> = {}): Promise<FitList> {
    return this.get('context', { format, ...query })
  }
}

async function sessionOf(format: Format, ...blobs: object[]): Promise<Session> {
  const { id } = expectOk<{ id: string }>(await api.createSession({}), 201)
  const session = new Session(id)
  await session.add(format, ...blobs)
  return session
}

const user = (content: string) => ({ role: 'user', content })
const call = (id: string, name = 'look', text = '{}') => ({
  id,
  type: 'function',
  function: { name, arguments: text },
})
const calls = (...tool_calls: object[]) => ({ role: 'assistant', content: null, tool_calls })
const result = (id: string, content: string) => ({ role: 'tool', tool_call_id: id, content })
const use = (id: string, name = 'Read') => ({ type: 'tool_use', id, name, input: {} })

describe('a call that nobody answered', () => {
  const log = [
    user('find it'),
    calls(call('call_a'), call('call_b')),
    result('call_a', '1'),
    user('leave it'),
  ]

  it('is given a result that says so, in every format', async () => {
    const session = await sessionOf('openai', ...log)
    const openai = await session.context('openai')
    expect(openai.items[3]).toEqual({
      role: 'tool',
      tool_call_id: 'call_b',
      content: 'No result was recorded.',
    })
    expect(openai.added).toEqual([{ id: openai.ids[1], reason: 'no_result', call_id: 'call_b' }])
    expect(openai.items).toHaveLength(openai.ids.length)
    const { items } = await session.context('anthropic')
    expect(items[2]).toMatchObject({
      role: 'user',
      content: [
        { tool_use_id: 'call_a', content: '1' },
        { tool_use_id: 'call_b', content: 'No result was recorded.', is_error: true },
      ],
    })
    const gemini = await session.context('gemini')
    expect((gemini.items[2] as { parts: object[] }).parts).toMatchObject([
      { functionResponse: { id: 'call_a' } },
      { functionResponse: { id: 'call_b', name: 'look', response: { error: 'No result was recorded.' } } },
    ])
    const responses = await session.context('responses')
    expect(responses.items[4]).toMatchObject({ call_id: 'call_b', output: 'No result was recorded.' })
    const acontext = await session.context('acontext')
    expect(JSON.stringify(acontext.items)).toContain('"no_result":true')
  })

  it('keeps that result while a pin is sent; the one that came later is told after it', async () => {
    const session = await sessionOf('openai', ...log.slice(0, 3))
    const before = await session.context('openai')
    await session.add('openai', result('call_b', '2'))
    const after = await session.context('openai', { pin: before.pin })
    expect(after.items.slice(0, before.items.length)).toEqual(before.items)
    expect(after.items.at(-1)).toEqual(user('Result of the call look (call_b), which came later:\n2'))
    expect(after.added.map(({ reason }) => reason)).toEqual(['late_result', 'no_result'])
    await session.add('openai', { role: 'assistant', content: 'Both are here.' })
    const last = await session.context('openai', { pin: after.pin })
    expect(last.items.slice(0, after.items.length)).toEqual(after.items)
    const anew = await session.context('openai')
    expect(anew.items[3]).toEqual(result('call_b', '2'))
    expect(anew.added).toEqual([])
  })
})

describe('a list that can be sent', () => {
  it('joins the lines of one answer, and leaves the fields of answers and blank texts out', async () => {
    const line = (...content: object[]) => {
      return {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content,
        usage: {},
        stop_reason: null,
      }
    }
    const session = await sessionOf(
      'anthropic',
      user('read both'),
      line({ type: 'thinking', thinking: 'two', signature: 'c2ln' }),
      line({ type: 'text', text: '' }, use('toolu_1')),
      line(use('toolu_2')),
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'A' }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_2', content: 'B' }] },
    )
    const openai = await session.context('openai')
    expect(openai.items.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool'])
    expect(openai.items[1]).toMatchObject({ tool_calls: [{ id: 'toolu_1' }, { id: 'toolu_2' }] })
    expect(openai.omitted).toMatchObject([{ reason: 'not_in_format', what: 'thinking' }])
    const own = await session.context('anthropic')
    expect(own.items[1]).toEqual({
      role: 'assistant',
      content: [{ type: 'thinking', thinking: 'two', signature: 'c2ln' }, use('toolu_1'), use('toolu_2')],
    })
    expect(own.items).toHaveLength(3)
  })

  it('has results directly after their calls, media after them, then what was said meanwhile', async () => {
    const image = { type: 'input_image', detail: 'auto', image_url: 'data:image/png;base64,iVBORw0KGgo=' }
    const session = await sessionOf(
      'responses',
      user('look'),
      { type: 'function_call', call_id: 'c1', name: 'shot', arguments: '{}' },
      { type: 'function_call', call_id: 'c2', name: 'shot', arguments: '{}' },
      user('hurry'),
      { type: 'function_call_output', call_id: 'c2', output: 'two' },
      { type: 'function_call_output', call_id: 'c1', output: [{ type: 'input_text', text: 'one' }, image] },
    )
    const { items } = await session.context('openai')
    expect(items.slice(2)).toMatchObject([
      { role: 'tool', tool_call_id: 'c1', content: 'one' },
      { role: 'tool', tool_call_id: 'c2', content: 'two' },
      { role: 'user', content: [{ type: 'image_url' }] },
      user('hurry'),
    ])
    const gemini = await session.context('gemini')
    expect(gemini.items[2]).toMatchObject({
      parts: [
        { functionResponse: { id: 'c1', parts: [{ inlineData: {} }] } },
        { functionResponse: { id: 'c2' } },
      ],
    })
  })

  it('has ids and names that the provider takes, the same in call and result', async () => {
    const long = `toolu_vrtx_${'A'.repeat(60)}`
    const session = await sessionOf(
      'openai',
      user('hi'),
      calls(call('functions.f:0', 'api:f'), call(long), call(''), call('')),
      result('functions.f:0', '0'),
      result(long, '1'),
      result('', '2'),
      result('', '3'),
    )
    const { items } = await session.context('anthropic')
    const [called, answered] = [items[1]!.content, items[2]!.content] as Array<Array<Record<string, string>>>
    const ids = called!.map(({ id }) => id!)
    for (const id of ids) expect(id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
    expect(new Set(ids).size).toBe(4)
    expect(called![0]!.name).toMatch(/^api_f_[a-z0-9]{11}$/)
    expect(answered!.map(({ tool_use_id }) => tool_use_id)).toEqual(ids)
    expect(answered!.map(({ content }) => content)).toEqual(['0', '1', '2', '3'])
    const own = await session.context('openai')
    const own_calls = own.items[1]!.tool_calls as Array<{ id: string }>
    expect(own_calls[0]!.id).toBe('functions.f:0')
    for (const { id } of own_calls) expect(id.length).toBeLessThanOrEqual(40)
  })

  it('keeps tools apart whose names become alike, and names them the same in every context', async () => {
    const long = 'n'.repeat(130)
    const names = ['a.b', 'a:b', 'a_b', 'a b', 'ä', 'ö', `${long}1`, `${long}2`, '9']
    const session = await sessionOf(
      'gemini',
      { role: 'user', parts: [{ text: 'x' }] },
      { role: 'model', parts: names.map((name, n) => ({ functionCall: { id: `c${n}`, name, args: {} } })) },
      {
        role: 'user',
        parts: names.map((name, n) => ({ functionResponse: { id: `c${n}`, name, response: {} } })),
      },
    )
    for (const format of ['openai', 'anthropic', 'responses', 'gemini'] as const) {
      const { items, names: own } = await session.context(format)
      const said = JSON.stringify(items)
      const sent = [...new Set([...said.matchAll(/"name":"([^"]*)"/g)].map(([, name]) => name!))]
      expect(sent.map((name) => own[name] ?? name)).toEqual(names)
      expect(sent[2]).toBe('a_b')
      const fits = format === 'gemini' ? /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/ : /^[a-zA-Z0-9_-]{1,64}$/
      for (const name of sent) if (format !== 'anthropic') expect(name).toMatch(fits)
      // Without the tools that were called before it, and in another order.
      const later = await sessionOf(
        'openai',
        user('x'),
        calls(call('1', 'a:b'), call('2', `${long}2`), call('3', 'a.b')),
      )
      const again = JSON.stringify((await later.context(format)).items)
      for (const at of [1, 7, 0]) expect(again).toContain(`"${sent[at]}"`)
    }
  })

  it('has the newest four cache marks', async () => {
    const cache_control = { type: 'ephemeral' }
    const questions = [0, 1, 2, 3, 4, 5].flatMap((n) => [
      { role: 'user', content: [{ type: 'text', text: `question ${n}`, cache_control }] },
      { role: 'assistant', content: 'ok' },
    ])
    const session = await sessionOf('anthropic', ...questions)
    const { items, omitted } = await session.context('anthropic')
    const marked = items.map((item) => JSON.stringify(item).includes('cache_control'))
    expect(marked.flatMap((isMarked, at) => (isMarked ? [at] : []))).toEqual([4, 6, 8, 10])
    expect(omitted).toHaveLength(2)
  })

  it('has the last of two results, and none without its call', async () => {
    const answer = (status: string) => ({
      role: 'user',
      parts: [{ functionResponse: { id: 'adk-1', name: 'ask', response: { status } } }],
    })
    const session = await sessionOf(
      'gemini',
      { role: 'user', parts: [{ text: 'approve' }] },
      { role: 'model', parts: [{ functionCall: { id: 'adk-1', name: 'ask', args: {} } }] },
      answer('pending'),
      { role: 'model', parts: [{ text: 'I asked.' }] },
      answer('approved'),
      { role: 'user', parts: [{ functionResponse: { id: 'gone', name: 'ask', response: {} } }] },
    )
    const { items, omitted } = await session.context('openai')
    expect(items.slice(2)).toEqual([
      result('adk-1', '{"status":"approved"}'),
      { role: 'assistant', content: 'I asked.' },
    ])
    expect(omitted.map(({ reason, call_id }) => [reason, call_id])).toEqual([
      ['duplicate_result', 'adk-1'],
      ['no_call', 'gone'],
    ])
  })

  it('has no tokens where it has no items', async () => {
    const session = await sessionOf('openai', result('gone', 'Nobody asked for it.'))
    expect(await session.context('anthropic')).toMatchObject({ items: [], tokens: 0 })
  })

  it('counts no tokens of what is left out, be it a message or a part of one', async () => {
    const words = (count: number) => 'word '.repeat(count)
    const thinking = { type: 'thinking', thinking: words(2_000), signature: 'c2ln' }
    const session = await sessionOf(
      'anthropic',
      user('x'),
      { role: 'assistant', content: [thinking, { type: 'text', text: words(100) }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'gone', content: words(3_000) }] },
      user('y'),
    )
    expect((await session.context('anthropic')).tokens).toBeGreaterThan(2_100)
    for (const [format, query] of [
      ['openai', {}],
      ['responses', {}],
      ['anthropic', { reasoning: 'drop' }],
    ] as const) {
      const { tokens } = await session.context(format, query)
      expect(tokens).toBeGreaterThan(80)
      expect(tokens).toBeLessThan(130)
    }
    const page = await session.get('messages', { format: 'openai', fit: 'true' })
    expect(page).toMatchObject({ this_time_tokens: (await session.context('openai')).tokens, names: {} })
    const reply = { role: 'assistant', content: words(100), reasoning_content: words(2_000) }
    const thought = await sessionOf('openai', user('x'), reply)
    const { tokens, omitted } = await thought.context('gemini')
    expect(tokens).toBeLessThan(130)
    expect(omitted).toMatchObject([{ reason: 'not_in_format', what: 'reasoning_content' }])
    expect((await thought.context('openai', { reasoning: 'drop' })).tokens).toBeLessThan(130)
    expect((await thought.context('openai')).tokens).toBeGreaterThan(2_000)
  })

  it('has thoughts as they are wanted', async () => {
    const reply = (content: string) => ({ role: 'assistant', content, reasoning_content: `about ${content}` })
    const session = await sessionOf('openai', user('a'), reply('A'), user('b'), reply('B'))
    const thought = async (reasoning: string) =>
      (await session.context('openai', { reasoning })).items.map((item) => 'reasoning_content' in item)
    expect(await thought('keep')).toEqual([false, true, false, true])
    expect(await thought('drop')).toEqual([false, false, false, false])
    expect(await thought('last_turn')).toEqual([false, false, false, true])
  })

  it('names no item of OpenAI’s whose reasoning is left out', async () => {
    const output = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: null })
    const item = (id: string, text: string) => ({
      type: 'message',
      id,
      role: 'assistant',
      status: 'completed',
      content: [output(text)],
    })
    const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'c2ln', status: null }
    const log = [
      user('go'),
      item('msg_0', 'Yes.'),
      reasoning,
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } },
      item('msg_1', 'Found.'),
      { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: 'x' },
      item('msg_2', 'Done.'),
    ]
    const session = await sessionOf('responses', ...log)
    const dropped = await session.context('responses', { reasoning: 'drop' })
    expect(dropped.items.map(({ type, id }) => [type, id])).toEqual([
      [undefined, undefined],
      ['message', 'msg_0'],
      ['web_search_call', undefined],
      ['message', undefined],
      ['function_call', undefined],
      ['function_call_output', undefined],
      ['message', 'msg_2'],
    ])
    expect(dropped.items[3]).toEqual({ type: 'message', role: 'assistant', content: 'Found.' })
    const kept = await session.context('responses')
    expect(kept.items[2]).toEqual({ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'c2ln' })
    expect(kept.items.map(({ id }) => id).slice(2, 6)).toEqual(['rs_1', 'ws_1', 'msg_1', 'fc_1'])
  })

  it('is what messages are with fit=true, their ids and metas in step, edited or not', async () => {
    const session = await sessionOf(
      'openai',
      user('go'),
      calls(call('a'), call('b')),
      result('b', 'word '.repeat(99)),
    )
    const plain = await session.get('messages', { format: 'openai' })
    expect(plain.items).toHaveLength(3)
    expect(plain).not.toHaveProperty('omitted')
    const edit_strategies = JSON.stringify([
      { type: 'remove_tool_result', params: { keep_recent_n_tool_results: 0 } },
    ])
    const page = await session.get('messages', { fit: 'true', edit_strategies })
    expect(page.items.slice(2)).toEqual([result('a', 'No result was recorded.'), result('b', 'Done')])
    expect(page.ids).toEqual([plain.ids[0], plain.ids[1], plain.ids[1], plain.ids[2]])
    expect(page.metas).toHaveLength(4)
    expect(page.added).toMatchObject([{ reason: 'no_result', call_id: 'a' }])
    const read = await annals.sessions.messages(session.id, { fit: true }).page()
    expect(read.items).toEqual((await session.context('openai')).items)
  })
})

describe('a message read in another format', () => {
  it('says that a result is an error, has Gemini’s signatures, and no argument that nobody gave', async () => {
    const failed = { type: 'tool_result', tool_use_id: 't1', content: '42', is_error: true }
    const session = await sessionOf(
      'anthropic',
      user('x'),
      { role: 'assistant', content: [{ ...use('t1'), input: '{"a":1}' }] },
      { role: 'user', content: [failed] },
    )
    const openai = await session.get('messages', { format: 'openai' })
    expect(openai.items.slice(1)).toMatchObject([
      { tool_calls: [{ function: { arguments: '{"a":1}' } }] },
      { content: 'Error: 42' },
    ])
    const responses = await session.get('messages', { format: 'responses' })
    expect(responses.items[2]).toMatchObject({ output: '42', status: 'incomplete' })
    const extra_content = { google: { thought_signature: 'R1NJRw==' } }
    const signed = await sessionOf('openai', user('hi'), calls({ ...call('c1', 'f', ''), extra_content }))
    const gemini = await signed.get('messages', { format: 'gemini' })
    expect(gemini.items[1]).toMatchObject({
      parts: [{ functionCall: { args: {} }, thoughtSignature: 'R1NJRw==' }],
    })
  })
})

describe('a compaction of a provider’s own', () => {
  const text = (said: string) => ({ type: 'text', text: said })
  const summary = {
    type: 'compaction',
    content: 'Ada wants 12A.',
    encrypted_content: 'b3BhcXVl',
    signature: 'c2ln',
  }
  const log = [
    { role: 'user', content: 'Which seats are free? '.repeat(50) },
    { role: 'assistant', content: [text('12A.')] },
    { role: 'user', content: 'Book it.' },
    { role: 'assistant', content: [summary, text('Booked.')] },
  ]

  it('is what a context in its format begins with, also with a pin, and no other format says', async () => {
    const session = await sessionOf('anthropic', ...log.slice(0, 3))
    const before = await session.context('anthropic')
    expect(before.items).toHaveLength(3)
    await session.add('anthropic', log[3]!, { role: 'user', content: 'Thanks.' })
    for (const query of [{}, { pin: before.pin }]) {
      const { items, omitted, tokens } = await session.context('anthropic', query)
      expect(items).toEqual([log[3], { role: 'user', content: 'Thanks.' }])
      expect(omitted.map(({ reason }) => reason)).toEqual(['compacted', 'compacted', 'compacted'])
      expect(tokens).toBeLessThan(before.tokens / 2)
    }
    const openai = await session.context('openai')
    expect(openai.items).toHaveLength(5)
    expect(openai.omitted).toMatchObject([{ reason: 'not_in_format', what: 'compaction' }])
    const { items } = await session.get('messages', { format: 'anthropic' })
    expect(items.slice(0, 4)).toEqual(log)
  })
})
