import { describe, expect, it, vi } from 'vitest'
import { takesColour } from '../src/terminal/paint.ts'
import { type Column, printTable, tableLines } from '../src/terminal/table.ts'
import { cutTo, linesOf, widthOf } from '../src/terminal/text.ts'
import { agoOf, durationOf, momentOf } from '../src/terminal/times.ts'

const plain = (_style: string, text: string) => text

describe('colour', () => {
  it.each<[string, boolean, NodeJS.ProcessEnv, boolean]>([
    ['is for terminals', true, {}, true],
    ['is not for files', false, {}, false],
    ['is not for a terminal that has none', true, { TERM: 'dumb' }, false],
    ['is off with NO_COLOR', true, { NO_COLOR: '1' }, false],
    ['stays with an empty NO_COLOR, which says nothing', true, { NO_COLOR: '' }, true],
    ['is on with FORCE_COLOR, also in a file', false, { FORCE_COLOR: '1' }, true],
    ['is on with FORCE_COLOR, whatever NO_COLOR says', true, { FORCE_COLOR: '1', NO_COLOR: '1' }, true],
    ['is off with FORCE_COLOR=0', true, { FORCE_COLOR: '0' }, false],
  ])('%s', (_name, isTTY, env, expected) => {
    expect(takesColour({ isTTY }, env)).toBe(expected)
  })
})

describe('a table', () => {
  interface Row {
    id: string
    text: string
    more: string
  }
  const columns: Column<Row>[] = [
    { title: 'id', text: ({ id }) => id },
    { title: 'text', text: ({ text }) => text, shrinks: true },
    { title: 'more', text: ({ more }) => more, shrinks: true },
    { title: 'extra', text: () => 'x', from_width: 100 },
  ]
  const rows = [
    { id: 'a-long-id-that-is-copied', text: '長い'.repeat(20), more: 'm'.repeat(90) },
    { id: 'short', text: 'one\nline', more: '' },
  ]

  it.each([60, 80, 120, 200])('fits into %i columns, and cuts no column that is to be copied', (width) => {
    const lines = tableLines(columns, rows, width, plain)
    expect(lines.every((line) => widthOf(line) <= width)).toBe(true)
    expect(lines[1]).toContain('a-long-id-that-is-copied')
    expect(lines[2]).toContain('one\\nline')
    expect(lines[0]!.includes('extra')).toBe(width >= 100)
  })
})

describe('a table of resources', () => {
  it('makes visible what a terminal would obey in a name, and keeps each on its line', () => {
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
    const names = ['default', '\u001b]0;pwned\u0007', 'two\nlines', 'e\u0301']
    try {
      printTable(
        ['name', 'id'],
        names.map((name) => JSON.stringify({ name, id: name.length })),
      )
      const printed = write.mock.calls.map(([text]) => String(text)).join('')
      const line = (name: string, width: number, id: string) => `${name}${' '.repeat(22 - width)}${id}\n`
      expect(printed).toBe(
        line('name', 4, 'id') +
          line('default', 7, '7') +
          line('\\u001b]0;pwned\\u0007', 20, '10') +
          line('two\\nlines', 10, '9') +
          line('e\u0301', 1, '2'),
      )
    } finally {
      write.mockRestore()
    }
  })
})

describe('a text', () => {
  it('is wrapped by columns and not by characters, and cut with an ellipsis', () => {
    expect(linesOf('会话会话会话', 6)).toEqual(['会话会', '话会话'])
    expect(linesOf('one two three', 8)).toEqual(['one two', 'three'])
    expect(linesOf('  keeps its indent', 80)).toEqual(['  keeps its indent'])
    expect(cutTo('会话会话', 5)).toBe('会话…')
    expect(cutTo('👩‍👩‍👧👩‍👩‍👧', 3)).toBe('👩‍👩‍👧…')
  })
})

describe('times', () => {
  it.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [1_234, '1.2 s'],
    [59_960, '1 min'],
    [125_000, '2 min 5 s'],
    [3_600_000 * 3, '3 h'],
    [3_600_000 * 50, '2 d 2 h'],
  ])('%i ms are %s', (ms, expected) => {
    expect(durationOf(ms)).toBe(expected)
  })

  it('are said from now, and read from now', () => {
    const now = Date.parse('2026-11-21T12:00:00Z')
    expect(agoOf('2026-11-21T11:59:30Z', now)).toBe('now')
    expect(agoOf('2026-11-20T12:00:00Z', now)).toBe('24 h ago')
    expect(agoOf('2026-11-11T12:00:00Z', now)).toBe('10 d ago')
    expect(momentOf('5m', now)).toBe(now - 300_000)
    expect(momentOf('1.5h', now)).toBe(now - 5_400_000)
    expect(momentOf('2026-11-21T09:00:00Z', now)).toBe(now - 10_800_000)
    expect(momentOf('yesterday', now)).toBeUndefined()
  })
})
