// A chat of the AI SDK whose tool needs an approval. The process is killed while it waits; a person says yes, and another
// process goes on with the call. Then somebody stops a long answer, and what came of it stays.
//
//     npx tsc -p tsconfig.examples.json
//     ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… node examples/dist/agents/ai_sdk_approval.js
//
// The model is the SDK's mock. For a real one, give streamText any model of the SDK.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { AnnalsChats, AnnalsStreams } from '@annals/ai-sdk'
import { Annals } from '@annals/client'
import {
  convertToModelMessages,
  createUIMessageStreamResponse,
  generateId,
  streamText,
  tool,
  toUIMessageStream,
  type UIMessage,
} from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { z } from 'zod'

const annals = new Annals({ url: process.env.ANNALS_URL, token: process.env.ANNALS_API_KEY })
const chats = new AnnalsChats({ annals })
const chatId = 'till 3'
const question: UIMessage = { id: 'q1', role: 'user', parts: [{ type: 'text', text: 'Pay Ada 40 EUR.' }] }
const pay = tool({
  inputSchema: z.object({ to: z.string(), eur: z.number() }),
  execute: async ({ to, eur }) => `${to} got ${eur} EUR`,
})

/** Pays, says so, and counts when it is asked anything else. */
const model = new MockLanguageModelV4({
  doStream: async ({ prompt }) => {
    const isPaid = prompt.some(({ role }) => role === 'tool')
    const isCounting = prompt.filter(({ role }) => role === 'user').length > 1
    const stream = new ReadableStream({
      async start(controller) {
        const said = isCounting ? Array.from({ length: 500 }, (_, n) => `${n} `) : ['Paid.']
        if (!isPaid) {
          const input = JSON.stringify({ to: 'Ada', eur: 40 })
          controller.enqueue({ type: 'tool-call', toolCallId: 'call_1', toolName: 'pay', input })
        } else {
          controller.enqueue({ type: 'text-start', id: 't' })
          for (const delta of said) {
            controller.enqueue({ type: 'text-delta', id: 't', delta })
            if (isCounting) await sleep(20)
          }
          controller.enqueue({ type: 'text-end', id: 't' })
        }
        const finishReason = { unified: isPaid ? 'stop' : 'tool-calls', raw: 'end' }
        controller.enqueue({ type: 'finish', finishReason, usage: NO_USAGE })
        controller.close()
      },
    })
    return { stream }
  },
})
const NO_USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

/** Answers, stores the answer while it streams, and returns when it has ended. */
async function answer(messages: UIMessage[]): Promise<void> {
  const abort = new AbortController()
  const streams = new AnnalsStreams({ annals, chatId })
  const streamId = generateId()
  const result = streamText({
    model,
    messages: await convertToModelMessages(messages),
    tools: { pay },
    toolApproval: { pay: 'user-approval' },
    abortSignal: abort.signal,
  })
  let saved: Promise<unknown> = Promise.resolve()
  const response = createUIMessageStreamResponse({
    stream: toUIMessageStream({
      stream: result.stream,
      originalMessages: messages,
      generateMessageId: generateId,
      onEnd: ({ messages }) => {
        saved = chats.saveChat({ chatId, messages, streamId })
      },
    }),
    consumeSseStream: async ({ stream }) => {
      await streams.createNewResumableStream(streamId, () => stream, { abort })
    },
  })
  await response.text()
  await saved
}

/** Answers the question, or goes on with the answer that waits for an approval. */
async function work(): Promise<void> {
  if ((await chats.loadChat(chatId)).length === 0) {
    await chats.saveChat({ chatId, messages: [question] })
    await answer([question])
  }
  await chats.askForApprovals(chatId)
  process.send!('asked')
  // One process at a time: the tool must not run twice.
  const lease = { owner: `process ${process.pid}`, ttl_ms: 2_000, wait_ms: 30_000 }
  await annals.runs.withLease(chats.sessionId(chatId), lease, async ({ signal }) => {
    const messages = await chats.resumeChat(chatId, { signal })
    if (messages) await answer(messages)
  })
  process.disconnect()
}

async function main(): Promise<void> {
  const session_id = chats.sessionId(chatId)
  const first = fork(process.argv[1]!, ['work'])
  await once(first, 'message')
  first.kill('SIGKILL')
  await once(first, 'exit')
  for await (const { id, call, call_sha256 } of annals.runs.requests({ session_id })) {
    console.log(`a person approves ${call!.name} ${JSON.stringify(call!.arguments)}`)
    await annals.runs.resolve(id, { decision: 'approve', by: 'bob', call_sha256: call_sha256! })
  }
  await once(fork(process.argv[1]!, ['work']), 'exit')
  const paid = await chats.loadChat(chatId)
  for (const part of paid.at(-1)!.parts)
    if (part.type === 'text') console.log(`the second process: ${part.text}`)
    else if (part.type === 'tool-pay') console.log(`the tool: ${(part as { output?: unknown }).output}`)

  const more: UIMessage = { id: 'q2', role: 'user', parts: [{ type: 'text', text: 'Count to 500.' }] }
  await chats.saveChat({ chatId, messages: [...paid, more] })
  const streams = new AnnalsStreams({ annals, chatId })
  const before = await streams.activeStreamId()
  const counting = answer([...paid, more])
  while ((await streams.activeStreamId()) === before) await sleep(20)
  await sleep(300)
  await annals.runs.send(session_id, { mode: 'interrupt', kind: 'event', type: 'stop', data: { by: 'bob' } })
  await counting
  const last = (await chats.loadChat(chatId)).at(-1)!
  const text = last.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  console.log(`stopped: ${text.startsWith('0 1 ') && !text.includes('499') ? 'what came is kept' : text}`)
}

await (process.argv[2] === 'work' ? work() : main())
