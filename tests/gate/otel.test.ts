import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Block, SessionReader } from '@annals/messages/session'
import { describe, expect, it } from 'vitest'
import { apiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { sendTraces, type TestSpan } from '../harness/otlp.ts'
import { useService } from '../harness/service.ts'
import { sessionLog, type TimelineItem } from '../harness/session_log.ts'
import { walkPages } from '../harness/walk_pages.ts'

const AGENTS = fileURLToPath(new URL('../harness/otel_agents.js', import.meta.url))
const PYTHON_AGENTS = fileURLToPath(new URL('../otel_agents/instrumented.py', import.meta.url))
const service = useService()
const hex = (number: number) => number.toString(16)

/** Agents in Python, where there is an interpreter that has their packages: `bash tests/otel_agents/run.sh`. */
const PYTHON = process.env.OTEL_AGENTS_PYTHON
const IN_PYTHON = [
  ...['openllmetry', 'semconv_events', 'pydantic_ai', 'logfire_openai', 'logfire_agents'],
  ...['openinference_agents', 'langsmith', 'strands', 'adk'],
]
const SAID = ['Be brief.', 'Weather in Oslo?', null, '4 degrees', 'It is 4 degrees.']

describe('the exporters of others', () => {
  it.each(['openinference', 'aiSdk', 'aiSdkLegacy', 'langfuse'])(
    '%s: messages stand once, the call has its result, and tokens and models are there',
    async (which) => {
      const { said, calls, usage } = await conversationBy(process.execPath, AGENTS, which)
      expect(said).toEqual(SAID)
      expect(calls).toEqual([expect.objectContaining({ name: 'weather', verdict: 'ok' })])
      expect(calls[0]!.result!.text).toBe('4 degrees')
      expect(usage).toEqual(Array<object>(2).fill(TOKENS))
    },
  )

  it.runIf(PYTHON).each(IN_PYTHON)(
    '%s: two turns stand once, with the call that failed, durations, tokens and models',
    async (which) => {
      const { said, calls, usage, configs } = await conversationBy(PYTHON!, PYTHON_AGENTS, which)
      // One framework ends where a tool fails, and each has words of its own for it.
      const ends = which === 'langsmith'
      expect(said).toEqual([
        ...[expect.stringMatching(/^Be brief\./), 'Weather in Oslo?', null],
        ...[expect.stringContaining('4 degrees'), 'It is 4 degrees.', 'And in Rome?', null],
        ...(ends ? [] : [expect.any(String), 'I do not know.']),
      ])
      expect(calls.map(({ name, verdict, arguments: given }) => [name, verdict, JSON.parse(given)])).toEqual([
        ['weather', 'ok', { city: 'Oslo' }],
        ['weather', 'failed', { city: 'Rome' }],
      ])
      // The tool takes 50 ms.
      for (const { result } of calls) expect(result!.duration_ms).toBeGreaterThanOrEqual(49)
      expect(usage).toEqual(Array<object>(ends ? 3 : 4).fill(TOKENS))
      expect(configs).toMatchObject({ model: 'gpt-x', service: which })
    },
    120_000,
  )
})

const TOKENS = expect.objectContaining({ input_tokens: 30, output_tokens: 5 })

/** What the service has of the conversation of an agent: it must be one session. */
async function conversationBy(interpreter: string, script: string, which: string) {
  const { token } = await service.newProject()
  await promisify(execFile)(interpreter, [script, which, service.node.url, token])
  const api = await service.newClient({ token })
  const { items } = expectOk(await api.listSessions())
  expect(items.map(({ configs }) => [configs.model, Object.values(configs.otel as object).length])).toEqual([
    ['gpt-x', 1],
  ])
  const log = expectOk(await sessionLog(api, items[0]!.id).timeline({ limit: 200 })).items
  const reader = new SessionReader()
  const calls = log
    .flatMap((item) => reader.read(item as never).blocks)
    .filter((block): block is Extract<Block, { kind: 'call' }> => block.kind === 'call')
    .map(({ call }) => call)
  const models = log.filter(({ data }) => (data as { operation?: string })?.operation === 'model')
  return {
    said: log
      .filter(({ kind }) => kind === 'message')
      .map(({ blob }) => (blob as { content: unknown }).content),
    calls: [...new Set(calls)],
    usage: models.map(({ data }) => (data as { usage: object }).usage),
    configs: items[0]!.configs,
  }
}

it('10,000 spans of one trace are all in the next read', async () => {
  const api = await service.newClient()
  for (let from = 0; from < 10_000; from += 2_500) {
    const spans: TestSpan[] = Array.from({ length: 2_500 }, (_, index) => ({
      ...{ id: hex(from + index + 1), parent: '1', from: from + index, name: 'step' },
      attributes: { 'step.index': from + index },
    }))
    const answer = await sendTraces(api, spans)
    expect(answer.status, answer.text).toBe(200)
  }
  const [session] = expectOk(await api.listSessions()).items
  const log = sessionLog(api, session!.id)
  const items = await walkPages((cursor) => log.timeline({ limit: 1_000, cursor }))
  expect(items.map(({ data }) => (data as { span_id: string }).span_id)).toEqual(
    Array.from({ length: 10_000 }, (_, index) => hex(index + 1).padStart(16, '0')),
  )
})

it('what was answered 200 is there after kill -9, and what was not can be sent again', async () => {
  const { token } = await service.newProject()
  const node = await service.startNode()
  const client = apiClient(node.url, token)
  const batches = Array.from({ length: 200 }, (_, batch) =>
    Array.from(
      { length: 10 },
      (_, index): TestSpan => ({
        ...{ id: hex(batch * 10 + index + 1), attributes: { 'session.id': `s-${batch % 7}` } },
      }),
    ),
  )
  const answered: number[] = []
  let killed: Promise<unknown> | undefined
  const left = [...batches.keys()]
  const sender = async () => {
    for (let batch = left.shift(); batch !== undefined; batch = left.shift()) {
      const answer = await sendTraces(client, batches[batch]!).catch(() => undefined)
      if (answer?.status !== 200) return
      answered.push(batch)
      if (answered.length === 30) killed = node.kill()
    }
  }
  await Promise.all(Array.from({ length: 6 }, sender))
  await killed
  const api = await service.newClient({ token })
  const stored = async () => {
    const ids: string[] = []
    for (const { id } of expectOk(await api.listSessions()).items)
      for (const item of await walkPages((cursor) => sessionLog(api, id).timeline({ limit: 1_000, cursor })))
        ids.push(((item as TimelineItem).data as { span_id: string }).span_id)
    return ids
  }
  const sent = (batch: number) => batches[batch]!.map(({ id }) => id.padStart(16, '0'))
  expect(answered.length).toBeGreaterThanOrEqual(30)
  expect(answered.length).toBeLessThan(200)
  expect(await stored()).toEqual(expect.arrayContaining(answered.flatMap(sent)))
  for (const batch of batches) expect((await sendTraces(api, batch)).status).toBe(200)
  expect((await stored()).toSorted()).toEqual([...batches.keys()].flatMap(sent).toSorted())
})
