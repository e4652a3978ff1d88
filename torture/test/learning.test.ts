import { describe, expect, it } from 'vitest'
import { Learning } from '../check/learning.ts'
import type { Lessons } from '../clients/surroundings.ts'
import type { Postgres } from '../world/postgres.ts'

const SESSION = { space_id: 'space', session_id: 'session', status: 'completed', error: null, is_whole: true }
const ONCE = { reflections: ['b'], by_rules: 1, own: 1, shared: 1 }
const WELL = {
  learnt: [{ ...SESSION, ...ONCE }],
  marks: [] as object[],
  inputs: [{ hash: 'a' }],
  versions: [{ id: 'skill', versions: 2, sizes: [1, 2], active: 2 }],
}

/** What the check says of a database with these rows, after an input was sent, and others without the session's outcome. */
async function foundIn(rows: typeof WELL, sent: string, early: string[] = []) {
  const model = { sent: early.map((hash) => ({ hash, at: -1, with_outcome: false })) }
  let looks = 0
  const ask = async (statement: string) => {
    if (statement.includes('FROM skills')) return rows.versions
    if (statement.includes('FROM unnest')) return rows.learnt
    if (statement.includes('FROM change_marks')) return rows.marks
    if (statement.includes("'answered'")) looks += 1
    return rows.inputs
  }
  const lessons = {
    tenant: { project_id: 'project' },
    space_ids: ['space'],
    model,
    sessions: [SESSION],
  }
  const learning = new Learning({ ask } as unknown as Postgres, lessons as unknown as Lessons)
  await expect.poll(() => looks).toBeGreaterThan(0)
  model.sent.push({ hash: sent, at: sent === 'b' ? 10 : Infinity, with_outcome: true })
  return learning.problems(0)
}

describe.concurrent('the check of learning spaces', () => {
  it('finds nothing where each session was learnt once', async () => {
    expect(await foundIn({ ...WELL, inputs: [{ hash: 'b' }] }, 'b')).toEqual([])
  })

  it('finds nothing where a session seemed to be quiet before it had its outcome', async () => {
    const learnt = [{ ...WELL.learnt[0]!, reflections: ['a', 'b'], own: 2 }]
    const rows = { ...WELL, learnt, inputs: [{ hash: 'a' }, { hash: 'b' }] }
    expect(await foundIn(rows, 'b', ['a'])).toEqual([])
    expect(await foundIn(rows, 'b')).toEqual([expect.stringContaining('has 2 reflections')])
    // Only then.
    const only = { ...WELL, learnt: [{ ...WELL.learnt[0]!, reflections: ['a'] }], inputs: rows.inputs }
    expect(await foundIn(only, 'b', ['a'])).toEqual([expect.stringContaining('has 1 reflections')])
  })

  it.each([
    [
      'a session that was not learnt',
      { learnt: [{ ...WELL.learnt[0]!, status: 'queued' }] },
      'was not learnt by',
    ],
    ['a mark that was left', { marks: [{ session_id: 'session' }] }, 'has a mark that learning'],
    ['a session that was learnt twice', { learnt: [{ ...WELL.learnt[0]!, own: 2 }] }, 'has 2 own of session'],
    [
      'a session about which the model was asked twice',
      { learnt: [{ ...WELL.learnt[0]!, reflections: ['b', 'c'], own: 2 }] },
      'has 2 reflections of session',
    ],
    ['a statement that was lost', { learnt: [{ ...WELL.learnt[0]!, shared: 0 }] }, 'has 0 shared of session'],
    ['a call outside the ledger', { inputs: [] }, 'is not in the ledger'],
    [
      'a version that is missing',
      { versions: [{ id: 'skill', versions: 2, sizes: [1, 3], active: 3 }] },
      'of 1, 3',
    ],
  ])('finds %s', async (_, rows, said) => {
    expect(await foundIn({ ...WELL, inputs: [{ hash: 'b' }], ...rows }, 'b')).toEqual([
      expect.stringContaining(said),
    ])
  })

  it('finds an input that was sent again after its answer', async () => {
    expect(await foundIn(WELL, 'a')).toEqual([expect.stringContaining('after its answer was in the ledger')])
  })
})
