import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type FitOptions, FitToSend } from '../../packages/messages/src/fit/index.ts'
import { MESSAGE_FORMATS, type MessageFormat } from '../../packages/messages/src/index.ts'
import { conversation, toldIn } from '../../packages/messages/test/fit/conversations.ts'
import { brokenRules } from '../../packages/messages/test/fit/provider_rules.ts'
import { isValidFor } from '../../packages/messages/test/message_schemas.ts'
import { messageId } from '../../packages/messages/test/stored_run.ts'

/** Runs of a real agent, in OpenAI's format. They are not in this repository. */
const ROOT = new URL('../../', import.meta.url)
const RUNS = fileURLToPath(new URL(process.env.ANNALS_RUNS ?? '../shared/data/airline-runs.jsonl', ROOT))

function sentIn(from: MessageFormat, to: MessageFormat, blobs: readonly object[], options?: FitOptions) {
  const list = new FitToSend(to, options)
  for (const [i, blob] of blobs.entries())
    list.add({ id: messageId(i), parent_id: null, seq: i + 1, format: from, blob: JSON.stringify(blob) })
  return list.finish().items.map(({ json }) => JSON.parse(json) as object)
}

describe('the contexts of 300 conversations', () => {
  const corpus = fc.sample(conversation, { numRuns: 300, seed: 32 })

  it.each(MESSAGE_FORMATS)('are what the request schema of %s allows, whatever they were stored in', (to) => {
    for (const [nth, steps] of corpus.entries()) {
      const others = MESSAGE_FORMATS.filter((format) => format !== to)
      const from = others[nth % others.length]!
      for (const item of sentIn(from, to, toldIn(from, steps)))
        expect(isValidFor(to, item), JSON.stringify({ from, item })).toBe(true)
    }
  })
})

describe.skipIf(!existsSync(RUNS))('the recorded runs (skipped unless ANNALS_RUNS names a file)', () => {
  const runs = existsSync(RUNS)
    ? readFileSync(RUNS, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => (JSON.parse(line) as { messages: object[] }).messages)
    : []

  it.each(MESSAGE_FORMATS)('killed at any point and gone on with are fit to be sent in %s', (to) => {
    for (const [nth, messages] of runs.entries()) {
      const killed = messages.slice(0, 1 + ((nth * 7919) % messages.length))
      const resumed = [...killed, { role: 'user', content: 'Go on.' }, ...messages.slice(killed.length + 1)]
      for (const blobs of [killed, resumed]) expect(brokenRules(to, sentIn('openai', to, blobs))).toEqual([])
    }
  })
})
