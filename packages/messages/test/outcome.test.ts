import { describe, expect, it } from 'vitest'
import { outcomeOf } from '../src/session/outcome.ts'

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
})
