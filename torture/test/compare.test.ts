import { describe, expect, it } from 'vitest'
import { compare, type Findings, type StoredSession } from '../check/compare.ts'
import { Journal } from '../check/journal.ts'

const SESSION = 'session-a'
const NOTHING: Findings = { lost: [], duplicated: [], reordered: [], unasked: [], broken: [] }

/** A journal of three acknowledged events and a batch of two, and the database that agrees with it. */
function agreement(): { journal: Journal; stored: StoredSession } {
  const journal = new Journal()
  journal.sessions.push({ marker: 's', project_id: 'p', fate: 'acknowledged', session_id: SESSION })
  for (const seq of [1, 2, 3]) {
    journal.acknowledge(journal.send(SESSION, [`m${seq}`]), [{ seq, id: `id-${seq}` }])
  }
  journal.acknowledge(journal.send(SESSION, ['m4', 'm5']), [
    { seq: 4, id: 'id-4' },
    { seq: 5, id: 'id-5' },
  ])
  const entries = [1, 2, 3, 4, 5].map((seq) => ({
    seq,
    id: `id-${seq}`,
    marker: `m${seq}`,
    created_at: 1_000 + seq,
    tokens: 1,
    is_message: seq === 2,
    is_retraction: false,
    retracted_by: null,
  }))
  const head = { last_seq: 5, total_tokens: 5, updated_at: 1_005, last_message_id: 'id-2' }
  return { journal, stored: { project_id: 'p', session_id: SESSION, marker: 's', head, entries } }
}

/** What is found when the agreement is disturbed in one way. */
function disturbed(change: (stored: StoredSession, journal: Journal) => void): Findings {
  const { journal, stored } = agreement()
  change(stored, journal)
  return compare(journal, [stored])
}

describe('the comparison of journals with the database', () => {
  it('finds nothing where they agree', () => {
    expect(disturbed(() => {})).toEqual(NOTHING)
  })

  it('finds an acknowledged entry that is not there', () => {
    const { lost } = disturbed(({ entries, head }) => {
      entries.splice(2, 1)
      entries.forEach((entry, index) => {
        entry.seq = index + 1
      })
      head.last_seq = 4
      head.total_tokens = 4
    })
    expect(lost).toEqual([`m3 was acknowledged at ${SESSION}/3 and is nowhere`])
  })

  it('finds input that was taken and is nowhere, and a write under a fence that came late', () => {
    const { lost, broken } = disturbed(({ entries }, journal) => {
      const input = journal.send(SESSION, ['i1'])
      input.fate = 'acknowledged'
      journal.inputs.push(input)
      entries.slice(0, 3).forEach((entry, index) => {
        entry.fence = [1, 2, 1][index]!
      })
    })
    expect(lost).toEqual([`i1 was taken for ${SESSION} and is nowhere`])
    expect(broken).toEqual([`${SESSION}/3 was written under 1, after 2`])
  })

  it('finds a request to two sessions of which only one has its part', () => {
    const { lost } = disturbed(({ entries, head }, journal) => {
      journal.sendTogether([
        { session_id: SESSION, markers: ['m6'] },
        { session_id: 'session-b', markers: ['n1'] },
      ])
      entries.push({ ...entries[0]!, seq: 6, id: 'id-6', marker: 'm6', created_at: 1_006 })
      Object.assign(head, { last_seq: 6, total_tokens: 6, updated_at: 1_006 })
    })
    expect(new Set(lost)).toEqual(new Set(['of the batch m6, n1 only m6 is there']))
  })

  it('finds configs that were merged without the entries, and entries that were stored without them', () => {
    for (const [touched, touches] of [
      ['m3', undefined],
      [undefined, 'm3'],
    ] as const) {
      const { broken } = disturbed((stored, journal) => {
        stored.touched = touched
        if (touches) journal.appends[2]!.touches = touches
      })
      expect(broken).toEqual([
        `the configs of ${SESSION} were touched by ${touched}, and its entries by ${touches}`,
      ])
    }
  })

  it('finds an acknowledged session that is not there', () => {
    const { journal } = agreement()
    expect(compare(journal, []).lost).toContain(`session ${SESSION} (s) was acknowledged and is not there`)
  })

  it('finds an entry that is there twice', () => {
    const { duplicated } = disturbed(({ entries, head }) => {
      entries.push({ ...entries[4]!, seq: 6, id: 'id-6' })
      head.last_seq = 6
      head.total_tokens = 6
    })
    expect(duplicated).toEqual([`m5 is at ${SESSION}/5 and at ${SESSION}/6`])
  })

  it('finds an entry at another seq, and under another id, than was acknowledged', () => {
    const swapped = disturbed(({ entries }) => {
      entries[0]!.marker = 'm2'
      entries[1]!.marker = 'm1'
    })
    expect(swapped.reordered).toContain(`m1 was acknowledged at ${SESSION}/1 and is at ${SESSION}/2`)
    const renamed = disturbed(({ entries }) => {
      entries[0]!.id = 'another'
    })
    expect(renamed.reordered).toHaveLength(1)
  })

  it('finds an entry that stands before one that was acknowledged before it was sent', () => {
    const { reordered } = disturbed(({ entries }, journal) => {
      // Sent last, in doubt, so that no seq of its own was told; it stands first.
      const late = journal.send(SESSION, ['late'])
      late.fate = 'in_doubt'
      late.first_sent_at = performance.now() + 1
      entries[0]!.marker = 'late'
      journal.appends.shift()
    })
    expect(reordered).toEqual([`m2 of ${SESSION} was acknowledged before late was sent and stands behind it`])
  })

  it('finds a batch of which only a part is there', () => {
    const { lost } = disturbed(({ entries }) => {
      entries.pop()
    })
    expect(lost).toContain('of the batch m4, m5 only m4 is there')
  })

  it('finds what was refused and is there, and what nobody sent', () => {
    const { unasked } = disturbed(({ entries, head }, journal) => {
      journal.send(SESSION, ['refused']).fate = 'refused'
      for (const marker of ['refused', 'foreign']) {
        const seq = entries.length + 1
        entries.push({ ...entries[4]!, seq, id: `id-${seq}`, marker })
        head.last_seq = seq
        head.total_tokens = seq
      }
    })
    expect(unasked).toEqual([
      'refused was refused and is there',
      `nobody sent foreign, which is at ${SESSION}/7`,
    ])
  })

  it('takes an entry in doubt as it comes: there once, or not at all', () => {
    for (const is_there of [false, true]) {
      const findings = disturbed(({ entries, head }, journal) => {
        journal.send(SESSION, ['doubtful']).fate = 'in_doubt'
        if (!is_there) return
        entries.push({ ...entries[4]!, seq: 6, id: 'id-6', marker: 'doubtful' })
        head.last_seq = 6
        head.total_tokens = 6
      })
      expect(findings).toEqual(NOTHING)
    }
  })

  it('finds gaps, times that go back, and heads that disagree', () => {
    expect(disturbed(({ entries }) => void Object.assign(entries[4]!, { seq: 7 })).broken).toContain(
      `${SESSION} has seq 7 where 5 should be`,
    )
    expect(disturbed(({ entries }) => void Object.assign(entries[3]!, { created_at: 1 })).broken).toEqual([
      `${SESSION}/4 has an earlier created_at than the entry before it`,
    ])
    for (const [name, value] of Object.entries({ last_seq: 9, total_tokens: 9, updated_at: 9 })) {
      expect(disturbed(({ head }) => void Object.assign(head, { [name]: value })).broken).toEqual([
        `the head of ${SESSION} disagrees on ${name}`,
      ])
    }
    expect(disturbed(({ head }) => void Object.assign(head, { last_message_id: null })).broken).toHaveLength(
      1,
    )
  })
})

describe('the journal of a reader', () => {
  const at = (seq: number, id = `id-${seq}`) => ({ seq, id, marker: `m${seq}` })

  it('has every entry once and in order, or says what was lost and what came twice', () => {
    const journal = new Journal()
    journal.follow(SESSION, 0, at(1), 'tail')
    journal.follow(SESSION, 1, at(2), 'tail')
    expect([journal.lost, journal.duplicated, journal.reordered]).toEqual([[], [], []])
    journal.follow(SESSION, 2, at(4), 'tail')
    expect(journal.lost).toHaveLength(1)
    journal.follow(SESSION, 4, at(4), 'tail')
    expect(journal.duplicated).toHaveLength(1)
    journal.follow(SESSION, 3, at(4, 'another'), 'reader')
    expect(journal.reordered).toHaveLength(1)
  })

  it('is held against the database, too', () => {
    const { lost, reordered } = disturbed((_stored, journal) => {
      journal.see(SESSION, { seq: 9, id: 'id-9', marker: 'm9' }, 'reader')
      journal.see(SESSION, { seq: 3, id: 'id-x', marker: 'm3' }, 'reader')
    })
    expect(lost).toEqual([`m9 was read at ${SESSION}/9, where nothing is`])
    expect(reordered).toEqual([`m3 was read at ${SESSION}/3, where m3 is`])
  })
})
