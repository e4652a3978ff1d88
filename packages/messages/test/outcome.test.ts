import { describe, expect, it } from 'vitest'
import { outcomeOf, verdictOf } from '../src/session/outcome.ts'

describe('an outcome', () => {
  it.each([
    [{ reward: 0 }, 'failed'],
    [{ reward: 1 }, 'passed'],
    [{ reward: 0.5 }, undefined],
    [{ success: false }, 'failed'],
    [{ run: { status: 'timed out' } }, 'failed'],
    [{ outcome: 'resolved' }, 'passed'],
    [{ outcome: 'running' }, undefined],
    [{ exit_code: 2 }, 'failed'],
    [{ error: '' }, undefined],
    [{ deep: { deeper: { reward: 0 } } }, undefined],
  ])('of configs %j is %s', (configs, verdict) => {
    expect(outcomeOf(configs)?.verdict).toBe(verdict)
  })

  it.each([
    [{ exit_status: 'Submitted' }, 'passed'],
    [{ run: { status: 'gave_up' }, model: 'm' }, 'failed'],
    // What a project says comes before what its configs seem to say.
    [{ success: true, status: 'gave_up' }, 'failed'],
    [{ status: 'done' }, 'failed'],
    [{ status: 'completed' }, 'passed'],
    [{ status: 'constructor' }, undefined],
    [{ note: 'submitted' }, undefined],
  ])('of configs %j is %s in the words of its project', (configs, verdict) => {
    const words = { submitted: 'passed', gave_up: 'failed', Done: 'failed' } as const
    expect(outcomeOf(configs, words)?.verdict).toBe(verdict)
    expect(verdictOf(['exit_status'], '"submitted"', words)).toBe('passed')
  })
})
