import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { AnnalsChats, AnnalsStreams } from '@annals/ai-sdk'
import { Annals } from '@annals/client'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { useSharedService } from '../../../../tests/harness/service.ts'
import { brokenAfter, PlainChat, streamResponse, transportTo } from './chat_client.ts'
import { SSE_CHUNKS } from './chunks.ts'
import { fedSource, readerOf, streamOf } from './streams.ts'

const service = useSharedService()
let annals: Annals
let elsewhere: Annals

beforeAll(async () => {
  const { token } = await service.newProject()
  annals = new Annals({ url: service.node.url, token })
  elsewhere = new Annals({ url: service.secondNode.url, token })
})

/** The streams of a new chat, at one node and at the other. */
const open = (options: { silence_ms?: number } = {}) => {
  const chatId = randomUUID()
  return {
    chatId,
    here: new AnnalsStreams({ annals, chatId, ...options }),
    there: new AnnalsStreams({ annals: elsewhere, chatId, ...options }),
  }
}
const textOf = (stream: ReadableStream<string> | undefined) => readerOf(stream!).rest()
const sourceOf = (chunks: string[]) => () => streamOf(chunks)
describe('a client', () => {
  it.each([
    ['that replays', true],
    ['that goes on', false],
  ])('%s gets the same parts wherever its connection broke', async (_name, isReplay) => {
    const { chatId, here, there } = open()
    await textOf(await here.createNewResumableStream('s', sourceOf(SSE_CHUNKS)))
    const partsAfter = async (count: number) => {
      const chat = new PlainChat(
        chatId,
        transportTo(
          {
            post: () => streamResponse(brokenAfter(count, SSE_CHUNKS)),
            resume: async () =>
              streamResponse(await there.resumeExistingStream(isReplay ? {} : { skip_chunks: count })),
          },
          isReplay,
        ),
      )
      await chat.sendMessage({ text: 'How is the weather?' })
      if (count < SSE_CHUNKS.length) expect(chat.status).toBe('error')
      await chat.resumeStream()
      expect(chat.error).toBeUndefined()
      return chat.messages.slice(1)
    }
    const whole = new PlainChat(
      chatId,
      transportTo({
        post: () => streamResponse(sourceOf(SSE_CHUNKS)()),
        resume: () => streamResponse(undefined),
      }),
    )
    await whole.sendMessage({ text: 'How is the weather?' })
    expect(whole.lastMessage!.parts).toHaveLength(7)
    for (let count = 0; count < SSE_CHUNKS.length; count += 1)
      expect([count, await partsAfter(count)]).toEqual([count, [whole.lastMessage]])
  })
})

describe('a stream', () => {
  it('is followed at another node while it is produced, and read again after its end', async () => {
    const { here, there } = open()
    const source = fedSource()
    const first = readerOf(await here.createNewResumableStream('s', source.make))
    source.say('data: 1\n\n')
    await first.until('1')
    expect(await there.activeStreamId()).toBe('s')
    const second = readerOf((await there.resumeExistingStream())!)
    await second.until('1')
    source.say('data: 2\n\n')
    source.end()
    const all = 'data: 1\n\ndata: 2\n\n'
    expect([await first.rest(), await second.rest()]).toEqual([all, all])
    expect(await textOf(await there.resumeExistingStream({ streamId: 's' }))).toBe(all)
  })

  it('leaves its readers no connection once it has ended', async () => {
    const { token } = await service.newProject()
    const own = new Annals({ url: service.node.url, token })
    const streams = new AnnalsStreams({ annals: own, chatId: randomUUID() })
    await textOf(await streams.createNewResumableStream('s', sourceOf(['data: 1\n\n'])))
    await expect.poll(async () => (await own.usage()).tails.used).toBe(0)
  })

  it('comes back as it was, whatever its texts are and wherever they are cut', async () => {
    const { here } = open()
    const large = '\u0000"\ud83c\udf1e\ufdd0'.repeat(60_000)
    const chunks = ['a', 'b\n', '\nc', '', '\ud800', large, `: comment\n\ndata: ${large}\n\n`, 'z']
    await here.createNewResumableStream('s', sourceOf(chunks))
    expect(await textOf(await here.resumeExistingStream({ streamId: 's' }))).toBe(chunks.join(''))
  })

  it('is produced once, by the first of those who begin it at once', async () => {
    const { here, there } = open()
    const make = vi.fn(sourceOf(['data: once\n\n']))
    const readers = await Promise.all(
      [here, there, here, there].map((streams) => streams.createNewResumableStream('s', make)),
    )
    for (const reader of readers) expect(await textOf(reader)).toBe('data: once\n\n')
    expect(make).toHaveBeenCalledTimes(1)
  })

  it('goes on while its source says nothing, however long', async () => {
    const { here, there } = open({ silence_ms: 1_500 })
    const source = fedSource()
    const reader = readerOf(await here.createNewResumableStream('s', source.make))
    const other = textOf(await there.resumeExistingStream({ streamId: 's' }))
    await sleep(4_000)
    source.say('data: late\n\n')
    source.end()
    expect([await reader.rest(), await other]).toEqual(['data: late\n\n', 'data: late\n\n'])
  })

  it('that nobody has begun, of this chat, is none', async () => {
    const { here } = open()
    expect(await here.activeStreamId()).toBeUndefined()
    expect(await here.resumeExistingStream()).toBeUndefined()
    expect(await here.stopStream('s')).toBe(false)
    const other = open()
    await textOf(await other.here.createNewResumableStream('s', sourceOf(['data: secret\n\n'])))
    expect(await here.resumeExistingStream({ streamId: 's' })).toBeUndefined()
  })

  it('whose source fails tells every reader so', async () => {
    const { here, there } = open()
    const source = fedSource()
    const reader = readerOf(await here.createNewResumableStream('s', source.make))
    source.say('data: 1\n\n')
    await reader.until('1')
    source.fail()
    const ended = /^data: 1\n\ndata: {"type":"error","errorText":"The answer failed."}\n\ndata: \[DONE\]\n\n$/
    expect(await reader.rest()).toMatch(ended)
    expect(await textOf(await there.resumeExistingStream({ streamId: 's' }))).toMatch(ended)
  })

  it('that cannot be stored is told to waitUntil, and throws nothing', async () => {
    const unauthorized = new Annals({ url: service.node.url, token: 'sk-wrong', retries: 0 })
    let finished: Promise<unknown> | undefined
    const streams = new AnnalsStreams({
      annals: unauthorized,
      chatId: 'c',
      waitUntil: (given) => {
        finished = given
      },
    })
    const reader = await streams.createNewResumableStream('s', sourceOf(['data: 1\n\n']))
    await expect(finished).rejects.toThrow('API key')
    await expect(textOf(reader)).rejects.toThrow('API key')
  })
})

describe('stopping', () => {
  it('ends the stream for every reader, cancels its source and aborts the model, from another node', async () => {
    const { here, there } = open({ silence_ms: 600 })
    const source = fedSource()
    const abort = new AbortController()
    const reader = readerOf(await here.createNewResumableStream('s', source.make, { abort }))
    source.say('data: 1\n\n')
    await reader.until('1')
    expect(await there.stopStream('s')).toBe(true)
    expect(await reader.rest()).toBe(
      'data: 1\n\ndata: {"type":"abort","reason":"stopped"}\n\ndata: [DONE]\n\n',
    )
    await vi.waitFor(() => expect(abort.signal.aborted).toBe(true))
    expect(source.cancel).toHaveBeenCalled()
    expect(await here.stopStream('s')).toBe(true)
  })

  it('an old stream late does not touch a newer one', async () => {
    const { here, there } = open({ silence_ms: 600 })
    const [old, newer] = [fedSource(), fedSource()]
    await here.createNewResumableStream('old', old.make)
    const reader = readerOf(await here.createNewResumableStream('newer', newer.make))
    newer.say('data: 1\n\n')
    await reader.until('1')
    expect(await there.stopStream('old')).toBe(true)
    await vi.waitFor(() => expect(old.cancel).toHaveBeenCalled())
    expect(await there.activeStreamId()).toBe('newer')
    newer.say('data: 2\n\n')
    newer.end()
    expect(await reader.rest()).toBe('data: 1\n\ndata: 2\n\n')
    expect(newer.cancel).not.toHaveBeenCalled()
  })

  it('a stream that has ended changes nothing', async () => {
    const { here } = open()
    expect(await textOf(await here.createNewResumableStream('s', sourceOf(['data: 1\n\n'])))).toBe(
      'data: 1\n\n',
    )
    expect(await here.stopStream('s')).toBe(false)
    expect(await textOf(await here.resumeExistingStream({ streamId: 's' }))).toBe('data: 1\n\n')
  })
})

describe('when the final message is stored', () => {
  it('the stream gives its session up, also if it has not begun to be stored', async () => {
    for (const isLate of [false, true]) {
      const { chatId, here } = open()
      const chats = new AnnalsChats({ annals })
      const begin = () => here.createNewResumableStream('s', sourceOf(['data: 1\n\n']))
      if (!isLate) await textOf(await begin())
      const answer = { id: 'a', role: 'assistant' as const, parts: [{ type: 'text' as const, text: '1' }] }
      expect(await chats.saveChat({ chatId, messages: [answer], streamId: 's' })).toBe(true)
      if (isLate) expect(await textOf(await begin())).toBe('')
      const { items } = await annals.sessions
        .list({ filter_by_configs: { ai_sdk_stream: 's' }, time_desc: true })
        .page()
      expect(items[0]).toMatchObject({ expires_in_s: 30 })
      const [chat] = (await annals.sessions.list({ filter_by_configs: { ai_sdk_chat: chatId } }).page()).items
      expect(items[0]!.parent_id).toBe(chat!.id)
    }
  })
})
