import { describe, expect, it } from 'vitest'
import { FitToSend } from '../../src/fit/index.js'
import { MESSAGE_FORMATS, type MessageFormat, StoredRenderer } from '../../src/index.js'
import { messageId } from '../stored_run.js'
import { brokenRules } from './provider_rules.js'

const text = (said: string) => ({ type: 'text', text: said })
const claude = (role: string, ...content: object[]) => ({ role, content })
const SUMMARY = {
  type: 'compaction',
  content: 'Ada wants seat 12A.',
  encrypted_content: 'b3BhcXVl',
  signature: 'c2ln',
  tool_changes: [],
}
const NEWER = { ...SUMMARY, content: 'Ada has seat 12A.' }
const FAILED = { type: 'compaction', content: null, encrypted_content: null }

const item = (role: string, content: string) => ({ type: 'message', role, content })
const COMPACTED = { type: 'compaction', id: 'cmp_1', encrypted_content: 'b3BhcXVl' }
const CALL = { type: 'function_call', call_id: 'a', name: 'look', arguments: '{}' }
const OUTPUT = { type: 'function_call_output', call_id: 'a', output: 'done' }

function sent(from: MessageFormat, to: MessageFormat, blobs: readonly object[], tokens?: number) {
  const list = new FitToSend(to)
  for (const [i, blob] of blobs.entries())
    list.add({
      id: messageId(i),
      parent_id: null,
      seq: i + 1,
      format: from,
      blob: JSON.stringify(blob),
      tokens,
    })
  const { items, omitted, added, tokens_left_out } = list.finish()
  return { items: items.map(({ json }) => JSON.parse(json) as object), omitted, added, tokens_left_out }
}
const compacted = (...places: number[]) => places.map((i) => ({ id: messageId(i), reason: 'compacted' }))

const ANTHROPIC = [
  claude('user', text('Which seats are free?')),
  claude('assistant', text('12A.'), { type: 'tool_use', id: 'a', name: 'look', input: {} }),
  claude('user', { type: 'tool_result', tool_use_id: 'a', content: 'free' }),
  claude('assistant', text('Looking.'), SUMMARY, text('12A is free.')),
  claude('user', text('Book it.')),
]
const RESPONSES = [
  item('system', 'Be brief.'),
  item('user', 'Which seats are free?'),
  CALL,
  OUTPUT,
  item('user', 'Book it.'),
  COMPACTED,
  item('assistant', 'Booked.'),
  item('user', 'Thanks.'),
]

describe('a compaction of Anthropic’s', () => {
  it('is what its own list begins with: what is before it is left out, and not counted', () => {
    const { items, omitted, added, tokens_left_out } = sent('anthropic', 'anthropic', ANTHROPIC, 100)
    expect(items).toEqual([claude('assistant', SUMMARY, text('12A is free.')), ANTHROPIC[4]])
    expect(omitted).toEqual(compacted(0, 1, 2, 3))
    expect(added).toEqual([])
    expect(tokens_left_out).toBeGreaterThan(300)
    expect(tokens_left_out).toBeLessThan(400)
    expect(brokenRules('anthropic', items)).toEqual([])
  })

  it('counts as the newest one, and one that failed stands for nothing', () => {
    const blobs = [
      ...ANTHROPIC,
      claude('assistant', NEWER),
      claude('user', text('And?')),
      claude('assistant', FAILED, text('Done.')),
    ]
    const { items } = sent('anthropic', 'anthropic', blobs)
    expect(items[0]).toEqual(claude('assistant', NEWER))
    expect(items.at(-1)).toEqual(claude('assistant', FAILED, text('Done.')))
    expect(brokenRules('anthropic', items)).toEqual([])
    const failed = sent('anthropic', 'anthropic', [ANTHROPIC[0]!, claude('assistant', FAILED, text('12A.'))])
    expect(failed.items).toHaveLength(2)
    expect(failed.omitted).toEqual([])
  })

  it('leaves no result without its call', () => {
    const late = [...ANTHROPIC.slice(0, 2), claude('assistant', SUMMARY), ANTHROPIC[2]!, ANTHROPIC[4]!]
    const { items, omitted } = sent('anthropic', 'anthropic', late)
    expect(brokenRules('anthropic', items)).toEqual([])
    expect(omitted).toContainEqual({ id: messageId(3), reason: 'no_call', call_id: 'a' })
  })
})

describe('a compaction of OpenAI’s', () => {
  it('stands for the items before it, but for instructions and the user’s messages directly before it', () => {
    const { items, omitted } = sent('responses', 'responses', RESPONSES)
    expect(items).toMatchObject([
      ...[
        { role: 'system' },
        { content: 'Book it.' },
        COMPACTED,
        { role: 'assistant' },
        { content: 'Thanks.' },
      ],
    ])
    expect(omitted).toEqual(compacted(1, 2, 3))
    expect(brokenRules('responses', items)).toEqual([])
  })

  it('goes with the whole window that responses.compact returned', () => {
    const window = [
      item('user', 'One.'),
      item('user', 'Two.'),
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Three.' }] },
      COMPACTED,
    ]
    const { items, omitted } = sent('responses', 'responses', [...window, item('user', 'Four.')])
    expect(items).toEqual([...window, item('user', 'Four.')])
    expect(omitted).toEqual([])
  })

  it('counts as the newest one, and a trigger goes with what was compacted', () => {
    const NEXT = { ...COMPACTED, id: 'cmp_2' }
    const { items, omitted } = sent('responses', 'responses', [
      ...RESPONSES,
      { type: 'compaction_trigger' },
      NEXT,
    ])
    expect(items).toMatchObject([{ role: 'system' }, NEXT])
    expect(omitted).toEqual(compacted(1, 2, 3, 4, 5, 6, 7, 8))
  })
})

describe.each([
  ['anthropic', ANTHROPIC, 3],
  ['responses', RESPONSES, 5],
] as const)('a compaction stored in %s', (from, blobs, at) => {
  it.each(MESSAGE_FORMATS.filter((format) => format !== from && format !== 'acontext'))(
    'cannot be said in %s: what it stands for is sent, and it is named',
    (to) => {
      const { items, omitted } = sent(from, to, blobs)
      expect(JSON.stringify(items)).toContain('Which seats are free?')
      expect(JSON.stringify(items)).not.toContain('b3BhcXVl')
      expect(omitted).toContainEqual({ id: messageId(at), reason: 'not_in_format', what: 'compaction' })
      expect(omitted.some(({ reason }) => reason === 'compacted')).toBe(false)
      expect(brokenRules(to, items)).toEqual([])
    },
  )

  it('comes back key for key in its own format', () => {
    const blob = blobs[at]!
    const stored = { id: messageId(0), parent_id: null, format: from, blob: JSON.stringify(blob) }
    expect(new StoredRenderer(from).render(stored).map((json) => JSON.parse(json))).toEqual([blob])
    expect(sent(from, from, [blob]).items.at(-1)).toEqual(
      from === 'responses' ? blob : claude('assistant', SUMMARY, text('12A is free.')),
    )
  })
})
