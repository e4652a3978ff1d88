import { describe, expect, it } from 'vitest'
import { answerOf, ModelFailure, nextState, parseAnswer, wrongSkillPaths } from '../src/index.ts'

describe('a statement', () => {
  const none = { sessions: 0, users: 0 }
  const proposed = {
    kind: 'pitfall',
    state: 'proposed',
    author: 'model',
    marker: null,
    contradicts: 0,
    supporters: { sessions: 2, users: 2 },
    contradictors: none,
  }
  const shared = { is_auto: true, is_of_user: false }

  it.each([
    ['of a model becomes active by the sessions of two users', {}, shared, 'active'],
    ['stays in a space where persons decide', {}, { ...shared, is_auto: false }, undefined],
    ['stays if one user supports it', { supporters: { sessions: 2, users: 1 } }, shared, undefined],
    [
      'becomes active in a space of that user',
      { supporters: { sessions: 2, users: 1 } },
      { ...shared, is_of_user: true },
      'active',
    ],
    ['of rules stays', { author: 'rule' }, shared, undefined],
    ['that a session contradicts stays', { contradicts: 1 }, shared, undefined],
    ['that is a procedure without a tool stays', { kind: 'procedure' }, shared, undefined],
    [
      'that is a procedure needs evidence',
      { kind: 'procedure', marker: 'pay' },
      shared,
      { active_if_evident: 'pay' },
    ],
    ['that is active stays, however many support it', { state: 'active' }, shared, undefined],
    [
      'that is active comes into conflict, whoever decides',
      { state: 'active', contradictors: { sessions: 2, users: 2 } },
      { ...shared, is_auto: false },
      'conflict',
    ],
  ])('%s', (_, changes, space, state) => {
    expect(nextState({ ...proposed, ...changes }, space)).toEqual(state)
  })
})

it("a model's answer is taken whatever shape it has, without what PostgreSQL cannot hold", () => {
  const prompt = { system: 'Ask.', user: 'Me.' }
  for (const completion of [null, 'page', [], {}, { choices: {} }, { choices: [null] }, { usage: 1 }])
    expect(() => answerOf(completion, prompt)).toThrow(ModelFailure)
  expect(parseAnswer('{"a":"x\\u0000\\ud800"}')).toEqual({ a: 'x\uFFFD\uFFFD' })
  expect(parseAnswer('{')).toBeUndefined()
})

it.each([2 ** 53, 1e300, -1, 1.5, Number.NaN, '7', null])(
  'a cost that a model’s server makes up, %s, counts as what was sent and said',
  (count) => {
    const prompt = { system: 'Ask.', user: 'Me.' }
    const choices = [{ message: { content: 'An answer of some words.' } }]
    const honest = answerOf({ choices }, prompt)
    expect(honest.tokens_in).toBeGreaterThan(0)
    expect(honest.tokens_out).toBeGreaterThan(0)
    expect(answerOf({ choices, usage: { prompt_tokens: count, completion_tokens: count } }, prompt)).toEqual(
      honest,
    )
  },
)

it('paths of a skill that some system cannot hold together are named', () => {
  expect(wrongSkillPaths(['SKILL.md', 'a/b.md'])).toBeUndefined()
  expect(wrongSkillPaths(['SKILL.md', 'A', 'a'])).toBe('"a" is there twice, letter case aside')
  expect(wrongSkillPaths(['SKILL.md', 'a', 'a/b'])).toBe('"a" is both a file and a folder')
  expect(wrongSkillPaths(['a/SKILL.md'])).toBe('it has no SKILL.md at its top level or in its only folder')
})
