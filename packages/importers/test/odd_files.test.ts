import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { timeOf } from '../src/times.ts'
import { entriesIn, outline, recordsOf, tallyOf } from './reading.ts'

const LINES = [0, 1, 2, 3].map((at) => ({
  type: 'user',
  uuid: `u${at}`,
  parentUuid: at === 0 ? null : `u${at - 1}`,
  sessionId: 's',
  timestamp: `2026-01-15T10:00:0${at}Z`,
  message: { role: 'user', content: `Hello, ${at} [1, ]` },
}))
const TEXTS = LINES.map((line) => JSON.stringify(line))
const PRETTY = LINES.map((line) => JSON.stringify(line, null, 2))
const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le')

const WAYS: Record<string, string | Uint8Array> = {
  'with a byte order mark': `\ufeff${TEXTS.join('\n')}`,
  'with CRLF': TEXTS.join('\r\n'),
  'with CR alone': TEXTS.join('\r'),
  'with blank lines': `\n\n${TEXTS.join('\n\n \t\n')}\n\n`,
  'with spaces around': TEXTS.map((text) => `  ${text}  `).join('\n'),
  'without line feeds': TEXTS.join(''),
  'on one line': TEXTS.join(' '),
  'over several lines each': PRETTY.join('\n'),
  'with a comma after each': TEXTS.map((text) => `${text},`).join('\n'),
  'with commas before brackets': TEXTS.map((text) => text.replace(/\}\}$/, ', },\t}')).join('\n'),
  'after marks of records': TEXTS.map((text) => `\u001e${text}\n`).join(''),
  'in a list with a comma at its end': `[\n${TEXTS.join(',\n')},\n]`,
  'in UTF-16 with CRLF, packed': gzipSync(utf16(TEXTS.join('\r\n'))),
  'packed in two pieces': Buffer.concat(
    [TEXTS.slice(0, 2), TEXTS.slice(2)].map((some) => gzipSync(`${some.join('\n')}\n`)),
  ),
  'around zeros': `${TEXTS.slice(0, 2).join('\n')}\n${'\0'.repeat(500)}${TEXTS.slice(2).join('\n')}`,
  'before zeros': `${TEXTS.join('\n')}\n${'\0'.repeat(500)}`,
}

describe('lines that are written in another way', () => {
  it.each(Object.keys(WAYS))('are the same entries: %s', async (way) => {
    const plain = entriesIn(await recordsOf('f.jsonl', TEXTS.join('\n')))
    for (const chunk of [7, 100_000]) {
      const records = await recordsOf('f.jsonl', WAYS[way], { chunk })
      expect(entriesIn(records)).toEqual(plain)
      expect(tallyOf(records)).toMatchObject({ read: 4, refused: 0 })
    }
  })

  it('are named where one is bad, and the others are read', async () => {
    const cut = [TEXTS[0], TEXTS[1]!.slice(0, 40), TEXTS[2]].join('\n')
    expect(outline(await recordsOf('f.jsonl', cut)).filter((line) => line.startsWith('refused'))).toEqual([
      'refused 2: it is not JSON',
    ])
  })
})

describe('a file of no known format', () => {
  it.each([
    ['{"colour":"red","size":3}', 'x.json, whose first object has colour, size. If it is'],
    ['hello', 'x.json, whose beginning has no JSON object. If it is'],
  ])('is told what it has: %s', async (text, told) => {
    await expect(recordsOf('x.json', text)).rejects.toThrow(told)
  })
})

describe('a time', () => {
  it.each([
    [1_768_471_200, '10:00:00.000000'],
    [1_768_471_200_000, '10:00:00.000000'],
    [1_768_471_200_000_001, '10:00:00.000001'],
    ['1768471200000000000', '10:00:00.000000'],
    ['2026-01-15T12:00:00+02:00', '10:00:00.000000'],
    ['2026-01-15T05:30:00-0430', '10:00:00.000000'],
    ['2026-01-15 11:00:00+01', '10:00:00.000000'],
    ['2026-01-15 10:00:00.123456789', '10:00:00.123456'],
    ['2026-01-15T10:00Z', '10:00:00.000000'],
    ['2026-01-15 10:00:00 UTC', '10:00:00.000000'],
    ['2026-01-15', '00:00:00.000000'],
    ['Thu, 15 Jan 2026 10:00:00 GMT', '10:00:00.000000'],
    ['15 Jan 2026 12:00 +0200', '10:00:00.000000'],
  ])('may be written as %j', (written, clock) => {
    expect(timeOf(written)).toBe(`2026-01-15T${clock}Z`)
  })

  it.each([
    '2026-13-01',
    '2026-01-15T25:00:00Z',
    '2026-01-15 and more',
    'soon',
    '15 Xyz 2026 10:00 GMT',
    7,
    null,
  ])('is not %j', (written) => {
    expect(timeOf(written)).toBeUndefined()
  })
})

describe('a file that is still being written', () => {
  const read = (text: string, is_growing: boolean) => recordsOf('s.jsonl', text, { is_growing })

  it('has a last line that waits until it is whole, and counts as soon as it is, also without its line feed', async () => {
    const half = `${TEXTS[0]}\n${TEXTS[1]!.slice(0, 60)}`
    expect(tallyOf(await read(half, true))).toMatchObject({ read: 1, refused: 0 })
    expect(tallyOf(await read(half, false))).toMatchObject({ read: 2, refused: 1 })
    const whole = await read(`${TEXTS[0]}\n${TEXTS[1]}`, true)
    expect(entriesIn(whole)).toEqual(entriesIn(await read(`${TEXTS[0]}\n${TEXTS[1]}\n`, false)))
    expect(tallyOf(await read(`{"type":\n${TEXTS[1]}`, true))).toMatchObject({ read: 2, refused: 1 })
  })

  it('has a document that waits likewise, and a text whose last line may go on', async () => {
    const list = `[${TEXTS[0]},${TEXTS[1]!.slice(0, 60)}`
    expect(tallyOf(await read(list, true))).toMatchObject({ read: 1, refused: 0 })
    expect(tallyOf(await read(list, false))).toMatchObject({ refused: 1 })
    const text = '# aider chat started at 2026-05-01 12:00:00\n\n#### hello  \n\nI will'
    const said = async (is_growing: boolean) =>
      entriesIn(await recordsOf('.aider.chat.history.md', text, { is_growing })).length
    expect([await said(true), await said(false)]).toEqual([1, 2])
  })
})

it('a logged call happened when it says, also what is known besides its messages', async () => {
  const call = {
    messages: [{ role: 'user', content: 'Hi' }],
    timestamp: 1_795_000_000.5,
    latency: 2,
    reward: 1,
  }
  const entries = entriesIn(await recordsOf('call.json', JSON.stringify(call)))
  expect(entries.map(({ occurred_at }) => occurred_at)).toEqual(Array(3).fill('2026-11-18T11:06:40.500000Z'))
})
