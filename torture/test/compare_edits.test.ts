import { describe, expect, it } from 'vitest'
import { compare, type Findings, type StoredEntry, type StoredSession } from '../check/compare.ts'
import { Journal } from '../check/journal.ts'

const [SESSION, FORK] = ['session-a', 'session-b']
const NOTHING: Findings = { lost: [], duplicated: [], reordered: [], unasked: [], broken: [] }

function entry(seq: number, more: Partial<StoredEntry> = {}): StoredEntry {
  const marker = `m${seq}`
  const flags = { is_message: false, is_retraction: false, retracted_by: null }
  return { seq, id: `id-${seq}`, marker, created_at: seq, tokens: 1, ...flags, ...more }
}

function session(session_id: string, entries: StoredEntry[]): StoredSession {
  const total_tokens = entries.filter(({ retracted_by }) => retracted_by === null).length
  const head = { last_seq: entries.length, total_tokens, updated_at: 9, last_message_id: null }
  return { project_id: 'p', session_id, marker: session_id, head, entries }
}

/**
 * Three events, of which `{ last: 2 }` retracted two, an event after it, and a fork up to seq 3: a journal, and the
 * database that agrees with it unless it is changed.
 */
function disturbed(
  change: (original: StoredSession, fork: StoredSession, journal: Journal) => void,
): Findings {
  const journal = new Journal()
  for (const session_id of [SESSION, FORK])
    journal.sessions.push({ marker: session_id, project_id: 'p', fate: 'acknowledged', session_id })
  const retraction = `retraction ${SESSION}/4`
  for (const [seq, marker] of [[1], [2], [3], [4, retraction], [5]] as const)
    journal.acknowledge(journal.send(SESSION, [marker ?? `m${seq}`]), [{ seq, id: `id-${seq}` }])
  journal.retractions.push({ session_id: SESSION, seq: 4, asked: { last: 2 }, seqs: [3, 2] })
  journal.forks.push({ session_id: FORK, of: SESSION, up_to_seq: 3 })
  const original = session(SESSION, [
    entry(1),
    entry(2, { retracted_by: 4 }),
    entry(3, { retracted_by: 4 }),
    entry(4, { marker: retraction, is_retraction: true }),
    entry(5),
  ])
  const fork = session(FORK, [entry(1), entry(2), entry(3)])
  change(original, fork, journal)
  return compare(journal, [original, fork])
}

describe('the comparison of retractions and forks with the database', () => {
  it('finds nothing where they agree', () => {
    expect(disturbed(() => {})).toEqual(NOTHING)
  })

  it('finds an entry that is marked though another one was answered', () => {
    const { reordered } = disturbed(({ entries }) => {
      Object.assign(entries[0]!, { retracted_by: 4 })
      Object.assign(entries[2]!, { retracted_by: null })
    })
    expect(reordered).toContain(`${SESSION}/4 retracted 2, 3, and 1, 2 are marked`)
  })

  it('finds a retraction that passed over the last entry', () => {
    const { reordered } = disturbed(({ entries }, _fork, { retractions }) => {
      for (const seq of [1, 2, 3]) entries[seq - 1]!.retracted_by = seq < 3 ? 4 : null
      retractions[0]!.seqs = [1, 2]
    })
    expect(reordered).toEqual([`${SESSION}/4 retracted 1, 2 where 2, 3 was due`])
  })

  it('finds a fork that has less than its original, more, or other marks', () => {
    expect(disturbed((_, fork) => void fork.entries.pop()).lost).toHaveLength(1)
    expect(disturbed((_, fork) => void fork.entries.push(entry(4))).unasked).toHaveLength(1)
    expect(disturbed((_, fork) => void Object.assign(fork.entries[1]!, { retracted_by: 4 })).lost).toEqual([
      `the fork ${FORK} of ${SESSION} differs at seq 2`,
    ])
  })
})
