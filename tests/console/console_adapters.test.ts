import { AnnalsStreams } from '@annals/ai-sdk'
import { Annals, type Session } from '@annals/client'
import { AnnalsSaver } from '@annals/langgraph'
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages'
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph'
import { beforeAll, describe, expect, it } from 'vitest'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { type Project, useSharedService } from '../harness/service.ts'

const service = useSharedService()
const browser = useBrowser()
let project: Project
let annals: Annals
let tab: Tab

beforeAll(async () => {
  if (!CHROMIUM) return
  project = await service.newProject()
  annals = new Annals({ url: service.node.url, token: project.token })
  tab = await browser.open(`${service.node.url}/console`)
  await signIn(tab.page, project.token)
})

/** Opens the session that has this in its configs, when its last entry is loaded. */
async function openSession(filter_by_configs: object): Promise<Session> {
  const { items } = await annals.sessions.list({ filter_by_configs }).page()
  await tab.page.goto(`${service.node.url}/console/sessions/${items[0]!.id}`)
  await tab.page.getByRole('article').first().waitFor()
  return items[0]!
}

describe.skipIf(!CHROMIUM)(`what adapters store (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it('reads as the text that was streamed, with the calls in it, in a few rows', async () => {
    const words = Array.from({ length: 60 }, (_, n) => `word${n} `)
    const parts = [
      { type: 'start' },
      ...words.map((delta) => ({ type: 'reasoning-delta', id: 'r', delta })),
      { type: 'tool-input-available', toolCallId: 'c', toolName: 'weather', input: { city: 'Lyon' } },
      { type: 'tool-output-error', toolCallId: 'c', errorText: 'no weather today' },
      ...words.map((delta) => ({ type: 'text-delta', id: 't', delta })),
      { type: 'finish' },
    ]
    const chatId = 'chat 7'
    const streams = new AnnalsStreams({ annals, chatId })
    const reader = await streams.createNewResumableStream('answer', () => streamOf(parts))
    for await (const _ of reader as unknown as AsyncIterable<string>);
    const { id } = await openSession({ ai_sdk_stream: 'answer' })
    const stored = await annals.sessions.timeline(id).page()
    expect(stored.items.length).toBeGreaterThan(10)
    const { page } = tab
    const texts = () => page.getByRole('article').allInnerTexts()
    const said = `Thinking · about \\d+ tokens.*Tool call 1\\s+weather\\s+failed.*no weather today.*${words.join('').trim()}.*stream ended\\s+done`
    await expect.poll(async () => (await texts()).join('\n')).toMatch(new RegExp(said, 's'))
    const rows = (await texts()).length
    expect(rows).toBeLessThanOrEqual(4)
    // A link to an entry within the text leads to it.
    const within = stored.items.at(-2)!.seq
    await page.goto(`${service.node.url}/console/sessions/${id}?seq=${within}`)
    await page.getByRole('button', { name: /^the text at entry \d+$/ }).click()
    await expect.poll(async () => (await texts()).length).toBe(rows)
    expect(tab.complaints).toEqual([])
  })

  it('reads as messages, tool calls and checkpoints of a graph', async () => {
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('ask', () => ({
        messages: [new AIMessage({ content: '', tool_calls: [{ id: 'c', name: 'find', args: { id: 7 } }] })],
      }))
      .addNode('find', () => ({
        messages: [new ToolMessage({ content: 'no such booking', tool_call_id: 'c', status: 'error' })],
      }))
      .addNode('answer', () => ({ messages: [new AIMessage('It is lost.')] }))
      .addEdge(START, 'ask')
      .addEdge('ask', 'find')
      .addEdge('find', 'answer')
      .addEdge('answer', END)
      .compile({ checkpointer: new AnnalsSaver(annals) })
    await graph.invoke(
      { messages: [new HumanMessage('Where is booking 7?')] },
      { configurable: { thread_id: 'refund' } },
    )
    await openSession({ langgraph: { thread_id: 'refund' } })
    const { page } = tab
    await page.getByRole('heading', { name: 'Where is booking 7?' }).waitFor()
    await page.getByText('It is lost.').first().waitFor()
    const call = page.getByRole('region', { name: 'Tool call 1: find' })
    await expect.poll(() => call.innerText()).toMatch(/failed.*id\s*:?\s*7.*no such booking/s)
    const outline = page.getByRole('navigation', { name: 'Tool calls and events' })
    await outline
      .getByRole('button', { name: /checkpoint/ })
      .first()
      .waitFor()
    const checkpoint = page.getByRole('region', { name: 'Event langgraph.checkpoint' }).first()
    expect(await checkpoint.innerText()).toMatch(/checkpoint\s+step -1 · input/)
    await checkpoint.getByRole('button', { name: 'Data' }).click()
    await checkpoint.getByText('channel_versions').waitFor()
  })

  it('is put together where an event was too large for one request', async () => {
    const saver = new AnnalsSaver(annals)
    const book = 'Sand. '.repeat(120_000)
    const config = { configurable: { thread_id: 'book', checkpoint_ns: '' } }
    const checkpoint = {
      v: 4,
      id: '1ef4f797-8335-6428-8001-8a1503f9b875',
      ts: '2026-11-20T12:00:00Z',
      channel_values: { book },
      channel_versions: { book: 1 },
      versions_seen: {},
    }
    await saver.put(config, checkpoint, { source: 'update', step: 0, parents: {} }, { book: 1 })
    await openSession({ langgraph: { thread_id: 'book' } })
    const event = tab.page.getByRole('region', { name: 'Event langgraph.channel' })
    await event.getByText('large: stored in').waitFor()
    await event.getByRole('button', { name: 'Put together' }).click()
    await event.getByText('Sand. Sand.').first().waitFor()
    expect(tab.complaints).toEqual([])
  })
})

/** A stream of the AI SDK's parts, a few at a time. */
function streamOf(parts: object[]): ReadableStream<string> {
  let at = 0
  return new ReadableStream({
    pull: async (controller) => {
      await new Promise((done) => setTimeout(done, 10))
      if (at < parts.length) controller.enqueue(`data: ${JSON.stringify(parts[at++])}\n\n`)
      else controller.close()
    },
  })
}
