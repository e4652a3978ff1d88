import { MESSAGE_FORMATS, type MessageFormat } from '@annals/messages'
import { FitToSend } from '@annals/messages/fit'
import fc from 'fast-check'
import { expect, it, onTestFinished } from 'vitest'
import { conversation, toldIn } from '../../packages/messages/test/fit/conversations.ts'
import { messageId } from '../../packages/messages/test/stored_run.ts'
import { compile, userProgram } from '../harness/user_program.ts'

/** What the providers' SDKs take as one element of a request's list. */
const TYPES: Partial<Record<MessageFormat, string>> = {
  openai: "import('openai/resources/chat/completions').ChatCompletionMessageParam",
  anthropic: "import('@anthropic-ai/sdk/resources/messages').MessageParam",
  gemini: "import('@google/genai').Content",
  responses: "import('openai/resources/responses/responses').ResponseInputItem",
}
/** Fields whose values the types tell apart. */
const TOLD_APART = new Set(['type', 'role', 'detail', 'status', 'media_type', 'ttl', 'format'])

function sent(from: MessageFormat, to: MessageFormat, blobs: readonly object[]): object[] {
  // The types of OpenAI's SDK do not know the thoughts that other services put there.
  const list = new FitToSend(to, { reasoning: from === 'openai' && to === 'openai' ? 'drop' : 'keep' })
  for (const [i, blob] of blobs.entries())
    list.add({ id: messageId(i), parent_id: null, seq: i + 1, format: from, blob: JSON.stringify(blob) })
  return list.finish().items.map(({ json }) => JSON.parse(json) as object)
}

/** The same for all items that a type cannot tell apart. */
function shapeOf(item: object): string {
  return JSON.stringify(item, (key, value: unknown) => {
    if (Array.isArray(value)) return [...new Map(value.map((one) => [shapeOf(one as object), one])).values()]
    return typeof value === 'string' && !TOLD_APART.has(key) ? '' : value
  })
}

it('the contexts of 300 conversations are what the SDKs of the providers take in a request', async () => {
  const corpus = fc.sample(conversation, { numRuns: 300, seed: 32 })
  const lines = Object.entries(TYPES).flatMap(([to, type]) => {
    const items = corpus.flatMap((steps, nth) => {
      const from = MESSAGE_FORMATS[nth % MESSAGE_FORMATS.length]!
      return sent(from, to as MessageFormat, toldIn(from, steps))
    })
    const shapes = new Map(items.map((item) => [shapeOf(item), item]))
    return [...shapes.values()].map((item) => `${JSON.stringify(item)} satisfies ${type},`)
  })
  expect(lines.length).toBeGreaterThan(100)
  // The last one shows that a field which no type has is found.
  const wrong = `{"role":"user","content":"x","usage":{}} satisfies ${TYPES.anthropic},`
  const program = await userProgram(['export const items = [', ...lines, wrong, ']'].join('\n'))
  onTestFinished(() => program.remove())
  const [said = []] = await compile([program])
  const found = said.map(({ line, text }) => ({ line: [...lines, wrong][line - 2], problem: text }))
  expect(found.filter(({ line }) => line !== wrong)).toEqual([])
  expect(found).toHaveLength(1)
})
