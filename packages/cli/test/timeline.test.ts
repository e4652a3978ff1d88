import { readFileSync } from 'node:fs'
import type { Annals, TimelineItem } from '@annals/client'
import { SessionReader } from '@annals/messages/session'
import { describe, expect, it } from 'vitest'
import { logOf, SESSION_VECTORS } from '../../messages/test/session_vectors.ts'
import type { Output } from '../src/terminal/output.ts'
import { printCalls, printEntries } from '../src/timeline/print_timeline.ts'
import { TimelineText } from '../src/timeline/timeline_text.ts'

const demo = JSON.parse(
  readFileSync(new URL('../../server/demo/sessions.json', import.meta.url), 'utf8'),
) as {
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
  const reader = new SessionReader()
  const text = new TimelineText({ width, paint: plain, full, joins })
  return items
    .map((item) => reader.read(item))
    .flatMap((entry) => text.entry(entry))
    .join('\n')
}

/** What `show --tools --json` prints of a log. */
async function printedCalls(log: object[]): Promise<PrintedCall[]> {
  const annals = { sessions: { timeline: () => log } } as unknown as Annals
  const printed: PrintedCall[] = []
  const output = { json: true, value: (call: PrintedCall) => printed.push(call) } as unknown as Output
  await printCalls(annals, 'a session', {}, output)
  return printed
}

interface PrintedCall {
  number: number
  name: string
  seq: number
  arguments: unknown
  result: { seq: number; is_error: boolean; value: unknown } | null
}

const valueIn = (text: string) => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

describe('the tool calls that the command line shows', () => {
  it.each(SESSION_VECTORS)('$name', async (vector) => {
    const printed = await printedCalls(logOf(vector))
    const verdictOf = ({ result }: PrintedCall) =>
      result === null ? 'open' : result.is_error ? 'failed' : 'ok'
    expect(printed.map((call) => ({ ...call, verdict: verdictOf(call) }))).toMatchObject(
      vector.calls.map(({ result, arguments: given, ...call }) => ({
        ...call,
        arguments: valueIn(given),
        result: result && { seq: result.seq, value: valueIn(result.text) },
      })),
    )
    expect(printed.length).toBe(vector.calls.length)
  })

  it.each(SESSION_VECTORS)('stand in the text of the session, each once: $name', (vector) => {
    const text = textOf(logOf(vector) as TimelineItem[])
    const shown = [...text.matchAll(/^.{32}call (\d+) /gm)].map(([, number]) => Number(number))
    expect(shown).toEqual(vector.calls.map(({ number }) => number))
    const seqs = [...text.matchAll(/^ {0,4}(\d+) {2}\d\d:/gm)].map(([, seq]) => Number(seq))
    const own = vector.entries
      .map((_, index) => index + 1)
      .filter((seq) => !vector.shown_elsewhere.includes(seq))
    expect(seqs).toEqual(own)
  })

  it.each(['refunds', 'coder', 'research', 'triage', 'nightly-report'])(
    "of the demo's %s are numbered, and each has its own result",
    async (agent) => {
      const session = demo.sessions.find(({ session }) => session.configs.agent === agent)!
      const calls = await printedCalls(timelineOf(session))
      expect(calls.length).toBeGreaterThan(1)
      expect(calls.map(({ number }) => number)).toEqual(calls.map((_call, index) => index + 1))
      for (const { seq, result } of calls) expect(result?.seq).toBeGreaterThan(seq)
      expect(new Set(calls.map(({ result }) => result?.seq)).size).toBe(calls.length)
    },
  )

  it('are followed with a line for each record of them, and shown in full once', () => {
    const text = textOf(logOf(SESSION_VECTORS[0]!) as TimelineItem[], { joins: false })
    expect(text).toMatch(/^ {4}3 .*call 1 get_flight, as in #2$/m)
    expect(text).toMatch(/^ {4}4 .*✗ error of 1 get_flight 2.0 s {2}Exception: no such flight$/m)
  })

  it('have their results where they came if that is far below them', async () => {
    const far = Array.from({ length: 250 }, () => ({ kind: 'event', type: 'note', data: {} }))
    const [call, result] = [
      { kind: 'event', type: 'tool_call', data: { id: '1', name: 'f' } },
      { kind: 'event', type: 'tool_result', data: { id: '1', result: 'at last' } },
    ]
    const annals = {
      sessions: { timeline: () => logOf({ entries: [call, ...far, result] }) },
    } as unknown as Annals
    const lines: string[] = []
    const output = {
      width: 100,
      paint: plain,
      lines: (more: string[]) => lines.push(...more),
      taking: async () => {},
    } as unknown as Output
    await printEntries(annals, 'a session', {}, output)
    expect(lines.at(-1)).toContain('✓ result of 1 f')
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
