import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ModelFailure } from '@annals/learning'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../../kits/src/postgres/database.ts'
import { type Asking, askOnce } from '../../src/learning/model/ledger.ts'
import { openAiModel } from '../../src/learning/model/openai_model.ts'

const PROMPT = { system: 'You examine runs.', user: 'A run of an agent. '.repeat(100) }
let body = ''
const server = createServer((_request, response) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end(body),
)
beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)))
afterAll(() => new Promise<void>((resolve) => server.close(() => resolve())))

describe('an answer without a count of tokens', () => {
  const ask = () =>
    openAiModel(5_000)(
      { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, name: 'scripted' },
      { prompt: PROMPT, schema_name: 'reflect', schema: {}, signal: new AbortController().signal },
    )
  const said = (content: string, finish_reason = 'stop') =>
    JSON.stringify({ choices: [{ index: 0, finish_reason, message: { role: 'assistant', content } }] })

  it.each([
    ['that was cut off', said('{"statements":[', 'length')],
    ['that is empty', said('')],
    ['that is a page', '<html>welcome</html>'],
    ['that is too long', ' '.repeat(300_000)],
  ])('%s costs at least what was sent', async (_, answer) => {
    body = answer
    const failure = await ask().catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(ModelFailure)
    expect((failure as ModelFailure).tokens.tokens_in).toBeGreaterThan(300)
  })

  it('costs what was sent and what came back, by estimate', async () => {
    body = said('{"statements":[]}')
    for (const prompt_tokens of [undefined, 2 ** 53, Number.MAX_SAFE_INTEGER, 1e300, -1, '5'] as const) {
      body = JSON.stringify({ ...JSON.parse(said('{"statements":[]}')), usage: { prompt_tokens } })
      const { tokens_in } = await ask()
      expect(tokens_in).toBeGreaterThan(300)
      expect(tokens_in).toBeLessThan(10_000)
    }
    expect(await ask()).toMatchObject({
      tokens_in: expect.toSatisfy((tokens) => tokens > 300),
      tokens_out: expect.toSatisfy((tokens) => tokens > 0),
    })
  })
})

it('an answer of another shape is told of without its words, which the ledger would keep', async () => {
  const answered: unknown[][] = []
  const query: Database['query'] = async ({ name }, parameters) => {
    if (name === 'begin_learning_call') return [{ answer: 'send 1' }]
    answered.push([...parameters])
    return [{ id: '1', sent_at: 'now' }]
  }
  const database: Database = { query, transaction: (work) => work({ query }) }
  const ask: Asking['ask'] = async () => ({
    text: '{"statements":[{"kind":"fact","text":"t","tool":null,"cites":[],"Jane lives in Rome":1}]}',
    tokens_in: 1,
    tokens_out: 1,
  })
  const limits = { space_max: 1, project_max: 1, signal: new AbortController().signal }
  const address = { url: 'http://127.0.0.1:9', name: 'scripted' }
  const asking = { database, ask, address, project_id: 'p', space_id: 's', session_ids: [], ...limits }
  await expect(askOnce(asking, 'reflect', PROMPT)).rejects.toThrow('at "/statements/0"')
  expect(JSON.stringify(answered)).not.toContain('Jane')
})
