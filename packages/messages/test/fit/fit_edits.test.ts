import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type ContextRules,
  contextMessage,
  EditedMessages,
  type EditStrategy,
  planContext,
  repeatCut,
  type StoredSeq,
} from '../../src/context/index.js'
import { type FitMessage, FitToSend, type Fitted } from '../../src/fit/index.js'
import { MESSAGE_FORMATS, type MessageFormat } from '../../src/index.js'
import { messageId } from '../stored_run.js'
import { conversation, toldIn } from './conversations.js'
import { brokenRules } from './provider_rules.js'

/** For each pair of formats: more than 2,000 conversations in each writing format. */
const RUNS = process.env.TEST_THOROUGH ? 400 : 12
const APPENDS = process.env.TEST_THOROUGH ? 1_000 : 150

const strategy: fc.Arbitrary<EditStrategy> = fc.oneof(
  fc.record({
    type: fc.constant('remove_tool_result' as const),
    params: fc.record({ keep_recent_n_tool_results: fc.nat(4) }),
  }),
  fc.record({
    type: fc.constant('remove_tool_call_params' as const),
    params: fc.record({ keep_recent_n_tool_calls: fc.nat(4) }),
  }),
  fc.record({ type: fc.constant('token_limit' as const), params: fc.record({ limit_tokens: fc.nat(200) }) }),
  fc.record({
    type: fc.constant('middle_out' as const),
    params: fc.record({ token_reduce_to: fc.nat(200) }),
  }),
)

/** Each token is four characters. */
function stored(format: MessageFormat, blobs: readonly object[]): Array<StoredSeq & FitMessage> {
  return blobs.map((blob, i) => {
    const text = JSON.stringify(blob)
    const parent_id = i === 0 ? null : messageId(i - 1)
    return { id: messageId(i), parent_id, seq: i + 1, format, blob: text, tokens: Math.ceil(text.length / 4) }
  })
}

function fitted(to: MessageFormat, messages: FitMessage[], pinned?: object): Fitted {
  const list = new FitToSend(to, pinned)
  for (const message of messages) list.add(message)
  return list.finish()
}

const itemsOf = ({ items }: Fitted) => items.map(({ json }) => JSON.parse(json) as object)

describe.each(MESSAGE_FORMATS)('a conversation in %s', (from) => {
  it.each(MESSAGE_FORMATS)('is fit to be sent in %s after any edits', (to) => {
    fc.assert(
      fc.property(conversation, fc.array(strategy, { maxLength: 3 }), (steps, strategies) => {
        const log = stored(from, toldIn(from, steps))
        const edited = new EditedMessages(log.map(contextMessage), log.length)
        for (const one of strategies) edited.apply(one)
        const shown = log
          .filter(({ seq }) => !edited.dropped.has(seq))
          .map((message) => ({ ...message, edit: edited.cleared.edits.get(message.seq) }))
        expect(brokenRules(to, itemsOf(fitted(to, shown)))).toEqual([])
      }),
      { numRuns: RUNS },
    )
  })
})

describe('a context that is cut, with results cleared', () => {
  it.each(MESSAGE_FORMATS)('is fit to be sent in %s, and keeps its prefix while a pin is sent', (to) => {
    // More than are appended: a conversation has several messages.
    const steps = fc.sample(conversation, { numRuns: Math.min(APPENDS, 600), seed: 7 }).flat()
    const formats = MESSAGE_FORMATS.filter((format) => format !== to)
    const from = formats[to.length % formats.length]!
    const log = stored(from, toldIn(from, steps).slice(0, APPENDS))
    const known = log.map(contextMessage)
    const rules: ContextRules = {
      tokens_max: 2_000,
      tokens_target: 1_200,
      results_kept: 3,
      tools_excluded: new Set(['book']),
      inputs_cleared: true,
    }
    let pinned: { begun_seq: number; sent_seqs: number[] } | undefined
    let cut: ReturnType<typeof planContext>
    let before: Fitted | undefined
    let cuts = 0
    let kept = 0
    for (let length = 1; length <= log.length; length++) {
      const messages = known.slice(0, length)
      const from_cut = messages.filter(({ seq }) => cut && (seq >= cut.from_seq || seq === cut.asked_seq))
      const again = cut && repeatCut({ messages: from_cut, instruction_tokens: 0 }, rules, cut)
      if (!again) {
        pinned = undefined
        before = undefined
        cuts++
      }
      cut =
        again ?? planContext({ messages, may_grow: false, is_longer: false, instruction_tokens: 0 }, rules)!
      const { from_seq, asked_seq, edits } = cut
      const shown = log
        .slice(0, length)
        .filter(({ seq }) => seq >= from_seq || seq === asked_seq)
        .map((message) => ({ ...message, edit: edits.get(message.seq) }))
      const now = fitted(to, shown, pinned)
      expect(brokenRules(to, itemsOf(now)), `${from}, ${length} messages`).toEqual([])
      if (before) {
        expect(now.items.slice(0, before.items.length)).toEqual(before.items)
        kept++
      }
      before = now
      const sent_seqs: number[] = now.sent_seqs.length > 199 ? [] : [...now.sent_seqs, length]
      if (sent_seqs.length === 0) before = undefined
      pinned = sent_seqs.length > 0 ? { begun_seq: pinned?.begun_seq ?? length, sent_seqs } : undefined
    }
    expect(cuts).toBeGreaterThan(1)
    expect(kept).toBeGreaterThan(log.length / 2)
  })
})
