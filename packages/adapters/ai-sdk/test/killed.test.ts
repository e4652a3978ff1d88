import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { AnnalsChats, AnnalsStreams } from '@annals/ai-sdk'
import { Annals } from '@annals/client'
import type { UIMessage } from 'ai'
import { expect, it } from 'vitest'
import { useService } from '../../../../tests/harness/service.ts'
import { streamOf } from './streams.ts'

const service = useService()

const INTERRUPTED = 'data: {"type":"error","errorText":"The answer was interrupted."}\n\ndata: [DONE]\n\n'

/** Says something every few milliseconds, and dies when it has said enough. */
const PRODUCER = `
import { AnnalsStreams } from '@annals/ai-sdk'
import { Annals } from '@annals/client'
import { setTimeout as sleep } from 'node:timers/promises'

const { ANNALS_URL: url, ANNALS_API_KEY: token } = process.env
const streams = new AnnalsStreams({ annals: new Annals({ url, token }), chatId: 'c', silence_ms: 1_500 })
async function* chunks() {
  for (let n = 1; n <= 100; n += 1) {
    yield 'data: ' + n + '\\n\\n'
    await sleep(5)
  }
  await sleep(500)
  process.kill(process.pid, 'SIGKILL')
}
const reader = await streams.createNewResumableStream('s', () => ReadableStream.from(chunks()))
for await (const said of reader);
`

it('a producer that is killed ends its stream as interrupted, the same for every reader, and none waits forever', async () => {
  const { token } = await service.newProject()
  const annals = new Annals({ url: service.node.url, token })
  const streams = new AnnalsStreams({ annals, chatId: 'c', silence_ms: 1_500 })
  const env = { ...process.env, ANNALS_URL: service.node.url, ANNALS_API_KEY: token }
  const args = ['--input-type=module', '--eval', PRODUCER]
  const producer = spawn(process.execPath, args, { env, stdio: ['ignore', 'inherit', 'pipe'] })
  const errors = text(producer.stderr)
  const read = (stream: ReadableStream<string> | undefined) =>
    new Response(stream!.pipeThrough(new TextEncoderStream())).text()
  let follower: ReadableStream<string> | undefined
  while (follower === undefined && producer.exitCode === null) {
    follower = await streams.resumeExistingStream({ streamId: 's' })
    await sleep(20)
  }
  const followed = read(follower)
  const [, signal] = await once(producer, 'close')
  expect([signal, await errors]).toEqual(['SIGKILL', ''])
  const said = Array.from({ length: 100 }, (_, at) => `data: ${at + 1}\n\n`).join('')
  const late = await Promise.all([1, 2].map(async () => read(await streams.resumeExistingStream())))
  expect([await followed, ...late]).toEqual(Array(3).fill(said + INTERRUPTED))
  expect(await streams.stopStream('s')).toBe(false)
})

it('chats and streams lose and double nothing when the service is killed in the middle', async () => {
  const { token } = await service.newProject()
  const first = await service.startNode()
  const { port } = new URL(first.url)
  const annals = new Annals({ url: first.url, token, retries: 200, timeout_ms: 120_000 })
  const chats = new AnnalsChats({ annals })
  const streams = new AnnalsStreams({ annals, chatId: 'c' })
  const said = Array.from({ length: 400 }, (_, at) => `data: ${at}\n\n`)
  const asked = (id: string): UIMessage => ({ id, role: 'user', parts: [{ type: 'text', text: id }] })
  let restarted: Promise<unknown> | undefined
  async function* chunks() {
    for (const [at, chunk] of said.entries()) {
      yield chunk
      await sleep(5)
      if (at === 200) restarted = first.kill().then(() => service.startNode({ PORT: port }))
    }
  }
  await chats.saveChat({ chatId: 'c', messages: [asked('0')] })
  const reader = await streams.createNewResumableStream('s', () => streamOf(chunks()))
  const reading = new Response(reader.pipeThrough(new TextEncoderStream())).text()
  const messages = [asked('0')]
  for (let n = 1; n <= 40; n += 1) {
    // Every third time, the last one is edited.
    if (n % 3 === 0) messages.pop()
    messages.push(asked(`${n}`))
    await chats.saveChat({ chatId: 'c', messages })
    await sleep(50)
  }
  expect(await reading).toBe(said.join(''))
  await restarted
  const [session] = (await annals.sessions.list({ filter_by_configs: { ai_sdk_stream: 's' } }).page()).items
  const texts: unknown[] = []
  for await (const event of annals.sessions.events(session!.id, { type: 'ai_sdk.chunks' }))
    texts.push(event.data.text)
  expect(texts.join('')).toBe(said.join(''))
  expect(await chats.loadChat('c')).toEqual(messages)
  expect(await chats.saveChat({ chatId: 'c', messages, streamId: 's' })).toBe(true)
  const kept = (
    await annals.sessions.timeline((await annals.sessions.get(session!.id)).parent_id!, { limit: 200 }).page()
  ).items
  const counted = kept.filter(({ kind }) => kind === 'message')
  expect(counted).toHaveLength(41)
})
