import type { Session } from '@annals/client'
import { describe, expect, it } from 'vitest'
import { byAgent, quantileOf, type Run } from '../src/activity/run_figures.ts'

function run(configs: Session['configs'], failures: number): Run {
  const session = { id: JSON.stringify(configs), configs } as Session
  const counts = {
    last_seq: 4,
    total_tokens: 10,
    duration_ms: 7,
    calls: 3,
    failures,
    is_whole: true,
    summary: null,
  }
  return { session, figures: { session_id: session.id, title: null, began_at: null, ...counts } }
}

describe('the figures of runs', () => {
  it('add up by agent, and count as failed only what configs tell', () => {
    const runs = [
      run({ agent: 'a', outcome: 'failed' }, 1),
      run({ agent: 'a' }, 0),
      run({ agent: { id: 1 } }, 0),
    ]
    expect(byAgent(runs, 'agent')).toMatchObject([
      { name: 'a', sessions: 2, known: 1, failed: 1, tokens: 20, calls: 6, failures: 1 },
      { name: 'no agent', sessions: 1, known: 0, failed: 0 },
    ])
  })

  it('count as failed what the words of the project say', () => {
    const runs = [
      run({ agent: 'a', exit_status: 'submitted' }, 0),
      run({ agent: 'a', status: 'handed_over' }, 0),
    ]
    const words = { submitted: 'passed', handed_over: 'failed' } as const
    expect(byAgent(runs, 'agent', words)).toMatchObject([{ known: 2, failed: 1 }])
  })

  it('have quantiles that are among the values', () => {
    expect([0.5, 0.95].map((share) => quantileOf([3, 1, 2, 4], share))).toEqual([2, 4])
    expect(quantileOf([], 0.5)).toBeUndefined()
  })
})
