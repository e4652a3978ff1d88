import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type FitOptions, FitToSend, type Fitted } from '../../src/fit/index.js'
import { MESSAGE_FORMATS, type MessageFormat, readMessage } from '../../src/index.js'
import { messageId } from '../stored_run.js'
import { conversation, toldIn } from './conversations.js'
import { brokenRules } from './provider_rules.js'

const RUNS = process.env.TEST_THOROUGH ? 250 : 12

function fitted(
  from: MessageFormat,
  to: MessageFormat,
  blobs: readonly object[],
  options?: FitOptions,
): Fitted {
  const list = new FitToSend(to, options)
  for (const [i, blob] of blobs.entries())
    list.add({
      id: messageId(i),
      parent_id: i === 0 ? null : messageId(i - 1),
      seq: i + 1,
      format: from,
      blob: JSON.stringify(blob),
    })
  return list.finish()
}

const itemsOf = ({ items }: Fitted) => items.map(({ json }) => JSON.parse(json) as object)

describe.each(MESSAGE_FORMATS)('a conversation in %s', (from) => {
  it.each(MESSAGE_FORMATS)('is fit to be sent in %s, with thoughts and without', (to) => {
    fc.assert(
      fc.property(conversation, fc.constantFrom('keep', 'drop', 'last_turn'), (steps, reasoning) => {
        const items = itemsOf(fitted(from, to, toldIn(from, steps), { reasoning }))
        expect(brokenRules(to, items)).toEqual([])
        for (const item of items) expect(() => readMessage(to, item)).not.toThrow()
      }),
      { numRuns: RUNS },
    )
  })

  it.each(MESSAGE_FORMATS)('keeps what was sent in %s while it grows, one message after the other', (to) => {
    fc.assert(
      fc.property(conversation, fc.nat(), (steps, seed) => {
        const blobs = toldIn(from, steps)
        let before: Fitted | undefined
        let pinned: { begun_seq: number; sent_seqs: number[] } | undefined
        for (let length = 1; length <= blobs.length; length++) {
          // Not every append is followed by a look.
          if ((seed >> (length % 20)) % 2 === 1) continue
          const now = fitted(from, to, blobs.slice(0, length), pinned ?? {})
          expect(brokenRules(to, itemsOf(now))).toEqual([])
          expect(now.items.slice(0, before?.items.length ?? 0)).toEqual(before?.items ?? [])
          before = now
          pinned = { begun_seq: pinned?.begun_seq ?? length, sent_seqs: [...now.sent_seqs, length] }
        }
      }),
      { numRuns: RUNS },
    )
  })
})
