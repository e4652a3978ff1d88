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

describe.skipIf(!existsSync(RUNS))(`the recorded runs (skipped unless ANNALS_RUNS names a file)`, () => {
  const runs = existsSync(RUNS)
    ? readFileSync(RUNS, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => (JSON.parse(line) as { messages: object[] }).messages)
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
        expect(there).toHaveLength(messages.length)
        for (const message of there) expect(isValidFor(to, message)).toBe(true)
        expect(whatWasSaid(there.map((message) => readMessage(to, message)))).toStrictEqual(said)
        const back = rendered(storedAs(to, there), 'openai')
        expect(whatWasSaid(back.map((message) => readMessage('openai', message)))).toStrictEqual(said)
      }
    },
  )

  it('come back whole', () => {
    for (const messages of runs) {
      expect(rendered(storedAs('openai', messages), 'openai')).toStrictEqual(messages)
    }
  })
})
