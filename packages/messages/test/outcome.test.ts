import { describe, expect, it } from 'vitest'
import { outcomeOf, verdictOf } from '../src/session/outcome.ts'

describe('an outcome', () => {
  it.each<readonly [Record<string, unknown>, 'failed' | 'passed' | undefined]>([
    [{ reward: 0 }, 'failed'],
    [{ reward: 1 }, 'passed'],
    [{ reward: 0.5 }, undefined],
    [{ success: false }, 'failed'],
    [{ run: { status: 'timed out' } }, 'failed'],
    [{ outcome: 'resolved' }, 'passed'],
    [{ outcome: 'running' }, undefined],
    // As SWE-bench, terminal-bench, GAIA, judges of programs, the Claude Agent SDK and CI say it.
    ...'solved Resolved fully_resolved correct accepted finished fixed success successful passing okay won achieved'
      .split(' ')
      .map((outcome) => [{ outcome }, 'passed'] as const),
    ...'unsolved not_solved unresolved not-resolved incorrect wrong_answer incomplete failing errored crash timed-out timeout expired killed gave_up stuck lost error_max_turns max_steps_reached budget_exceeded time_limit_exceeded'
      .split(' ')
      .map((outcome) => [{ outcome }, 'failed'] as const),
    ...'cancelled skipped partial pending queued submitted in_progress started'
      .split(' ')
      .map((outcome) => [{ outcome }, undefined] as const),
    [{ is_resolved: false }, 'failed'],
    [{ result: { correct: true } }, 'passed'],
    [{ is_error: true, subtype: 'error_during_execution' }, 'failed'],
    [{ exit_status: 'unresolved' }, 'failed'],
    [{ exit_code: 2 }, 'failed'],
    [{ error: '' }, undefined],
    [{ deep: { deeper: { reward: 0 } } }, undefined],
  ])('of configs %j is %s', (configs, verdict) => {
    expect(outcomeOf(configs)?.verdict).toBe(verdict)
  })

  it.each([
    [{ exit_status: 'Submitted' }, 'passed'],
    [{ run: { status: 'handed_over' }, model: 'm' }, 'failed'],
    // What a project says comes before what its configs seem to say.
    [{ success: true, status: 'handed_over' }, 'failed'],
    [{ status: 'done' }, 'failed'],
    [{ status: 'completed' }, 'passed'],
    [{ status: 'constructor' }, undefined],
    [{ note: 'submitted' }, undefined],
  ])('of configs %j is %s in the words of its project', (configs, verdict) => {
    const words = { submitted: 'passed', handed_over: 'failed', Done: 'failed' } as const
    expect(outcomeOf(configs, words)?.verdict).toBe(verdict)
    expect(verdictOf(['exit_status'], '"submitted"', words)).toBe('passed')
  })
})
