import type { LogEntry } from '@annals/messages/session'
import { describe, expect, it } from 'vitest'
import { reflectPrompt, showRun, showStretch } from '../src/index.js'

const message = (seq: number, blob: object, format: 'openai' | 'anthropic' = 'openai'): LogEntry => ({
  ...{ kind: 'message', seq, created_at: '', id: String(seq), parent_id: null, role: '', format, blob },
})
const user = (seq: number, content: string) => message(seq, { role: 'user', content })
const calls = (seq: number, ...ids: string[]) =>
  message(seq, {
    role: 'assistant',
    content: null,
    tool_calls: ids.map((id) => ({
      id,
      type: 'function',
      function: { name: 'book', arguments: `{"seat":"${id}"}` },
    })),
  })
const result = (seq: number, tool_call_id: string, content: string) =>
  message(seq, { role: 'tool', tool_call_id, content })
const shown = (log: LogEntry[], unread?: number[]) =>
  showRun('s1', {}, log, unread).entries.map(({ seq, source, text, note = null }) => [
    seq,
    source,
    text,
    note,
  ])

describe('a log that a model learns from', () => {
  it('says of a run that was killed which call nobody answered, and of each parallel call its result', () => {
    const log = [user(1, 'Book.'), calls(2, 'a', 'b'), result(3, 'b', 'Taken.'), user(4, 'Well?')]
    expect(shown(log)).toEqual([
      [1, 'user', 'Book.', null],
      [2, 'agent', 'book {"seat":"a"}\nbook {"seat":"b"}', 'book: No result was recorded.'],
      [3, 'tool', 'Taken.', 'Result of book {"seat":"b"}'],
      [4, 'user', 'Well?', null],
    ])
    const { system, user: asked } = reflectPrompt([showRun('s1', {}, log)])
    expect(system).toContain('A "note" says what the record shows')
    expect(JSON.parse(asked).runs[0].entries[1]).toEqual({
      ...{ seq: 2, by: 'agent', text: 'book {"seat":"a"}\nbook {"seat":"b"}' },
      note: 'book: No result was recorded.',
    })
    expect(showStretch(log, false).entries).toEqual(showRun('s1', {}, log).entries)
  })

  it('names a result without a call, and one that reports an error', () => {
    const failed = message(
      3,
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'No.', is_error: true }] },
      'anthropic',
    )
    expect(shown([result(1, 'z', 'Lost.'), calls(2, 'a'), failed])).toEqual([
      [1, 'tool', 'Lost.', 'It answers no open call.'],
      [2, 'agent', 'book {"seat":"a"}', null],
      [3, 'tool', 'No.', 'The tool reported an error.'],
    ])
  })

  it('says nothing of a call whose result may be where nobody has read', () => {
    const log = [user(1, 'Book.'), calls(2, 'a'), result(9, 'z', 'Done.'), user(10, 'On.'), calls(11, 'b')]
    const notes = (unread: number[]) => showRun('s1', {}, log, unread).entries.map(({ note = null }) => note)
    const open = 'book: No result was recorded.'
    expect(notes([])).toEqual([null, open, 'It answers no open call.', null, open])
    expect(notes([5])).toEqual([null, null, null, null, open])
    expect(notes([12])).toEqual([null, open, 'It answers no open call.', null, null])
  })

  it('has a call that a message and an event record once, with the result of the message', () => {
    const event = (seq: number, type: string, data: Record<string, unknown>): LogEntry => ({
      ...{ kind: 'event', seq, created_at: '', type, data },
    })
    const log = [
      calls(1, 'a'),
      event(2, 'tool_call', { id: 'a', name: 'book', arguments: { seat: 'a' } }),
      event(3, 'tool_result', { id: 'a', result: 'As an event.' }),
      result(4, 'a', 'As a message.'),
    ]
    const { entries, heard } = showRun('s1', {}, log)
    expect(entries.map(({ seq, text }) => [seq, text])).toEqual([
      [1, 'book {"seat":"a"}'],
      [4, 'As a message.'],
    ])
    expect(heard.map(({ seq }) => seq)).toEqual([3, 4])
  })

  it('shows what was streamed as events, without thoughts', () => {
    const chunks = [
      { type: 'reasoning-delta', id: '0', delta: 'Hm.' },
      { type: 'text-delta', id: '1', delta: 'The seat ' },
      { type: 'text-delta', id: '1', delta: 'is yours.' },
    ]
    const text = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')
    const log: LogEntry[] = [{ kind: 'event', seq: 1, created_at: '', type: 'ai_sdk.chunks', data: { text } }]
    expect(shown(log)).toEqual([[1, 'agent', 'The seat is yours.', null]])
  })
})
