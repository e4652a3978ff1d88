import fc from 'fast-check'
import type { ContextMessage } from '../src/context/index.js'

/** A log of turns: a user asks, the assistant takes steps of calls and results, and answers. */
export const arbitraryLog = fc
  .array(
    fc.record({
      instruction: fc.boolean(),
      asked: fc.integer({ min: 1, max: 30 }),
      steps: fc.array(
        fc.record({
          calls: fc.array(fc.constantFrom('search', 'policy'), { minLength: 1, maxLength: 3 }),
          tokens: fc.integer({ min: 4, max: 60 }),
        }),
        { maxLength: 6 },
      ),
    }),
    { maxLength: 8 },
  )
  .map((turns) => {
    const log: ContextMessage[] = []
    const add = (speaker: ContextMessage['speaker'], tokens: number, more: Partial<ContextMessage> = {}) =>
      log.push({ seq: log.length + 1, tokens, speaker, calls: [], results: [], length: tokens * 4, ...more })
    let n = 0
    for (const { instruction, asked, steps } of turns) {
      if (instruction) add('instruction', 3)
      add('user', asked)
      for (const { calls, tokens } of steps) {
        const made = calls.map((name) => ({ id: `call_${n++}`, name, length: 8 }))
        add('assistant', 5, { calls: made })
        for (const { id, name } of made) add('tool', tokens, { results: [{ id, name, length: tokens * 4 }] })
      }
      add('assistant', 5)
    }
    return log
  })
