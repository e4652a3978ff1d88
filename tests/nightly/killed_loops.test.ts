import { randomUUID } from 'node:crypto'
import { AnnalsSessionService } from '@annals/adk'
import { AnnalsChats } from '@annals/ai-sdk'
import { AnnalsSessionStore } from '@annals/claude-agent-sdk'
import { Annals } from '@annals/client'
import { AnnalsSession } from '@annals/openai-agents'
import type { SessionStoreEntry } from '@anthropic-ai/claude-agent-sdk'
import {
  BaseLlm,
  type BaseLlmConnection,
  FunctionTool,
  LlmAgent,
  type LlmResponse,
  Runner,
} from '@google/adk'
import { Agent, Runner as OpenAIRunner, tool as openAITool } from '@openai/agents-core'
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents-core/testing'
import {
  convertToModelMessages,
  isStepCount,
  readUIMessageStream,
  simulateReadableStream,
  streamText,
  tool,
  toUIMessageStream,
  type UIMessage,
} from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { brokenRules } from '../../packages/messages/test/fit/provider_rules.ts'
import { useSharedService } from '../harness/service.ts'

/*
 * An agent that is killed leaves a session in which calls wait for results, parts of an answer, or nothing. It is killed
 * after each of its writes, by each framework's own loop; another process goes on. What either would send to a model is
 * what the provider takes.
 */

const FORMATS = ['openai', 'anthropic', 'gemini', 'responses', 'acontext'] as const
const service = useSharedService()

/** What the model of the first process does: two calls at once, another one, and an answer. */
const STEPS = [['a', 'b'], ['c'], []]
const look = (id: string) => `saw ${id}`

/** A framework's loop that takes up a conversation, in which the user says something. */
type Loop = (annals: Annals, said: string, steps: string[][]) => Promise<unknown>

const openAIAgents: Loop = (annals, said, steps) => {
  const looks = openAITool({
    name: 'look',
    description: 'Looks',
    parameters: z.object({ id: z.string() }),
    execute: async ({ id }) => look(id),
  })
  const said_by_model = steps.map((ids) =>
    ids.length > 0
      ? ids.map((id) => functionCall('look', { id }, { callId: `call_${id}` }))
      : [assistantMessage('Done.')],
  )
  const agent = new Agent({ name: 'Looker', model: new ScriptedModel(said_by_model), tools: [looks] })
  const session = new AnnalsSession({ annals, sessionId: 'loop' })
  return new OpenAIRunner({ tracingDisabled: true }).run(agent, said, { session })
}

class ScriptedGemini extends BaseLlm {
  readonly #steps: string[][]

  constructor(steps: string[][]) {
    super({ model: 'scripted' })
    this.#steps = [...steps]
  }

  async *generateContentAsync(): AsyncGenerator<LlmResponse, void> {
    const ids = this.#steps.shift() ?? []
    const calls = ids.map((id) => ({ functionCall: { id: `call-${id}`, name: 'look', args: { id } } }))
    yield { content: { role: 'model', parts: calls.length > 0 ? calls : [{ text: 'Done.' }] } }
  }

  async connect(): Promise<BaseLlmConnection> {
    throw new Error('The scripted model has no live connection.')
  }
}

const adk: Loop = async (annals, said, steps) => {
  const looks = new FunctionTool({
    name: 'look',
    description: 'Looks',
    parameters: z.object({ id: z.string() }),
    execute: async ({ id }: { id: string }) => ({ saw: look(id) }),
  })
  const agent = new LlmAgent({ name: 'looker', model: new ScriptedGemini(steps), tools: [looks] })
  const sessionService = new AnnalsSessionService(annals)
  const named = { appName: 'app', userId: 'ada', sessionId: 'loop' }
  await sessionService.getOrCreateSession(named)
  const runner = new Runner({ appName: 'app', agent, sessionService })
  const newMessage = { role: 'user', parts: [{ text: said }] }
  for await (const _event of runner.runAsync({ ...named, newMessage }));
}

/** Stores what came of the answer whenever there is more of it. */
const aiSdk: Loop = async (annals, said, steps) => {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  }
  const left = [...steps]
  const model = new MockLanguageModelV4({
    doStream: async () => {
      const ids = left.shift() ?? []
      const calls = ids.map((id) => ({
        type: 'tool-call' as const,
        toolCallId: `call_${id}`,
        toolName: 'look',
        input: JSON.stringify({ id }),
      }))
      const text = [
        { type: 'text-start' as const, id: 't' },
        { type: 'text-delta' as const, id: 't', delta: 'Done.' },
        { type: 'text-end' as const, id: 't' },
      ]
      const unified = ids.length > 0 ? ('tool-calls' as const) : ('stop' as const)
      const finish = { type: 'finish' as const, finishReason: { unified, raw: unified }, usage }
      return { stream: simulateReadableStream({ chunks: [...(ids.length > 0 ? calls : text), finish] }) }
    },
  })
  const chats = new AnnalsChats({ annals })
  const message: UIMessage = { id: randomUUID(), role: 'user', parts: [{ type: 'text', text: said }] }
  const messages = [...(await chats.loadChat('loop')), message]
  await chats.saveChat({ chatId: 'loop', messages })
  const { stream } = streamText({
    model,
    messages: await convertToModelMessages(messages, { ignoreIncompleteToolCalls: true }),
    tools: { look: tool({ inputSchema: z.object({ id: z.string() }), execute: async ({ id }) => look(id) }) },
    stopWhen: isStepCount(9),
  })
  for await (const answer of readUIMessageStream({ stream: toUIMessageStream({ stream }) }))
    await chats.saveChat({ chatId: 'loop', messages: [...messages, { ...answer, id: `answer to ${said}` }] })
}

/** Claude Code is a program of its own: these are the lines that it writes, each when it has it. */
const claude: Loop = async (annals, said, steps) => {
  const store = new AnnalsSessionStore(annals)
  const key = { projectKey: 'project', sessionId: 'loop' }
  const loaded = (await store.load(key)) ?? []
  let before = loaded.at(-1)?.uuid ?? null
  const write = async (type: string, message: object) => {
    const line: SessionStoreEntry = { type, uuid: randomUUID(), parentUuid: before, message }
    before = line.uuid!
    await store.append(key, [line])
  }
  await write('user', { role: 'user', content: said })
  for (const [n, ids] of steps.entries()) {
    const answer = { id: `msg_${said.length}_${n}`, role: 'assistant' }
    for (const id of ids)
      await write('assistant', {
        ...answer,
        content: [{ type: 'tool_use', id: `toolu_${id}`, name: 'look', input: { id } }],
      })
    for (const id of ids) {
      const content = [{ type: 'tool_result', tool_use_id: `toolu_${id}`, content: look(id) }]
      await write('user', { role: 'user', content })
    }
    if (ids.length === 0) await write('assistant', { ...answer, content: [{ type: 'text', text: 'Done.' }] })
  }
}

/** The network of a process that is killed as soon as so many of its writes are stored. */
function killedAfter(writes: number): typeof fetch {
  let left = writes
  return async (input, init) => {
    if (left < 0) throw new TypeError('the process is dead')
    const answer = await fetch(input, init)
    if ((init?.method ?? 'GET') !== 'GET') left -= 1
    if (left < 0) throw new TypeError('the process was killed')
    return answer
  }
}

it.each<[string, Loop, boolean]>([
  // It stores a turn's calls with their results.
  ['OpenAI Agents', openAIAgents, false],
  ['ADK', adk, true],
  ['the AI SDK', aiSdk, true],
  ['Claude Code', claude, true],
])(
  'the contexts of %s can be sent, wherever its process is killed, and when another one goes on',
  async (_, loop, waits) => {
    let isKilled = true
    let open = 0
    for (let writes = 0; isKilled; writes++) {
      const { token } = await service.newProject()
      const { url } = service.node
      const doomed = new Annals({ url, token, retries: 0, fetch: killedAfter(writes) })
      isKilled = await loop(doomed, 'Look around.', STEPS).then(
        () => false,
        () => true,
      )
      const annals = new Annals({ url, token })
      const contextOf = async (format: (typeof FORMATS)[number]) => {
        const [session] = (await annals.sessions.list({ parent: 'none' }).page()).items
        return session && (await annals.sessions.context(session.id, { format }))
      }
      const check = async () => {
        for (const format of FORMATS) {
          const context = await contextOf(format)
          expect(brokenRules(format, context?.items ?? []), `${format}, ${writes} writes`).toEqual([])
          if (context?.added.some(({ reason }) => reason === 'no_result')) open += 1
        }
      }
      await check()
      await loop(annals, 'Go on.', [[]])
      await check()
      const { items } = (await contextOf('openai'))!
      expect(JSON.stringify(items.slice(-2))).toMatch(/Go on\..*Done\./)
      expect(writes).toBeLessThan(60)
    }
    // Some were killed between a call and its result.
    expect(open > 0).toBe(waits)
  },
  300_000,
)
