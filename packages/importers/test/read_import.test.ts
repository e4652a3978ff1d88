import { readdirSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { isJsonObject } from '@annals/messages/json'
import fc from 'fast-check'
import { zipSync } from 'fflate'
import { describe, expect, it } from 'vitest'
import { UnknownFormat } from '../src/read_import.ts'
import type { ImportRecord } from '../src/records.ts'
import { fixture, outline, recordsOf, tallyOf } from './reading.ts'

const FIXTURES = readdirSync(new URL('fixtures/', import.meta.url))

/** Those that are one document. */
const DOCUMENTS = FIXTURES.filter((name) => name.endsWith('.json') && isDocument(fixture(name).toString()))

/** Those whose lines are of the formats that have no other form. */
const LINES = ['claude_code.jsonl', 'codex.jsonl', 'openai_chat.jsonl']

/** What is stored, without what tells how far it was read. */
function stored(records: ImportRecord[]): ImportRecord[] {
  return records.filter(({ kind }) => kind !== 'progress')
}

describe('reading', () => {
  it.each(FIXTURES)('reads %s in the same way, however its bytes arrive', async (name) => {
    const whole = stored(await recordsOf(name))
    expect(whole.length).toBeGreaterThan(2)
    for (const chunk of [1, 7, 1_000])
      expect(stored(await recordsOf(name, fixture(name), { chunk }))).toEqual(whole)
    const repeated = await recordsOf(name, gzipSync(fixture(name)), { chunk: 100 })
    expect(outline(repeated)).toEqual(outline(whole))
  })

  it('names entries alike when lines were added, and otherwise when they changed', async () => {
    const ids = (records: ImportRecord[]) =>
      records.flatMap((record) => (record.kind === 'entry' ? record.entry.id : []))
    const lines = fixture('claude_code.jsonl').toString().trimEnd().split('\n')
    const before = ids(await recordsOf('a.jsonl', lines.slice(0, 9).join('\n')))
    const after = ids(await recordsOf('b.jsonl', lines.join('\n')))
    expect(after.slice(0, before.length)).toEqual(before)
    expect(new Set(after).size).toBe(after.length)
  })

  it('refuses a bad line, a long one and one that was cut off, by their numbers, and goes on', async () => {
    const [first, second, third] = fixture('claude_code.jsonl').toString().split('\n').slice(1, 4)
    const text = [
      first,
      '{"type":',
      `{"type":"user","x":"${'y'.repeat(5_000)}"}`,
      '',
      second,
      third!.slice(0, 50),
    ]
    const records = await recordsOf('t.jsonl', text.join('\n'), { line_bytes_max: 2_000 })
    expect(outline(records).filter((line) => line.startsWith('refused'))).toEqual([
      'refused 2: it is not JSON',
      'refused 3: it has 5022 bytes, more than 2000',
      'refused 6: it is not JSON: the file may have been cut off',
    ])
    expect(tallyOf(records)).toEqual({ read: 5, mapped: 2, kept_raw: 0, refused: 3 })
  })

  it('reads a document item by item, and what is there of one that was cut off', async () => {
    const runs = fixture('openai_chat.jsonl').toString().trimEnd().split('\n')
    const list = `[\n${runs.join(',\n')}\n]`
    expect(outline(await recordsOf('list.json', list)).length).toBe(
      outline(await recordsOf('openai_chat.jsonl')).length,
    )
    const cut = await recordsOf('list.json', list.slice(0, -100))
    expect(outline(cut).at(-1)).toBe('refused 5: the file was cut off within it')
    expect(tallyOf(cut)).toEqual({ read: 4, mapped: 3, kept_raw: 0, refused: 1 })
  })

  it('says of no session that a cut file had begun that all of it is there', async () => {
    const ends = async (name: string, text: string) =>
      (await recordsOf(name, text)).filter(({ kind }) => kind === 'end').length
    const lines = fixture('claude_code.jsonl').toString()
    expect(await ends('t.jsonl', lines)).toBe(2)
    expect(await ends('t.jsonl', lines.trimEnd().slice(0, -10))).toBe(0)
    const trajectory = fixture('atif.json').toString().trimEnd()
    expect(await ends('t.json', trajectory)).toBeGreaterThan(0)
    expect(await ends('t.json', trajectory.slice(0, -30))).toBe(0)
  })

  it('reads the transcripts in an archive, and names what it leaves out', async () => {
    const archive = zipSync({
      'a/codex.jsonl': fixture('codex.jsonl'),
      'a/picture.png': new Uint8Array(100_000),
      'a/other.json': Buffer.from('{"colour":"red"}'),
      'b/claude.jsonl': fixture('claude_code.jsonl'),
    })
    const records = await recordsOf('export.zip', archive, { chunk: 1_000 })
    expect(
      records.flatMap((record) => (record.kind === 'format' ? `${record.file} ${record.format}` : [])),
    ).toEqual(['export.zip/a/codex.jsonl codex', 'export.zip/b/claude.jsonl claude-code'])
    const warnings = records.flatMap((record) => (record.kind === 'warning' ? [record] : []))
    expect(warnings.map(({ place, reason }) => [place.file, reason])).toEqual([
      ['export.zip/a/other.json', 'it is of no known format, and is left out'],
      ['export.zip', 'files in it that are no transcripts, such as pictures, are left out: 1'],
    ])
  })

  it.each(['', '{"colour":"red"}\n', 'hello', '[1,2]', '}}}}', '\u0000', '[[[['])(
    'knows no format in %j',
    async (text) => {
      await expect(recordsOf('x.json', text)).rejects.toThrow(UnknownFormat)
    },
  )

  it('loses no line: each is mapped, kept raw or refused, and what it says is stored', async () => {
    const samples = LINES.flatMap((name) => fixture(name).toString().trimEnd().split('\n'))
    const jsonLine = fc.oneof(
      fc.constantFrom(...samples),
      fc.json({ maxDepth: 3 }),
      fc.constant('{"type":"nova"}'),
    )
    const line = fc.oneof(
      { weight: 5, arbitrary: jsonLine },
      { weight: 1, arbitrary: fc.constantFrom('{"a":', 'x', '  ') },
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(line, { maxLength: 12 }),
        fc.constantFrom('claude-code', 'codex', 'openai-chat', 'openai-responses'),
        async (lines, format) => {
          const text = ['{}', ...lines].map((one, index) => marked(one, `mark${index}!`))
          const records = await recordsOf('p.jsonl', text.join('\n'), { format, chunk: 333 })
          const tally = tallyOf(records) ?? { read: 0, mapped: 0, kept_raw: 0, refused: 0 }
          expect(tally.read).toBe(text.filter((one) => one.trim() !== '').length)
          expect(tally.mapped + tally.kept_raw + tally.refused).toBe(tally.read)
          const all = JSON.stringify(records)
          for (const [index, one] of text.entries())
            if (one.includes(`mark${index}!`)) expect(all).toContain(`mark${index}!`)
        },
      ),
    )
  })
})

describe('what a file says', () => {
  it.each(FIXTURES)('is all stored, wherever it stands in %s', async (name) => {
    const values = fixture(name)
      .toString()
      .trimEnd()
      .split(name.endsWith('.jsonl') ? '\n' : '\u0000')
      .map((text) => JSON.parse(text))
    let count = 0
    const mark = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return
      for (const one of Object.values(value)) mark(one)
      if (!Array.isArray(value)) Object.assign(value, { [`unheard_${count}`]: `mark${count++}!` })
    }
    for (const value of values) mark(value)
    const format = (await recordsOf(name)).flatMap((record) =>
      record.kind === 'format' ? record.format : [],
    )[0]
    const records = await recordsOf(name, values.map((value) => JSON.stringify(value)).join('\n'), { format })
    const all = JSON.stringify(records)
    const lost = Array.from({ length: count }, (_, at) => `mark${at}!`).filter((one) => !all.includes(one))
    const holders = lost.map((one) => holderOf(values, one))
    expect(count).toBeGreaterThan(3)
    expect(holders).toEqual([])
  })

  it('knows lines of Claude Code that somebody shared without their session', async () => {
    const line = { type: 'user', uuid: 'a', timestamp: '2026-01-15T10:00:00Z' }
    const text = JSON.stringify({ ...line, message: { role: 'user', content: 'Hello' } })
    const [first] = await recordsOf('shared.jsonl', text)
    expect(first).toMatchObject({ kind: 'format', format: 'claude-code' })
  })

  it.each(DOCUMENTS)('knows %s by members of which the first goes far beyond its beginning', async (name) => {
    const document = JSON.parse(fixture(name).toString())
    const lists = Array.isArray(document) ? [document] : Object.values(document)
    for (const list of lists)
      if (Array.isArray(list) && isJsonObject(list[0])) list[0].padding = 'x'.repeat(400_000)
    const { format } = (await recordsOf(name)).find(({ kind }) => kind === 'format') as { format: string }
    for (const space of [undefined, 2]) {
      const text = JSON.stringify(document, null, space)
      expect((await recordsOf(name, text, { chunk: 65_536 }))[0]).toMatchObject({ format })
    }
  })

  it('knows a trajectory of SWE-agent by steps that go beyond its beginning, and a demonstration by its history', async () => {
    const step = { action: 'ls', observation: 'x'.repeat(400_000), thought: '' }
    const history = [{ role: 'system', content: 'Work.', agent: 'main', message_type: 'system_prompt' }]
    for (const run of [{ trajectory: [step], history, info: {} }, { history }]) {
      const [first] = await recordsOf('run.traj', JSON.stringify(run, null, 2), { chunk: 65_536 })
      expect(first).toMatchObject({ kind: 'format', format: 'swe-agent' })
    }
  })
})

function isDocument(text: string): boolean {
  try {
    return isJsonObject(JSON.parse(text)) || Array.isArray(JSON.parse(text))
  } catch {
    return false
  }
}

/** The object with a mark, without those in it, to show what was lost. */
function holderOf(value: unknown, mark: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  if (Object.values(value).includes(mark)) return JSON.stringify(value).slice(0, 200)
  return Object.values(value)
    .map((one) => holderOf(one, mark))
    .find((one) => one !== undefined)
}

/** The line with a mark in it, if it is an object. */
function marked(line: string, mark: string): string {
  const start = line.trimStart()
  return start.startsWith('{') && start.trimEnd().endsWith('}') && start.length > 2
    ? `{"mark":"${mark}",${start.slice(1)}`
    : line
}
