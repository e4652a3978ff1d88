import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { MESSAGE_FORMATS, readMessage } from '../src/index.js'
import { isValidFor } from './message_schemas.js'
import { rendered, storedAs } from './stored_run.js'
import { whatWasSaid } from './what_was_said.js'

/** Runs of a real agent, one JSON object `{ messages }` a line, in OpenAI's format. They are not in this repository. */
const ROOT = new URL('../../../', import.meta.url)
const RUNS = fileURLToPath(new URL(process.env.ANNALS_RUNS ?? '../shared/data/airline-runs.jsonl', ROOT))

type ChatMessage = { role: string; content: unknown; tool_calls?: unknown[]; name?: string }

/** A JPEG's first bytes, and some of each value. */
const IMAGE = Buffer.from([0xff, 0xd8, 0xff, 0xe0, ...Array.from({ length: 256 }, (_, byte) => byte)])
const image_url = { url: `data:image/jpeg;base64,${IMAGE.toString('base64')}`, detail: 'auto' }

/** The run with an image in each of the user's messages. */
function withImages(messages: ChatMessage[]): ChatMessage[] {
  return messages.map((message) => {
    const text = { type: 'text', text: message.content }
    return message.role === 'user'
      ? { ...message, content: [text, { type: 'image_url', image_url }] }
      : message
  })
}

describe.skipIf(!existsSync(RUNS))(`the recorded runs (skipped unless ANNALS_RUNS names a file)`, () => {
  const runs = existsSync(RUNS)
    ? readFileSync(RUNS, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => (JSON.parse(line) as { messages: ChatMessage[] }).messages)
        .flatMap((messages) => [messages, withImages(messages)])
    : []

  it('are there', () => {
    expect(runs.length).toBeGreaterThan(0)
  })

  it.each(MESSAGE_FORMATS.filter((format) => format !== 'openai'))(
    'keep every call, result and text in %s, one item a message, and back again',
    (to) => {
      for (const messages of runs) {
        const stored = storedAs('openai', messages)
        const said = whatWasSaid(messages.map((message) => readMessage('openai', message)))
        const there = rendered(stored, to)
        expect(there).toHaveLength(to === 'responses' ? itemsOf(messages) : messages.length)
        for (const message of there) expect(isValidFor(to, message)).toBe(true)
        expect(whatWasSaid(there.map((message) => readMessage(to, message)))).toStrictEqual(said)
        expect(imagesIn(there)).toBe(imagesIn(messages))
        const back = rendered(storedAs(to, there), 'openai')
        expect(whatWasSaid(back.map((message) => readMessage('openai', message)))).toStrictEqual(said)
        expect(imagesIn(back)).toBe(imagesIn(messages))
      }
    },
  )

  it.each(['acontext', 'responses'] as const)('come back message for message from %s', (to) => {
    for (const messages of runs) {
      const there = rendered(storedAs('openai', messages), to)
      const back = rendered(storedAs(to, inTurns(there)), 'openai')
      // The name of a result's function is the call's, and OpenAI has no place for it.
      expect(back).toStrictEqual(messages.map(({ name: _, ...message }) => message))
    }
  })

  it('come back whole', () => {
    for (const messages of runs) {
      expect(rendered(storedAs('openai', messages), 'openai')).toStrictEqual(messages)
    }
  })
})

/** Items of the Responses API that a run becomes: a reply's text and each of its calls are items of their own. */
function itemsOf(messages: ChatMessage[]): number {
  return messages.reduce(
    (sum, { content, tool_calls = [] }) =>
      sum + tool_calls.length + (tool_calls.length === 0 || content ? 1 : 0),
    0,
  )
}

function imagesIn(messages: readonly unknown[]): number {
  return JSON.stringify(messages).split(IMAGE.toString('base64')).length - 1
}

/** The items of each turn as one, as the service reads them for a provider that has whole turns. */
function inTurns(items: unknown[]): unknown[] {
  const turns: unknown[] = []
  for (const item of items as { type?: string; role?: string }[]) {
    const turn = turns.at(-1)
    const isModels = item.type === 'function_call' || (item.type === 'message' && item.role === 'assistant')
    if (isModels && Array.isArray(turn)) turn.push(item)
    else turns.push(isModels ? [item] : item)
  }
  return turns
}
