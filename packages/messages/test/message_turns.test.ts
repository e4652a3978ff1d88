import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MessageTurns } from '../src/context/message_turns.ts'
import { MESSAGE_FORMATS } from '../src/formats.ts'

interface Said {
  format: string
  role: string
  seq: number
  json: string
}

const messages = fc
  .array(
    fc.record({
      format: fc.constantFrom('responses', 'openai'),
      role: fc.constantFrom('user', 'assistant'),
      length: fc.constantFrom(2, 2, 100_000),
      times: fc.constantFrom(1, 1, 1, 150),
    }),
    { maxLength: 12 },
  )
  .map((kinds) => kinds.flatMap((kind) => Array<typeof kind>(kind.length > 2 ? 1 : kind.times).fill(kind)))
  .map((kinds) => kinds.map(({ length, ...kind }, seq): Said => ({ ...kind, seq, json: 'x'.repeat(length) })))

function turnsOf(format: (typeof MESSAGE_FORMATS)[number], pieces: Said[][]): Said[][] {
  const turns = new MessageTurns<Said>(format)
  return [...pieces.flatMap((piece) => turns.add(piece)), ...turns.end()]
}

describe('the messages of a session', () => {
  it('are divided into the same turns in whatever pieces they come, each once and in order', () => {
    fc.assert(
      fc.property(
        messages,
        fc.array(fc.nat({ max: 300 })),
        fc.constantFrom(...MESSAGE_FORMATS),
        (log, cuts, format) => {
          const ends = [...cuts, log.length].sort((a, b) => a - b)
          const pieces = ends.map((end, at) => log.slice(ends[at - 1] ?? 0, end))
          const turns = turnsOf(format, pieces)
          expect(turns).toEqual(turnsOf(format, [log]))
          expect(turns.flat()).toEqual(log)
        },
      ),
    )
  })

  it('are joined where the model’s items follow each other, up to 128 and 256 KiB, for providers with whole turns', () => {
    fc.assert(
      fc.property(messages, (log) => {
        for (const format of ['acontext', 'responses'] as const)
          expect(turnsOf(format, [log])).toEqual(log.map((message) => [message]))
        const turns = turnsOf('openai', [log])
        const isModels = (message: Said) => message.format === 'responses' && message.role === 'assistant'
        const lengthOf = (turn: Said[]) => turn.reduce((sum, { json }) => sum + json.length, 0)
        for (const [index, turn] of turns.entries()) {
          const next = turns[index + 1]?.[0]
          expect(turn.length === 1 || turn.every(isModels)).toBe(true)
          expect(turn.length).toBeLessThanOrEqual(128)
          if (turn.length > 1) expect(lengthOf(turn)).toBeLessThanOrEqual(256 * 1024)
          if (next && isModels(next) && turn.every(isModels) && turn.length < 128)
            expect(lengthOf([...turn, next])).toBeGreaterThan(256 * 1024)
        }
      }),
    )
  })
})
