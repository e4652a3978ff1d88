// A page that is reloaded in the middle of an answer, and a server that dies in the middle of one. Two servers are two
// processes: the page asks the first one, and its reload finds the answer at the second one, which has never seen it.
//
//     npx tsc -p tsconfig.examples.json
//     ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… node examples/dist/agents/ai_sdk_resume.js
//
// The model is the SDK's mock. For a real one, give streamText any model of the SDK.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { AnnalsChats, AnnalsStreams } from '@annals/ai-sdk'
import { Annals } from '@annals/client'
import {
  convertToModelMessages,
  createUIMessageStreamResponse,
  generateId,
  streamText,
  toUIMessageStream,
  type UIMessage,
} from 'ai'
import { MockLanguageModelV4 } from 'ai/test'

const annals = new Annals({ url: process.env.ANNALS_URL, token: process.env.ANNALS_API_KEY })
const chats = new AnnalsChats({ annals })
const chatId = 'reloaded'
const streams = new AnnalsStreams({ annals, chatId, silence_ms: 3_000 })

/** Says its words one by one, and may die after the fifth. */
function countingModel(isDying: boolean): MockLanguageModelV4 {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  }
  const stream = new ReadableStream({
    async start(controller) {
      controller.enqueue({ type: 'text-start', id: 't' })
      for (const word of ['One', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight']) {
        if (isDying && word === 'six') {
          await sleep(500)
          process.kill(process.pid, 'SIGKILL')
        }
        controller.enqueue({ type: 'text-delta', id: 't', delta: `${word} ` })
        await sleep(60)
      }
      controller.enqueue({ type: 'text-end', id: 't' })
      controller.enqueue({ type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage })
      controller.close()
    },
  })
  return new MockLanguageModelV4({ doStream: async () => ({ stream }) })
}

async function answer(message: UIMessage): Promise<Response> {
  const messages = [...(await chats.loadChat(chatId)), message]
  await chats.saveChat({ chatId, messages })
  const streamId = generateId()
  const prompt = await convertToModelMessages(messages)
  const { stream } = streamText({ model: countingModel(message.id === 'dies'), messages: prompt })
  return createUIMessageStreamResponse({
    stream: toUIMessageStream({
      stream,
      originalMessages: messages,
      generateMessageId: generateId,
      onEnd: async ({ messages }) => {
        await chats.saveChat({ chatId, messages, streamId })
      },
    }),
    consumeSseStream: async ({ stream }) => {
      await streams.createNewResumableStream(streamId, () => stream)
    },
  })
}

async function resume(): Promise<Response> {
  const stream = await streams.resumeExistingStream()
  return new Response(stream?.pipeThrough(new TextEncoderStream()) ?? null, { status: stream ? 200 : 204 })
}

/** A process of a web application: `POST` asks, `GET` resumes. */
function serve(): void {
  const server = createServer(async (request, response) => {
    const answered = request.method === 'POST' ? answer((await json(request)) as UIMessage) : resume()
    const { status, body } = await answered
    response.writeHead(status)
    if (body) Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]).pipe(response)
    else response.end()
  })
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
}

async function startServer(): Promise<{ url: string; child: ChildProcess }> {
  const child = fork(fileURLToPath(import.meta.url), ['server'])
  const [port] = await once(child, 'message')
  return { url: `http://127.0.0.1:${port}`, child }
}

/** Asks, and leaves the page when its answer has come as far as this word. */
async function askAndLeave(url: string, id: string, word: string): Promise<void> {
  const message: UIMessage = { id, role: 'user', parts: [{ type: 'text', text: 'Count to eight.' }] }
  const leaving = new AbortController()
  const { body } = await fetch(url, {
    method: 'POST',
    body: JSON.stringify(message),
    signal: leaving.signal,
  })
  const reader = body!.pipeThrough(new TextDecoderStream()).getReader()
  for (let read = ''; !read.includes(word); read += (await reader.read()).value ?? '');
  leaving.abort()
}

async function textAt(url: string): Promise<string> {
  const chunks = (await (await fetch(url)).text()).split('\n\n').filter((line) => line.startsWith('data: {'))
  const read = chunks.map((line) => JSON.parse(line.slice('data: '.length)))
  return read
    .map((chunk) => chunk.delta ?? (chunk.errorText ? `[${chunk.errorText}]` : ''))
    .join('')
    .trim()
}

if (process.argv[2] === 'server') serve()
else {
  const [first, second] = await Promise.all([startServer(), startServer()])
  await askAndLeave(first.url, 'reloads', 'three')
  console.log(`reloaded: ${await textAt(second.url)}`)
  console.log(`stored: ${(await chats.loadChat(chatId)).map(({ role }) => role).join(', ')}`)
  await askAndLeave(first.url, 'dies', 'three')
  const [, signal] = await once(first.child, 'close')
  console.log(`the server that answered ended by ${signal}`)
  console.log(`reloaded: ${await textAt(second.url)}`)
  second.child.kill()
}
