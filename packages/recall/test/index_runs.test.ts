import fc from 'fast-check'
import { expect, it } from 'vitest'
import { joinRuns, type IndexedRun as Run, rebuiltFrom } from '../src/index.js'

const SESSIONS = ['a', 'b']

/** An entry as a run of its own: its line says which one it is. */
function entry(session_id: string, seq: number, segment: number, length: number): Run {
  const at = `t${String(seq).padStart(6, '0')}`
  return {
    session_id,
    seq,
    last_seq: seq,
    segment,
    first_at: at,
    last_at: at,
    words: `${seq}${'.'.repeat(length)}`,
  }
}

/** Pieces of a log as they come: how many entries each has, and how long these are. */
const anyPieces = fc.array(
  fc.record({
    entries: fc.integer({ min: 1, max: 40 }),
    length: fc.oneof({ weight: 6, arbitrary: fc.constant(10) }, fc.constant(20_000), fc.constant(40_000)),
    segment: fc.integer({ min: 0, max: 1 }),
  }),
  { minLength: 1, maxLength: 12 },
)

it('a log that comes in any pieces becomes few runs that have each entry once, in its line, written three times at most', () => {
  fc.assert(
    fc.property(anyPieces, (pieces) => {
      let table: Run[] = []
      let after_seq = 0
      let written = 0
      for (const { entries, length, segment } of pieces) {
        const last_seq = after_seq + entries
        const from = rebuiltFrom(after_seq, last_seq)
        const taken = table.filter(({ seq }) => seq >= from)
        const added = SESSIONS.flatMap((session) =>
          Array.from({ length: entries }, (_, n) => entry(session, after_seq + 1 + n, segment, length)),
        )
        const joined = joinRuns([...taken, ...added])
        written += joined.reduce((sum, run) => sum + run.last_seq - run.seq + 1, 0)
        table = [...table.filter(({ seq }) => seq < from), ...joined]
        after_seq = last_seq
      }
      for (const session of SESSIONS) {
        const runs = table
          .filter(({ session_id }) => session_id === session)
          .toSorted((run, other) => run.seq - other.seq)
        const lines = runs.flatMap(({ words }) => words.split('\n').map(Number.parseFloat))
        expect(lines).toEqual(Array.from({ length: after_seq }, (_, n) => n + 1))
        for (const { seq, last_seq, first_at, last_at, words } of runs) {
          expect([first_at, last_at]).toEqual([
            `t${String(seq).padStart(6, '0')}`,
            `t${String(last_seq).padStart(6, '0')}`,
          ])
          expect(words.split('\n')).toHaveLength(last_seq - seq + 1)
          expect(last_seq === seq || words.length <= 32 * 1024).toBe(true)
          expect(last_seq - seq).toBeLessThan(16)
        }
      }
      expect(written).toBeLessThanOrEqual(3 * SESSIONS.length * after_seq)
    }),
    { numRuns: 40 },
  )
})

it('entries that come one by one end up in runs of 16, and after these of 4', () => {
  let table: Run[] = []
  for (let seq = 1; seq <= 42; seq++) {
    const from = rebuiltFrom(seq - 1, seq)
    const joined = joinRuns([...table.filter((run) => run.seq >= from), entry('a', seq, 0, 10)])
    table = [...table.filter((run) => run.seq < from), ...joined]
  }
  expect(table.map(({ seq, last_seq }) => [seq, last_seq])).toEqual([
    [1, 16],
    [17, 32],
    [33, 36],
    [37, 40],
    [41, 41],
    [42, 42],
  ])
})
