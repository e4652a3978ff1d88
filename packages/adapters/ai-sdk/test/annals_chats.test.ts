import { randomUUID } from 'node:crypto'
import { AnnalsChats, AnnalsStreams } from '@annals/ai-sdk'
import { Annals } from '@annals/client'
import type { UIMessage } from 'ai'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { useSharedService } from '../../../../tests/harness/service.ts'
import { streamOf } from './streams.ts'

const service = useSharedService()
let annals: Annals
let chats: AnnalsChats
let elsewhere: AnnalsChats
/** Requests that changed something. */
const writes: string[] = []

beforeAll(async () => {
  const { token } = await service.newProject()
  const counted: typeof fetch = (input, init) => {
    if (init?.method !== 'GET')
      writes.push(`${init?.method} ${new URL(String(input)).pathname.split('/').at(-1)}`)
    return fetch(input, init)
  }
  annals = new Annals({ url: service.node.url, token, fetch: counted })
  chats = new AnnalsChats({ annals })
  elsewhere = new AnnalsChats({ annals: new Annals({ url: service.secondNode.url, token }) })
})

const said = (id: string, text = id, role: UIMessage['role'] = 'user'): UIMessage => ({
  id,
  role,
  parts: [{ type: 'text', text }],
})
const sessionOf = async (chatId: string) =>
  (await annals.sessions.list({ filter_by_configs: { ai_sdk_chat: chatId } }).page()).items[0]!

/** A message with a part of each kind that the SDK has. */
const ALL_KINDS: UIMessage = {
  id: 'all',
  role: 'assistant',
  metadata: { model: 'mock', nested: { annals_blob: 'not a reference' } },
  parts: [
    { type: 'step-start' },
    { type: 'reasoning', text: 'I think', state: 'done', providerMetadata: { any: { signature: 'x' } } },
    { type: 'text', text: 'Hello \u0000 \ud800', state: 'done' },
    {
      type: 'tool-weather',
      toolCallId: 'c1',
      state: 'output-available',
      input: { city: 'Lyon' },
      output: { degrees: 21 },
    },
    {
      type: 'tool-weather',
      toolCallId: 'c2',
      state: 'output-error',
      input: undefined,
      errorText: 'no such city',
    },
    { type: 'dynamic-tool', toolName: 'find', toolCallId: 'c3', state: 'input-available', input: 'text' },
    {
      type: 'tool-ask',
      toolCallId: 'c4',
      state: 'output-available',
      input: {},
      output: 'yes',
      providerExecuted: true,
    },
    { type: 'tool-ask', toolCallId: 'c5', state: 'approval-requested', input: {}, approval: { id: 'a1' } },
    { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,iVBORw0KGgo=', filename: 'a.png' },
    { type: 'file', mediaType: 'application/pdf', url: 'https://example.com/a.pdf' },
    { type: 'source-url', sourceId: 's1', url: 'https://example.com', title: 'Example' },
    { type: 'data-plan', id: 'd1', data: { steps: [1, null] } },
  ],
}

describe('a chat', () => {
  it('is empty before anything was saved, and holds what was saved, for every process', async () => {
    const chatId = await chats.createChat({ user: 'omar', configs: { tier: 'gold' } })
    expect(await chats.loadChat(chatId)).toEqual([])
    expect(await chats.loadChat(randomUUID())).toEqual([])
    await chats.saveChat({ chatId, messages: [said('1'), said('2', 'two', 'assistant')] })
    expect(await elsewhere.loadChat(chatId)).toEqual([said('1'), said('2', 'two', 'assistant')])
    expect((await sessionOf(chatId)).configs).toEqual({ tier: 'gold', ai_sdk_chat: chatId })
    expect((await annals.sessions.list({ user: 'omar' }).page()).items).toHaveLength(1)
    expect(await chats.createChat({ chatId })).toBe(chatId)
  })

  it('that is saved unchanged writes nothing, and one with a new message only that', async () => {
    const chatId = randomUUID()
    const messages = [ALL_KINDS, said('1')]
    await chats.saveChat({ chatId, messages })
    writes.length = 0
    expect(await chats.saveChat({ chatId, messages: structuredClone(messages) })).toBe(true)
    expect(writes).toEqual([])
    await chats.saveChat({ chatId, messages: [...messages, said('2')] })
    expect(writes).toEqual(['POST entries'])
    const { id } = await sessionOf(chatId)
    expect((await annals.sessions.timeline(id).page()).items).toHaveLength(3)
  })

  it('that is edited or regenerated retracts what is no longer said, in the commit that replaces it', async () => {
    const chatId = randomUUID()
    const [asked, answered, thanked] = [said('1'), said('2', 'two', 'assistant'), said('3')]
    await chats.saveChat({ chatId, messages: [asked, answered, thanked] })
    writes.length = 0
    for (const messages of [
      [asked, said('2b', 'another', 'assistant')],
      [said('1', 'edited')],
      [said('1', 'edited'), answered],
      [],
      [thanked],
    ]) {
      await chats.saveChat({ chatId, messages })
      expect(await elsewhere.loadChat(chatId)).toEqual(messages)
    }
    expect(writes).toEqual([
      'POST retractions',
      'POST retractions',
      'POST entries',
      'POST retractions',
      'POST entries',
    ])
    const { id } = await sessionOf(chatId)
    const logged = (await annals.sessions.timeline(id, { kind: 'message' }).page()).items
    expect(logged.map(({ retracted_by }) => retracted_by !== undefined)).toEqual([
      true,
      true,
      true,
      true,
      true,
      true,
      false,
    ])
  })

  it('keeps every kind of part, and reads as messages, calls and results', async () => {
    const chatId = randomUUID()
    await chats.saveChat({ chatId, messages: [said('s', 'Be brief.', 'system'), ALL_KINDS] })
    const [, loaded] = await chats.loadChat(chatId)
    expect(loaded).toEqual(JSON.parse(JSON.stringify(ALL_KINDS)))
    const { id } = await sessionOf(chatId)
    const { items } = await annals.sessions.messages(id, { format: 'openai' }).page()
    expect(items[0]).toEqual({ role: 'system', content: 'Be brief.' })
    expect(items).toContainEqual({ role: 'tool', tool_call_id: 'c1', content: '{"degrees":21}' })
    expect(items).toContainEqual({ role: 'tool', tool_call_id: 'c2', content: 'Error: no such city' })
    const calls = items.flatMap((item) => (item.tool_calls ?? []) as { function: { name: string } }[])
    expect(calls.map((call) => call.function.name)).toEqual(['weather', 'weather', 'find', 'ask', 'ask'])
  })

  it('keeps messages that are larger than a request, and more of them than a request carries', async () => {
    const chatId = randomUUID()
    const url = `data:image/png;base64,${Buffer.alloc(1_500_000, 7).toString('base64')}`
    const image: UIMessage = { ...said('image'), parts: [{ type: 'file', mediaType: 'image/png', url }] }
    const many = Array.from({ length: 1_100 }, (_, at) => said(`${at}`))
    const messages = [image, ...many]
    await chats.saveChat({ chatId, messages })
    expect(await chats.loadChat(chatId)).toEqual(messages)
    const { items } = await annals.sessions
      .messages((await sessionOf(chatId)).id, { format: 'openai', limit: 1 })
      .page()
    expect(JSON.stringify(items).includes(url)).toBe(true)
    const edited = [said('new'), ...many.slice(0, 300)]
    await chats.saveChat({ chatId, messages: edited })
    expect(await chats.loadChat(chatId)).toEqual(edited)
  })

  it('has what Anthropic and Gemini signed in its contexts', async () => {
    const chatId = randomUUID()
    const step = (provider: string, metadata: object, name: string): UIMessage['parts'] => [
      { type: 'step-start' },
      { type: 'reasoning', text: 'Hm', providerMetadata: { [provider]: { ...metadata } } },
      {
        type: `tool-${name}`,
        toolCallId: name,
        state: 'output-available',
        input: {},
        output: 'done',
        callProviderMetadata: { [provider]: { ...metadata } },
      },
    ]
    const parts = [
      ...step('anthropic', { signature: 'c2ln' }, 'look'),
      ...step('google', { thoughtSignature: 'R1M=' }, 'find'),
    ]
    const messages = [said('1'), { id: '2', role: 'assistant' as const, parts }]
    await chats.saveChat({ chatId, messages })
    expect(await chats.loadChat(chatId)).toEqual(messages)
    const { id } = await sessionOf(chatId)
    const claude = await annals.sessions.context(id, { format: 'anthropic' })
    expect(claude.items[1]).toMatchObject({
      content: [{ type: 'thinking', thinking: 'Hm', signature: 'c2ln' }, { type: 'tool_use' }],
    })
    const gemini = JSON.stringify((await annals.sessions.context(id, { format: 'gemini' })).items)
    expect(gemini).toContain('"thoughtSignature":"R1M="')
    expect(gemini).not.toContain('c2ln')
  })

  it('comes back as it was, and goes to a model, with thoughts that were redacted and calls that were denied', async () => {
    const chatId = randomUUID()
    const denied = (toolCallId: string, reason?: string) => ({
      type: 'tool-look' as const,
      toolCallId,
      state: 'output-denied' as const,
      input: {},
      approval: { id: toolCallId, approved: false as const, ...(reason !== undefined && { reason }) },
      callProviderMetadata: { vertex: { thoughtSignature: 'R1M=' } },
    })
    const redacted = { anthropic: { redactedData: 'ZGF0YQ==' } }
    const parts = [
      { type: 'step-start' as const },
      { type: 'reasoning' as const, text: '', providerMetadata: redacted },
      denied('a', 'Not today.'),
      denied('b'),
    ]
    const messages = [said('1'), { id: '2', role: 'assistant' as const, parts }]
    await chats.saveChat({ chatId, messages })
    expect(await chats.loadChat(chatId)).toEqual(messages)
    const { id } = await sessionOf(chatId)
    const { items, added } = await annals.sessions.context(id, { format: 'anthropic' })
    expect(added).toEqual([])
    expect(items.slice(1)).toMatchObject([
      { content: [{ type: 'redacted_thinking', data: 'ZGF0YQ==' }, { id: 'a' }] },
      { content: [{ tool_use_id: 'a', content: 'Not today.' }] },
      { content: [{ id: 'b' }] },
      { content: [{ tool_use_id: 'b', content: 'The call was not allowed.' }] },
    ])
    const gemini = JSON.stringify((await annals.sessions.context(id, { format: 'gemini' })).items)
    expect(gemini).toContain('"thoughtSignature":"R1M="')
  })

  it('comes to one of the states that were saved at once, never to a mixture', async () => {
    const chatId = randomUUID()
    await chats.saveChat({ chatId, messages: [said('0')] })
    const states = Array.from({ length: 8 }, (_, at) => [said('0'), said(`a${at}`), said(`b${at}`)])
    await Promise.all(
      states.map((messages, at) => (at % 2 === 0 ? chats : elsewhere).saveChat({ chatId, messages })),
    )
    expect(states).toContainEqual(await chats.loadChat(chatId))
  })

  it('does not lose what was said since a stream began to the late save of that stream', async () => {
    const chatId = randomUUID()
    const streams = new AnnalsStreams({ annals, chatId })
    const [asked, answer, next] = [said('1'), said('2', 'two', 'assistant'), said('3')]
    const begin = async (streamId: string) => {
      const stream = await streams.createNewResumableStream(streamId, () => streamOf(['data: 1\n\n']))
      await stream.pipeTo(new WritableStream())
    }
    await chats.saveChat({ chatId, messages: [asked] })
    await begin('first')
    await elsewhere.saveChat({ chatId, messages: [asked, next] })
    expect(await chats.saveChat({ chatId, messages: [asked, answer], streamId: 'first' })).toBe(false)
    expect(await chats.loadChat(chatId)).toEqual([asked, next])
    await begin('second')
    expect(await chats.saveChat({ chatId, messages: [asked, answer], streamId: 'second' })).toBe(true)
    expect(await chats.loadChat(chatId)).toEqual([asked, answer])
  })

  it('comes back whatever is in its messages', async () => {
    const text = fc.string({ unit: 'binary' })
    const value = fc.jsonValue({ maxDepth: 3 })
    const type = fc.constantFrom(
      'text',
      'reasoning',
      'file',
      'tool-a',
      'dynamic-tool',
      'data-x',
      'step-start',
      'tool-result',
      'data',
    )
    const members = fc.dictionary(
      fc.constantFrom(
        'text',
        'url',
        'mediaType',
        'filename',
        'toolCallId',
        'toolName',
        'input',
        'output',
        'errorText',
        'ui',
        'meta',
        'state',
      ),
      fc.oneof(text, value),
    )
    const part = fc.tuple(members, type).map(([more, kind]) => ({ ...more, type: kind }))
    const role = fc.constantFrom('user', 'assistant', 'system')
    const message = fc.record({ id: text, role, metadata: value, parts: fc.array(part, { maxLength: 4 }) })
    const plain = (given: unknown) => JSON.parse(JSON.stringify(given))
    await fc.assert(
      fc.asyncProperty(fc.array(message, { maxLength: 4 }), async (given) => {
        const chatId = randomUUID()
        const messages = given as unknown as UIMessage[]
        await chats.saveChat({ chatId, messages })
        expect(await chats.loadChat(chatId)).toEqual(plain(messages))
        writes.length = 0
        await chats.saveChat({ chatId, messages })
        expect(writes).toEqual([])
      }),
      { numRuns: 25 },
    )
  })
})
