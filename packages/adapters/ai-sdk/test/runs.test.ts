import { randomUUID } from 'node:crypto'
import { AnnalsChats, AnnalsStreams } from '@annals/ai-sdk'
import { Annals } from '@annals/client'
import type { UIMessage } from 'ai'
import { beforeAll, expect, it, vi } from 'vitest'
import { useSharedService } from '../../../../tests/harness/service.ts'
import { fedSource } from './streams.ts'

const service = useSharedService()
let annals: Annals
let chats: AnnalsChats

beforeAll(async () => {
  annals = new Annals({ url: service.node.url, token: (await service.newProject()).token })
  chats = new AnnalsChats({ annals })
})

const part = (type: string, toolCallId: string, input: object, approval: object) =>
  ({
    type,
    toolCallId,
    state: 'approval-requested',
    input,
    approval,
  }) as unknown as UIMessage['parts'][number]
const chat = (...parts: UIMessage['parts']): UIMessage[] => [
  { id: 'q', role: 'user', parts: [{ type: 'text', text: 'Pay.' }] },
  { id: 'a', role: 'assistant', parts },
]

it('asks once for each call of a chat that waits, and goes on elsewhere with what was decided', async () => {
  const chatId = await chats.createChat()
  const waits = [
    part('tool-pay', 'c1', { eur: 5 }, { id: '1', requestReason: 'Above 3 EUR.' }),
    {
      ...part('dynamic-tool', 'c2', { eur: 7 }, { id: '2' }),
      toolName: 'refund',
    } as UIMessage['parts'][number],
    part('tool-pay', 'c3', { eur: 1 }, { id: '3', isAutomatic: true }),
  ]
  await chats.saveChat({ chatId, messages: chat(...waits) })
  const asked = await chats.askForApprovals(chatId)
  expect(asked.map(({ call, text }) => [call, text])).toEqual([
    [{ name: 'pay', arguments: { eur: 5 } }, 'Call c1: Above 3 EUR.'],
    [{ name: 'refund', arguments: { eur: 7 } }, 'Call c2'],
  ])
  const abort = new AbortController()
  const killed = chats.resumeChat(chatId, { signal: abort.signal })
  abort.abort(new Error('killed'))
  await expect(killed).rejects.toThrow('killed')
  const resumed = new AnnalsChats({ annals }).resumeChat(chatId)
  for (const [at, decision] of (['approve', 'deny'] as const).entries())
    await annals.runs.resolve(asked[at]!.id, { decision, by: 'ada', call_sha256: asked[at]!.call_sha256! })
  const messages = await resumed
  expect(messages!.at(-1)!.parts).toMatchObject([
    { state: 'approval-responded', approval: { id: '1', approved: true } },
    {
      state: 'approval-responded',
      approval: { id: '2', approved: false, reason: 'This call was denied by ada.' },
    },
    { state: 'approval-requested' },
  ])
  // A process that was killed between the answer and the call finds the same.
  expect(await chats.loadChat(chatId)).toEqual(messages)
  expect(await chats.resumeChat(chatId)).toEqual(messages)
  await chats.saveChat({ chatId, messages: chat({ type: 'text', text: 'Paid.' }) })
  expect(await chats.resumeChat(chatId)).toBeUndefined()
})

it('stops the stream that runs at an interrupt of its inbox, silent or not, and no other one', async () => {
  const chatId = await chats.createChat()
  const produced: Promise<unknown>[] = []
  const waitUntil = (stored: Promise<unknown>) => produced.push(stored)
  const streams = new AnnalsStreams({ annals, chatId, waitUntil })
  const begin = async (id: string) => {
    const [abort, source] = [new AbortController(), fedSource()]
    await streams.createNewResumableStream(id, source.make, { abort })
    return { abort, source }
  }
  const first = await begin('first')
  first.source.end()
  await Promise.all(produced)
  const session_id = chats.sessionId(chatId)
  const stop = (data: object) =>
    annals.runs.send(session_id, { id: randomUUID(), mode: 'interrupt', kind: 'event', type: 'stop', data })
  const pending = async () =>
    (await annals.runs.inbox(session_id).page()).items.map((input) =>
      input.kind === 'event' ? input.data : input.kind,
    )

  // One that came before the stream, one for another stream, and one that comes while it runs.
  await stop({ of: 'before' })
  const { abort, source } = await begin('second')
  await stop({ stream_id: 'third' })
  await vi.waitFor(async () => expect(await pending()).toEqual([{ stream_id: 'third' }]), 20_000)
  expect(abort.signal.aborted).toBe(false)
  await stop({ of: 'now' })
  await vi.waitFor(() => expect(abort.signal.aborted).toBe(true), 20_000)
  source.end()

  const third = await begin('third')
  await vi.waitFor(() => expect(third.abort.signal.aborted).toBe(true), 20_000)
  third.source.end()
  const logged = (await annals.sessions.events(session_id, { type: 'stop' }).page()).items
  expect(logged.map(({ data }) => data)).toEqual([{ of: 'now' }, { stream_id: 'third' }])

  // A message that interrupts is for the next turn.
  const fourth = await begin('fourth')
  const blob = { role: 'user', content: 'Wait, not that one.' }
  await annals.runs.send(session_id, { mode: 'interrupt', kind: 'message', blob })
  await vi.waitFor(() => expect(fourth.abort.signal.aborted).toBe(true), 20_000)
  expect(await pending()).toEqual(['message'])
  fourth.source.end()
})
