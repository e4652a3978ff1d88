import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { useClientCommands } from '../harness/client_commands.ts'
import { expectOk } from '../harness/expectations.ts'
import { sendTraces, type TestSpan } from '../harness/otlp.ts'
import { useSharedService } from '../harness/service.ts'

// cspell:ignore openinference
const commands = useClientCommands(useSharedService())
const PRICES = JSON.stringify({
  currency: 'EUR',
  models: { 'gpt-5': { input: 0.1, output: 0.2, cached_input: 0.01 }, part: { input: 1 } },
})

type Usage = Partial<Record<'input_tokens' | 'output_tokens' | 'cached_tokens' | 'total_tokens', number>>

function call(id: string, model: string, usage: Usage, more: Partial<TestSpan> = {}): TestSpan {
  const used = Object.entries(usage).map(([name, count]) => [
    name === 'total_tokens' ? 'llm.token_count.total' : `gen_ai.usage.${name}`,
    count,
  ])
  const attributes = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': model,
    'openinference.span.kind': 'LLM',
    ...Object.fromEntries(used),
    ...more.attributes,
  }
  return { id, ...more, attributes }
}

let conversations = 0

/** Stores the spans as a session of their own; returns its id. */
async function stored(spans: TestSpan[]): Promise<string> {
  const idsOf = async () => expectOk(await commands.api.listSessions()).items.map(({ id }) => id)
  const known = new Set(await idsOf())
  const name = `costs-${++conversations}`
  const trace = String(conversations).padStart(32, '0')
  const answer = await sendTraces(
    commands.api,
    spans.map((span) => ({
      ...span,
      trace,
      attributes: { 'gen_ai.conversation.id': name, ...span.attributes },
    })),
  )
  expect(answer.status).toBe(200)
  return (await idsOf()).find((id) => !known.has(id))!
}

async function costOf(id: string, prices = PRICES): Promise<string | undefined> {
  const { code, stdout, stderr } = await commands.annals(['show', id, '--no-json'], { ANNALS_PRICES: prices })
  expect(code, stderr).toBe(0)
  return /^cost +(.*)$/m.exec(stdout)?.[1]
}

const said = (role: string, content: string) => JSON.stringify([{ role, parts: [{ type: 'text', content }] }])
const SAID = {
  'gen_ai.input.messages': said('user', 'hi'),
  'gen_ai.output.messages': said('assistant', 'hello'),
}

describe('the cost of a session', () => {
  it('is exact where every call has counts and prices, without what spans around the calls repeat', async () => {
    const around = { parent: '9' }
    const spans = [
      // Three tenths of a million, of which floating point makes 0.30000000000000004.
      call('1', 'gpt-5', { input_tokens: 1_000_000, output_tokens: 0 }, { ...around, attributes: SAID }),
      call('2', 'gpt-5', { input_tokens: 0, output_tokens: 1_000_000 }, around),
      call(
        '3',
        'gpt-5',
        { input_tokens: 200, output_tokens: 0, cached_tokens: 100, total_tokens: 200 },
        around,
      ),
      call(
        '9',
        'gpt-5',
        { input_tokens: 1_000_200 },
        { attributes: { 'gen_ai.operation.name': 'invoke_agent' } },
      ),
    ]
    const id = await stored(spans)
    // 100 * 0.1 + 100 * 0.01 millionths beside.
    expect(await costOf(id)).toBe('0.300011 EUR')
    expect(await costOf(id, '')).toBeUndefined()
    const path = join(commands.directory, 'prices.json')
    await writeFile(path, PRICES)
    expect(await costOf(id, path)).toBe('0.300011 EUR')
    // An answer that no span tells of.
    const blob = ['--format', 'openai', '--data', '{"role":"assistant","content":"more"}']
    expect((await commands.annals(['append', id, ...blob])).code).toBe(0)
    expect(await costOf(id)).toBe('≥ 0.300011 EUR')
  })

  it.each([
    [
      'a kind of token has no price',
      call('1', 'part', { input_tokens: 5, output_tokens: 1 }),
      '≥ 0.000005 EUR',
    ],
    [
      'cached tokens may be part of the input',
      call('1', 'gpt-5', { input_tokens: 100, output_tokens: 0, cached_tokens: 10 }),
      '≥ 0.000009 EUR',
    ],
  ])('is a lower bound, rounded down, where %s', async (_what, span, cost) => {
    expect(await costOf(await stored([span]))).toBe(cost)
  })

  it.each([
    ['a model has no price', call('1', 'unknown', { input_tokens: 1, output_tokens: 1 })],
    ['a call has no counts', call('1', 'gpt-5', {})],
  ])('is not shown where %s and nothing else has a cost', async (_what, span) => {
    expect(await costOf(await stored([span]))).toBeUndefined()
  })

  it.each([
    ['{"currency":"EUR"', 'ANNALS_PRICES cannot be read'],
    ['/nowhere/prices.json', 'ANNALS_PRICES (/nowhere/prices.json) cannot be read'],
    ['{"currency":"€","models":{}}', 'ANNALS_PRICES at /currency must be'],
    ['{"currency":"EUR","models":{"m":{"input":-1}}}', 'ANNALS_PRICES at /models/m/input must be'],
    ['{"currency":"EUR","models":{"m":{"input":0.0000001}}}', 'ANNALS_PRICES at /models/m/input must be'],
    ['{"currency":"EUR","models":{"m":{"inputs":1}}}', 'ANNALS_PRICES at /models/m/inputs is unknown'],
  ])('refuses the price list %s, naming the place', async (prices, sentence) => {
    const answer = await commands.annals(['show', 'abcd'], { ANNALS_PRICES: prices })
    expect(answer).toMatchObject({ code: 2, stderr: expect.stringContaining(sentence) })
  })
})
