import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { Annals } from '@annals/client'
import { AnnalsSession } from '@annals/openai-agents'
import type { AgentInputItem } from '@openai/agents-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { useSharedService } from '../../../../tests/harness/service.ts'

const MANY = process.env.TEST_THOROUGH ? 10_000 : 1_000
const service = useSharedService()
let annals: Annals
let other: Annals
/** Requests that the first client sent. */
const sent: string[] = []
/** Fails the next answers of the first client, after the service has done what was asked. */
let lost = 0

beforeAll(async () => {
  const { token } = await service.newProject()
  const counted: typeof fetch = async (input, init) => {
    sent.push(`${init?.method} ${new URL(String(input)).pathname.split('/').at(-1)}`)
    const response = await fetch(input, init)
    if (lost > 0) {
      lost -= 1
      throw new TypeError('the connection broke')
    }
    return response
  }
  annals = new Annals({ url: service.node.url, token, fetch: counted })
  other = new Annals({ url: service.secondNode.url, token })
})

const open = (sessionId: string = randomUUID(), client = annals) =>
  new AnnalsSession({ annals: client, sessionId })
const said = (content: string): AgentInputItem => ({ type: 'message', role: 'user', content })
const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => said(`${from + at}`))
const call = (callId: string, args: string): AgentInputItem & { type: 'function_call' } => ({
  type: 'function_call',
  callId,
  name: 'book',
  arguments: args,
})

describe('a session', () => {
  it('is empty before anything was added, and is made of its id: the same one in another process is the same', async () => {
    const session = open('customer 7')
    expect(await session.getItems()).toEqual([])
    expect(await session.popItem()).toBeUndefined()
    await session.addItems(numbers(1, 3))
    expect(await open('customer 7', other).getItems()).toEqual(numbers(1, 3))
    expect(await session.getItems(2)).toEqual(numbers(2, 3))
    expect(await session.getItems(0)).toEqual([])
    expect((await annals.sessions.get(session.id)).configs).toEqual({ openai_agents_session: 'customer 7' })
    await session.clearSession()
    expect(await session.getItems()).toEqual([])
    await session.addItems([said('again')])
    expect(await session.getItems()).toEqual([said('again')])
  })

  it('keeps items that are larger than a request: images, and texts of a tool', async () => {
    const session = open()
    const image = `data:image/png;base64,${Buffer.alloc(1_500_000, 7).toString('base64')}`
    const items: AgentInputItem[] = [
      { type: 'message', role: 'user', content: [{ type: 'input_image', image }] },
      call('call_1', '{}'),
      {
        type: 'function_call_result',
        callId: 'call_1',
        name: 'book',
        status: 'completed',
        output: { type: 'text', text: 'é'.repeat(1_200_000) },
      },
    ]
    await session.addItems(items)
    expect(isDeepStrictEqual(await session.getItems(), items)).toBe(true)
    expect(isDeepStrictEqual(await session.getItems(1), items.slice(-1))).toBe(true)
    const { items: read } = await annals.sessions.context(session.id, {
      format: 'openai',
      max_tokens: 2_000_000,
    })
    expect(read.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
    expect(JSON.stringify(read[0]).includes(image)).toBe(true)
    expect(read[2]!.content === 'é'.repeat(1_200_000)).toBe(true)
    expect(isDeepStrictEqual(await session.popItem(), items[2])).toBe(true)
    await session.replaceHistoryWithCompaction([items[2]!, said('after')])
    expect(isDeepStrictEqual(await session.getItems(), [items[2], said('after')])).toBe(true)
  })

  it('gives twenty items to twenty that pop at once, at two nodes', async () => {
    const session = open()
    const elsewhere = open(await session.getSessionId(), other)
    await session.addItems(numbers(1, 20))
    const popped = await Promise.all(
      Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? session : elsewhere).popItem()),
    )
    const contents = popped.map((item) => Number((item as { content: string }).content))
    expect(contents.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, at) => at + 1))
    expect(await session.popItem()).toBeUndefined()
  })

  it(`reads the newest twenty of ${MANY} items in one request, also after half of them were taken`, async () => {
    const session = open()
    for (let from = 1; from <= MANY; from += 500) await session.addItems(numbers(from, from + 499))
    const readAtOnce = async () => {
      sent.length = 0
      const items = await session.getItems(20)
      expect(sent).toEqual(['GET messages'])
      return items
    }
    expect(await readAtOnce()).toEqual(numbers(MANY - 19, MANY))
    for (let taken = 0; taken < MANY / 2; taken += 500)
      await other.sessions.retract(session.id, { last: 500, kind: 'message' })
    expect(await readAtOnce()).toEqual(numbers(MANY / 2 - 19, MANY / 2))
  })

  it('replaces a stored call by one with other arguments, and drops further calls of that id', async () => {
    const session = open()
    const rest = [
      said('a'),
      call('1', '{}'),
      said('b'),
      call('2', '{}'),
      call('1', '{"late":true}'),
      said('c'),
    ]
    await session.addItems(rest)
    const replacement = call('1', '{"seat":"14C"}')
    await session.applyHistoryMutations({
      mutations: [{ type: 'replace_function_call', callId: '1', replacement }],
    })
    expect(await session.getItems()).toEqual([said('a'), replacement, said('b'), call('2', '{}'), said('c')])
  })

  it('begins with its newest compaction, and keeps what that sums up for contexts in other formats', async () => {
    const session = open()
    const answer: AgentInputItem = {
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'ok' }],
    }
    await session.addItems([...numbers(1, 1_199), answer, said('1200')])
    const compaction: AgentInputItem = { type: 'compaction', encrypted_content: 'abc' }
    const newer: AgentInputItem = { type: 'compaction', encrypted_content: 'def' }
    await session.replaceHistoryWithCompaction([compaction, said('1200'), said('new')])
    expect(await session.getItems()).toEqual([compaction, said('1200'), said('new')])
    expect(await session.getItems(2)).toEqual([said('1200'), said('new')])
    const context = async (format: 'openai' | 'responses') => {
      const { items } = await annals.sessions.context(session.id, { format, max_tokens: 1_000_000 })
      return items.map(({ content, type }) => content ?? type)
    }
    const all = Array.from({ length: 1_199 }, (_, n) => String(n + 1))
    expect(await context('openai')).toEqual([...all, 'ok', '1200', 'new'])
    expect(await context('responses')).toEqual(['compaction', '1200', 'new'])
    await session.addItems([said('on')])
    await session.replaceHistoryWithCompaction([newer])
    expect(await session.getItems()).toEqual([newer])
    const transaction = { type: 'replace_suffix' as const, expectedSuffix: [newer], replacement: [newer] }
    await session.applyHistoryTransaction({ operationId: 'a', transaction })
    expect(await session.getItems()).toEqual([newer])
    expect(await session.popItem()).toEqual(newer)
    expect(await session.getItems()).toEqual([compaction, said('1200'), said('new'), said('on')])
    await session.clearSession()
    expect(await session.getItems()).toEqual([])
  })
})

describe('a transaction', () => {
  const append = (...items: AgentInputItem[]) => ({ type: 'append_items' as const, items })
  const replace = (expectedSuffix: AgentInputItem[], replacement: AgentInputItem[]) => ({
    type: 'replace_suffix' as const,
    expectedSuffix,
    replacement,
  })

  it('is applied once for one operation, also if its answer is lost and others repeat it at once', async () => {
    const session = open()
    await session.addItems(numbers(1, 2))
    const elsewhere = open(await session.getSessionId(), other)
    const operations = [
      { operationId: 'a', transaction: append(...numbers(3, 4)) },
      { operationId: 'b', transaction: replace(numbers(4, 4), numbers(5, 6)) },
    ]
    for (const operation of operations) {
      const appended = session.applyHistoryTransaction(operation)
      lost = 3
      await Promise.all([appended, elsewhere.applyHistoryTransaction(operation)])
      lost = 0
      await session.applyHistoryTransaction(operation)
    }
    expect(await session.getItems()).toEqual([...numbers(1, 3), ...numbers(5, 6)])
  })

  it('with another content, or whose suffix does not match, changes nothing', async () => {
    const session = open()
    await session.addItems(numbers(1, 3))
    await session.applyHistoryTransaction({ operationId: 'a', transaction: append(said('4')) })
    const before = await session.getItems()
    await expect(
      session.applyHistoryTransaction({ operationId: 'a', transaction: append(said('5')) }),
    ).rejects.toThrow('different transaction')
    for (const suffix of [[said('3')], [said('2'), said('4')], numbers(0, 4)])
      await expect(
        session.applyHistoryTransaction({ operationId: randomUUID(), transaction: replace(suffix, []) }),
      ).rejects.toThrow('no longer matches')
    expect(await session.getItems()).toEqual(before)
  })

  it('that replaces the same suffix as nine others is applied by one of them', async () => {
    const session = open()
    await session.addItems(numbers(1, 2))
    const outcomes = await Promise.allSettled(
      Array.from({ length: 10 }, (_, at) =>
        session.applyHistoryTransaction({
          operationId: `${at}`,
          transaction: replace([said('2')], [said(`new ${at}`)]),
        }),
      ),
    )
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await session.getItems()).toEqual([
      said('1'),
      said(`new ${outcomes.findIndex(({ status }) => status === 'fulfilled')}`),
    ])
  })
})
