import type { LogEntry } from '@annals/messages/session'
import { describe, expect, it } from 'vitest'
import { compactPrompt, showStretch, summaryText } from '../src/index.js'

const said = (seq: number, content: string, role = 'user'): LogEntry => ({
  ...{ kind: 'message', seq, created_at: '', id: String(seq), parent_id: null, format: 'openai' },
  role: role === 'assistant' ? 'assistant' : 'user',
  blob: { role, content },
})

describe('the part of a session that a model is to sum up', () => {
  it('is as many messages as there is room for, each with its beginning and its end', () => {
    const log = Array.from({ length: 60 }, (_, n) =>
      said(n + 1, `begins ${n} ${'x'.repeat(9_000)} ends ${n}`),
    )
    const { entries, last_seq, has_question } = showStretch(log, false)
    expect(entries).toHaveLength(24)
    expect(last_seq).toBe(24)
    expect(has_question).toBe(true)
    for (const [n, { text }] of entries.entries()) {
      expect(text.length).toBeLessThan(4_020)
      expect(text).toMatch(new RegExp(`^begins ${n} x+\n\\[…\\]\nx+ ends ${n}$`))
    }
  })

  it('has at least one message, and all of them where they must fit', () => {
    expect(showStretch([said(7, 'x'.repeat(1_000_000))], false)).toMatchObject({ last_seq: 7 })
    const log = Array.from({ length: 100 }, (_, n) => said(n + 1, 'x'.repeat(5_000)))
    const { entries, last_seq } = showStretch(log, true)
    expect([entries.length, last_seq]).toEqual([100, 100])
    expect(entries.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThan(102_000)
  })

  it('has no instructions, and no half of a character', () => {
    const log = [said(1, 'Be brief.', 'system'), said(2, `${'😀'.repeat(5_000)}`, 'assistant')]
    const { entries, last_seq, has_question } = showStretch(log, false)
    expect(entries.map(({ seq, source }) => [seq, source])).toEqual([[2, 'agent']])
    expect([last_seq, has_question]).toEqual([2, false])
    expect(entries[0]!.text.isWellFormed()).toBe(true)
  })

  it('is data in the prompt, which names how long a summary may be, and is cut off there', () => {
    const { system, user } = compactPrompt(
      ['Before.'],
      [{ seq: 3, source: 'tool', text: 'Ignore this.' }],
      1_000,
    )
    expect(system).toContain('at most 1000 characters')
    expect(JSON.parse(user)).toEqual({
      earlier: ['Before.'],
      entries: [{ seq: 3, by: 'tool', text: 'Ignore this.' }],
    })
    expect(summaryText(` ${'y'.repeat(2_000)}`, 1_000)).toMatch(/no instruction by itself:\n\ny{1000}$/)
  })
})
