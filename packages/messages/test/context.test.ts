import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type ContextMessage,
  type ContextPlan,
  type ContextRules,
  contextMessage,
  planContext,
  repeatCut,
  textMessage,
} from '../src/context/index.js'
import type { MessageFormat } from '../src/formats.js'
import { arbitraryLog } from './arbitrary_log.ts'

const RULES: ContextRules = {
  tokens_max: 100,
  tokens_target: 60,
  results_kept: undefined,
  tools_excluded: new Set(['policy']),
  inputs_cleared: false,
}

const arbitraryRules = fc
  .record({
    tokens_max: fc.integer({ min: 20, max: 400 }),
    share: fc.double({ min: 0.1, max: 1, noNaN: true }),
    results_kept: fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined }),
  })
  .map(({ tokens_max, share, results_kept }) => ({
    ...RULES,
    tokens_max,
    tokens_target: Math.ceil(tokens_max * share),
    results_kept,
  }))

/** Plans as a reader does who reads ever more of the log, from its end. */
function planOf(log: readonly ContextMessage[], rules: ContextRules): ContextPlan {
  const is_longer = rules.results_kept === undefined && tokensOf(log) > rules.tokens_max
  for (let read = 2; ; read *= 2) {
    const messages = log.slice(-read)
    const ahead = log.slice(0, log.length - messages.length)
    const plan = planContext(
      { messages, may_grow: ahead.length > 0, is_longer, instruction_tokens: instructionTokens(ahead) },
      rules,
    )
    if (plan) return plan
  }
}

function repeat(
  log: readonly ContextMessage[],
  rules: ContextRules,
  cut: ContextPlan,
): ContextPlan | undefined {
  const ahead = log.filter(({ seq }) => seq < cut.from_seq)
  const messages = log.filter(({ seq }) => seq >= cut.from_seq || seq === cut.asked_seq)
  return repeatCut({ messages, instruction_tokens: instructionTokens(ahead) }, rules, cut)
}

function instructionTokens(messages: readonly ContextMessage[]): number {
  return messages.reduce((sum, { speaker, tokens }) => sum + (speaker === 'instruction' ? tokens : 0), 0)
}

function tokensOf(messages: readonly ContextMessage[]): number {
  return messages.reduce((sum, { tokens }) => sum + tokens, 0)
}

function shownOf(log: readonly ContextMessage[], plan: ContextPlan): ContextMessage[] {
  return log.filter(
    ({ seq, speaker }) => seq >= plan.from_seq || seq === plan.asked_seq || speaker === 'instruction',
  )
}

describe('a message that is one text', () => {
  it('is known as it is when it is parsed, and every other message is parsed', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('"', '\\', 'a"}', '\\"', '{"role": "user"}', ''),
    )
    const blobs = fc.record(
      {
        role: fc.constantFrom('user', 'assistant', 'system', 'tool'),
        content: fc.oneof(texts, fc.constant(null), fc.constant([])),
        refusal: texts,
      },
      { requiredKeys: ['role', 'content'] },
    )
    const formats = fc.constantFrom<MessageFormat>('openai', 'anthropic', 'gemini', 'acontext', 'responses')
    fc.assert(
      fc.property(blobs, formats, (blob, format) => {
        // As PostgreSQL writes it.
        const members = Object.entries(blob).map(([name, value]) => `"${name}": ${JSON.stringify(value)}`)
        const stored = { id: 'a', seq: 1, tokens: 2, format, blob: `{${members.join(', ')}}` }
        const known = textMessage(stored)
        const isText =
          Object.keys(blob).length === 2 &&
          typeof blob.content === 'string' &&
          /^user|assistant$/.test(blob.role)
        expect(known !== undefined).toBe(isText && format !== 'gemini' && format !== 'acontext')
        if (known) expect(known).toEqual({ ...contextMessage(stored), length: known.length })
      }),
    )
  })
})

describe('the plan of a context', () => {
  it('never parts a call from its result, and keeps every instruction', () => {
    fc.assert(
      fc.property(arbitraryLog, arbitraryRules, (log, rules) => {
        const shown = shownOf(log, planOf(log, rules))
        const called = new Set(shown.flatMap(({ calls }) => calls.map(({ id }) => id)))
        const answered = shown.flatMap(({ results }) => results.map(({ id }) => id))
        expect(new Set(answered)).toEqual(called)
        expect(shown.filter(({ speaker }) => speaker === 'instruction')).toEqual(
          log.filter(({ speaker }) => speaker === 'instruction'),
        )
      }),
    )
  })

  it('does not begin between a result and its call that was stored after it', () => {
    const one = (seq: number, speaker: ContextMessage['speaker'], calls: string[], results: string[]) => ({
      ...{ seq, tokens: 30, length: 100, speaker },
      calls: calls.map((id) => ({ id, name: 'look', length: 2 })),
      results: results.map((id) => ({ id, name: null, length: 2 })),
    })
    const log = [
      one(1, 'user', [], []),
      one(2, 'assistant', [], []),
      one(3, 'tool', [], ['a']),
      one(4, 'assistant', ['a'], []),
    ]
    const rules = { ...RULES, tokens_max: 80, tokens_target: 70 }
    expect(planOf(log, rules)).toMatchObject({ from_seq: 1 })
    const answered = [...log.slice(0, 2), one(3, 'tool', [], ['b']), log[3]!]
    expect(planOf(answered, rules)).toMatchObject({ from_seq: 4 })
  })

  it('begins with a user, instructions aside', () => {
    fc.assert(
      fc.property(arbitraryLog, arbitraryRules, (log, rules) => {
        const shown = shownOf(log, planOf(log, rules)).filter(({ speaker }) => speaker !== 'instruction')
        if (shown.length > 0) expect(['user', 'assistant']).toContain(shown[0]!.speaker)
        const inLastTurn = log.findLastIndex(({ speaker }) => speaker === 'user')
        if (shown.length > 0 && shown[0]!.seq > inLastTurn + 1)
          throw new Error('the last turn lost its question')
      }),
    )
  })

  it('shows everything that fits, and passes the limit only where one step alone is longer', () => {
    fc.assert(
      fc.property(arbitraryLog, arbitraryRules, (log, rules) => {
        const plan = planOf(log, rules)
        if (tokensOf(log) <= rules.tokens_max) expect(shownOf(log, plan)).toEqual(log)
        if (plan.tokens <= rules.tokens_max) return
        const followers = log.filter(({ seq }) => seq >= plan.from_seq)
        const steps = followers.filter(
          ({ speaker }, i) => speaker === 'assistant' && i > 0 && followers[i - 1]!.speaker === 'tool',
        )
        expect(steps).toEqual([])
      }),
    )
  })

  it('is the same however much of the log was read for it', () => {
    fc.assert(
      fc.property(arbitraryLog, arbitraryRules, (log, rules) => {
        const plan = planOf(log, rules)
        const whole = planContext(
          { messages: log, may_grow: false, is_longer: false, instruction_tokens: 0 },
          rules,
        )!
        expect(plan).toMatchObject({
          from_seq: whole.from_seq,
          asked_seq: whole.asked_seq,
          cleared_through_seq: whole.cleared_through_seq,
          tokens: whole.tokens,
        })
        for (const { seq } of shownOf(log, whole)) expect(plan.edits.get(seq)).toEqual(whole.edits.get(seq))
      }),
    )
  })

  it('keeps its cut while the log grows, until the limit is passed', () => {
    fc.assert(
      fc.property(arbitraryLog, arbitraryRules, fc.nat(), (log, rules, at) => {
        const earlier = log.slice(0, log.length === 0 ? 0 : 1 + (at % log.length))
        const plan = planOf(earlier, rules)
        const again = repeat(log, rules, plan)
        if (!again) return
        expect(again.tokens).toBeLessThanOrEqual(rules.tokens_max)
        expect(shownOf(log, again).slice(0, shownOf(earlier, plan).length)).toEqual(shownOf(earlier, plan))
        for (const [seq, edit] of again.edits) {
          if (seq <= earlier.length && shownOf(earlier, plan).some((shown) => shown.seq === seq))
            expect(edit).toEqual(plan.edits.get(seq))
        }
      }),
    )
  })

  it('clears all but the newest results, those of excluded tools aside', () => {
    const names = ['search', 'policy', 'search', 'search']
    const log: ContextMessage[] = names.flatMap((name, i) => [
      {
        seq: 2 * i + 1,
        tokens: 5,
        speaker: 'assistant',
        calls: [{ id: `c${i}`, name, length: 8 }],
        results: [],
        length: 20,
      },
      {
        seq: 2 * i + 2,
        tokens: 50,
        speaker: 'tool',
        calls: [],
        results: [{ id: `c${i}`, name, length: 200 }],
        length: 200,
      },
    ])
    const plan = planOf(log, { ...RULES, tokens_max: 1_000, tokens_target: 600, results_kept: 1 })
    expect([...plan.edits.keys()]).toEqual([2, 6])
    expect(plan.cleared_through_seq).toBe(6)
    expect(plan.edits.get(2)!.results).toEqual(['[result cleared: seq 2, 200 characters]'])
    expect(plan.tokens).toBeLessThan(170)
    const inputs = planOf(log, {
      ...RULES,
      tokens_max: 1_000,
      tokens_target: 600,
      results_kept: 1,
      inputs_cleared: true,
    })
    expect([...inputs.edits.keys()].sort()).toEqual([1, 2, 5, 6])
  })
})
