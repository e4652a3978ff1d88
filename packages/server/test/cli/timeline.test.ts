import { readFileSync } from 'node:fs'
import type { TimelineItem } from '@annals/client'
import { describe, expect, it } from 'vitest'
import { TimelineReader } from '../../src/cli/timeline/read_timeline.ts'
import { TimelineText } from '../../src/cli/timeline/timeline_text.ts'
import type { ToolCall } from '../../src/cli/timeline/tool_calls.ts'

const demo = JSON.parse(readFileSync(new URL('../../demo/sessions.json', import.meta.url), 'utf8')) as {
  sessions: { at_ms: number[]; session: { configs: { agent: string } }; entries: Record<string, unknown>[] }[]
}
const START = Date.parse('2026-11-20T12:00:00Z')

/** A demo session as the timeline gives it. */
function timelineOf(session: (typeof demo.sessions)[number]): TimelineItem[] {
  return session.entries.map((entry, index) => {
    const created_at = new Date(START + session.at_ms[index]!).toISOString()
    const role = (entry.blob as { role?: string } | undefined)?.role === 'assistant' ? 'assistant' : 'user'
    return { ...entry, seq: index + 1, created_at, role } as unknown as TimelineItem
  })
}

function callsOf(items: TimelineItem[]): ToolCall[] {
  const reader = new TimelineReader(true)
  return items
    .flatMap((item) => reader.read(item).blocks)
    .flatMap((block) => (block.kind === 'call' ? [block.call] : []))
}

function event(seq: number, type: string, data: object): TimelineItem {
  return { kind: 'event', seq, type, data, created_at: '2026-11-20T12:00:00Z' } as unknown as TimelineItem
}

function message(seq: number, blob: { role: string; [name: string]: unknown }): TimelineItem {
  const { role } = blob
  const created_at = '2026-11-20T12:00:00Z'
  return { kind: 'message', seq, format: 'openai', blob, role, created_at } as unknown as TimelineItem
}

const plain = (_style: string, text: string) => text
function textOf(items: TimelineItem[], options: { width?: number; full?: boolean; joins?: boolean } = {}) {
  const { width = 100, full = false, joins = true } = options
  const reader = new TimelineReader(true)
  const text = new TimelineText({ width, paint: plain, full, joins })
  return items
    .map((item) => reader.read(item))
    .flatMap((entry) => text.entry(entry))
    .join('\n')
}

describe('tool calls', () => {
  const session = (agent: string, index = 0) =>
    timelineOf(demo.sessions.filter(({ session }) => session.configs.agent === agent)[index]!)

  it.each([
    ['openai', session('refunds')],
    ['anthropic', session('coder')],
    ['gemini', session('research')],
    ['acontext', session('triage')],
    ['events', session('nightly-report')],
  ])('of %s are numbered, and each has its own result', (_format, items) => {
    const calls = callsOf(items)
    expect(calls.length).toBeGreaterThan(1)
    expect(calls.map(({ number }) => number)).toEqual(calls.map((_call, index) => index + 1))
    for (const { seq, result } of calls) expect(result?.seq).toBeGreaterThan(seq)
    expect(new Set(calls.map(({ result }) => result?.seq)).size).toBe(calls.length)
  })

  it('of a message that makes two are tied to their results by id, also out of order', () => {
    const call = (id: string) => ({
      id,
      type: 'function',
      function: { name: 'f', arguments: `{"of":"${id}"}` },
    })
    const calls = callsOf([
      message(1, { role: 'assistant', content: null, tool_calls: [call('a'), call('b')] }),
      message(2, { role: 'tool', tool_call_id: 'b', content: 'result of b' }),
      message(3, { role: 'tool', tool_call_id: 'a', content: 'Error: no a' }),
    ])
    expect(calls.map(({ result }) => result?.text)).toEqual(['Error: no a', 'result of b'])
    expect(calls.map(({ result }) => result?.is_error)).toEqual([true, false])
  })

  it('are counted once where a run logs each as an event too', () => {
    const items = session('refunds')
    const twice = [...items, event(99, 'tool_call', { name: 'get_order', arguments: {} })]
    expect(callsOf(twice)).toHaveLength(callsOf(items).length)
  })
})

describe('the text of a timeline', () => {
  const failed = demo.sessions.filter(({ session }) => session.configs.agent === 'refunds').at(-1)!

  it('has every entry once, a call with its result, how long it took, and the pauses', () => {
    const text = textOf(timelineOf(failed))
    expect(text).toMatch(/^ {4}1 {2}\d\d:\d\d:\d\d {2}run_started/m)
    expect(text).toContain('call 3 issue_refund')
    expect(text).toContain('✗ error (#9) 15.0 s')
    expect(text).not.toMatch(/^ {4}9 /m)
    expect(text).toContain('┄ 16.2 s later')
    expect(text.split('\n').every((line) => line.length <= 100)).toBe(true)
  })

  it('has a result where it came, and whose it is, when entries are followed as they come', () => {
    const text = textOf(timelineOf(failed), { joins: false })
    expect(text).toMatch(/^ {4}9 .*✗ error of 3 issue_refund 15.0 s/m)
  })

  it('says nothing of how long a call took where all was stored at one moment', () => {
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }
    const text = textOf([
      message(1, { role: 'assistant', content: null, tool_calls: [call] }),
      message(2, { role: 'tool', tool_call_id: 'a', content: 'done' }),
    ])
    expect(text).toContain('✓ result (#2)  done')
  })

  it('leaves out the end of what is long, and says so', () => {
    const items = [event(1, 'log', { lines: Array.from({ length: 50 }, (_, index) => `line ${index}`) })]
    expect(textOf(items)).toMatch(/… \d+ more lines; --full shows all/)
    expect(textOf(items, { full: true })).toContain('line 49')
  })

  it('obeys nothing that was stored', () => {
    const nasty = '\u001b]0;pwned\u0007\u009b2J\u202e'
    const function_ = { name: nasty, arguments: `{"a":"${nasty}"}` }
    const text = textOf([
      event(1, nasty, { [nasty]: nasty }),
      message(2, { role: 'user', name: nasty, content: nasty }),
      message(3, {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'a', type: 'function', function: function_ }],
      }),
      message(4, { role: 'tool', tool_call_id: 'a', content: nasty }),
      message(5, {
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: `https://x/${nasty}` } }],
      }),
    ])
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/)
  })
})
