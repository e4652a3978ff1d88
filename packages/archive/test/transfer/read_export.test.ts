import { createHash } from 'node:crypto'
import { registryOf } from '@annals/kits/lifecycle/registry.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MODULES } from '../../../server/src/service/modules.js'
import { ExportReader } from '../../src/transfer/read_export.js'
import { chunksOf, event, exportOf, HEADER, idOf, type Line, message, session, user } from './export_files.js'

/** What a reader makes of a file: the kinds of its lines. */
async function read(bytes: Buffer, chunkSize?: number): Promise<string[]> {
  const reader = new ExportReader(chunksOf(bytes, chunkSize), registryOf(MODULES).tables)
  const kinds: string[] = []
  for await (const lines of reader.read()) kinds.push(...lines.map(({ kind }) => kind))
  return kinds
}

const WHOLE = [
  user(1),
  { ...session(2, { user_id: idOf(1), user: 'user 1', configs: { n: 1 } }), kind: 'learning_space' },
  session(3),
  session(4, {
    last_seq: 3,
    total_tokens: 6,
    last_message_id: idOf(4_003),
    user_id: idOf(1),
    user: 'user 1',
  }),
  message(4, 1),
  event(4, 2),
  message(4, 3, { parent_id: idOf(4_001), patched_meta: { a: null } }),
]
// A learning space has less than a session, and meta.
for (const name of ['disable_task_tracking', 'last_seq', 'total_tokens', 'last_message_id', 'configs'])
  delete (WHOLE[1] as Line)[name]
WHOLE[1]!.meta = { topic: 'refunds' }

const KINDS = ['user', 'learning_space', 'session', 'session', 'message', 'event', 'message']

const TIME = '2026-11-21T09:30:00.123456Z'
const skill = (name: string): Line => ({
  ...{ kind: 'skill', id: idOf(8), user_id: null, user: null, learning_space_id: null, name },
  ...{ description: 'd', source: 'written', meta: {}, created_at: TIME, updated_at: TIME },
})
const skillFile = (more: Line): Line => ({
  ...{ kind: 'skill_file', skill_id: idOf(8), path: 'SKILL.md', mime: 'text/markdown', is_text: true },
  ...{ bytes: 5, sha256: 'a'.repeat(64), ...more },
})

describe('what is wrong with a line', () => {
  const long = 'a'.repeat(100_000)
  it.each<[string, Buffer]>([
    ['its kind', exportOf({ ...user(1), kind: long })],
    ['a member', exportOf({ ...user(1), [long]: 1 })],
  ])('is a sentence, however long %s is', async (_name, bytes) => {
    const error = await read(bytes).catch((thrown: Error) => thrown)
    expect((error as Error).message).toMatch(/^Line 2: .*aaa…$/)
    expect((error as Error).message.length).toBeLessThan(1_100)
  })
})

describe('a skill', () => {
  it('is read with files whose paths and types are harmless', async () => {
    const files = [skillFile({}), skillFile({ path: 'a/b.svg', mime: 'image/svg+xml' })]
    expect(await read(exportOf(skill('refund-2'), ...files))).toHaveLength(3)
  })

  it.each(['', 'Refund', 'a b', '-a', 'a\r\nSet-Cookie: a=b', 'x"; filename=y', '../x', 'a'.repeat(65)])(
    'is refused with a name that no upload may have: %j',
    async (name) => {
      await expect(read(exportOf(skill(name)))).rejects.toThrow('name of a line of kind skill must be')
    },
  )

  it.each([
    ['path', '../../x'],
    ['path', '/etc/passwd'],
    ['path', 'a\\b'],
    ['path', 'a\u202Eb'],
    ['mime', 'text/html\r\nSet-Cookie: a=b'],
    ['mime', 'text'],
    ['sha256', 'x'],
  ])('is refused with a file of which no upload may have %s %j', async (name, value) => {
    const lines = [skill('refund'), skillFile({ [name]: value })]
    await expect(read(exportOf(...lines))).rejects.toThrow(`${name} of a line of kind skill_file must be`)
  })
})

describe('a whole export', () => {
  it('is read line by line, however it is cut', async () => {
    for (const size of [1, 7, 100, undefined]) expect(await read(exportOf(...WHOLE), size)).toEqual(KINDS)
  })

  it('may lack the last line feed, and may be empty', async () => {
    expect(await read(exportOf(...WHOLE).subarray(0, -1))).toEqual(KINDS)
    expect(await read(exportOf())).toEqual([])
  })

  it('counts no tokens of what is retracted, and may lack its mark', async () => {
    const retraction = event(5, 3, { type: 'annals.retraction', data: { seqs: [1] } })
    const ofBoth = session(5, { last_seq: 3, total_tokens: 3, last_message_id: idOf(5_002) })
    for (const mark of [{ retracted_by: 3 }, {}]) {
      const log = [message(5, 1, mark), message(5, 2), retraction]
      expect(await read(exportOf(ofBoth, ...log))).toHaveLength(4)
    }
    const unmarked = [message(5, 1), message(5, 2), event(5, 3)]
    await expect(read(exportOf(ofBoth, ...unmarked))).rejects.toThrow('3 tokens and has 6')
  })
})

describe('a damaged export', () => {
  const bytes = exportOf(...WHOLE)

  it('is refused wherever it was cut off', async () => {
    const end = bytes.length - 1
    await fc.assert(
      fc.asyncProperty(fc.nat(end - 1), async (length) => {
        await expect(read(bytes.subarray(0, length))).rejects.toThrow(/^Line \d+: /)
      }),
    )
    await expect(read(bytes.subarray(0, bytes.indexOf('{"kind":"session"')))).rejects.toThrow(
      'it was cut off',
    )
  })

  it('is refused whichever byte was changed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 2), fc.integer({ min: 1, max: 255 }), async (at, change) => {
        const changed = Buffer.from(bytes)
        changed[at]! ^= change
        await expect(read(changed)).rejects.toThrow(/^Line \d+: /)
      }),
    )
  })

  it('is refused when something follows its end', async () => {
    const longer = Buffer.concat([bytes, Buffer.from('{}\n')])
    await expect(read(longer)).rejects.toThrow('Line 10: there is more after the last line')
  })
})

describe('a line that cannot stand where it stands is named, with the reason:', () => {
  const head = (more: Line) => session(4, { last_seq: 1, ...more })
  it.each<[string, Line[], string]>([
    ['a kind that is none', [{ kind: 'task' }], 'Line 2: kind must be one of usage_day, user, '],
    ['no kind', [{ id: idOf(1) }], 'Line 2: kind must be one of'],
    [
      'a member that is missing',
      [user(1, { identifier: undefined })],
      'Line 2: identifier of a line of kind user',
    ],
    ['a member too many', [user(1, { name: 'x' })], 'Line 2: a line of kind user has no "name"'],
    ['an id that is none', [user(1, { id: 'x' })], 'Line 2: id of a line of kind user must be a UUID'],
    ['a day that there is not', [user(1, { created_at: '2026-02-30T00:00:00.000000Z' })], 'created_at'],
    ['a time without microseconds', [user(1, { updated_at: '2026-02-20T00:00:00Z' })], 'updated_at'],
    ['an identifier that is empty', [user(1, { identifier: '' })], 'identifier'],
    [
      'configs that are no object',
      [session(2, { configs: [] })],
      'Line 2: configs of a line of kind session',
    ],
    [
      'a value that cannot be stored',
      [session(2, { configs: { a: '\0' } })],
      'Line 2: it cannot be stored: at /configs/a',
    ],
    ['an entry without a session', [event(4, 1)], "session_id must be that of the session's line before it"],
    ["another session's entry", [head({}), event(5, 1)], 'Line 3: session_id must be'],
    ['a log that begins late', [head({}), event(4, 2)], 'Line 3: seq must be 1; it is 2'],
    ['a log with a gap', [head({ last_seq: 3 }), event(4, 1), event(4, 3)], 'Line 4: seq must be 2; it is 3'],
    [
      'time that runs back',
      [head({ last_seq: 2 }), event(4, 1), event(4, 2, { created_at: '2026-11-21T09:30:00.123455Z' })],
      'Line 4: created_at',
    ],
    [
      'entries that are missing',
      [head({ last_seq: 2 }), event(4, 1), session(5)],
      'Line 4: before this line, session',
    ],
    ['a last session that is not whole', [head({})], 'Line 3: before this line, session'],
    [
      'a wrong total',
      [head({ total_tokens: 4, last_message_id: idOf(4_001) }), message(4, 1)],
      '4 tokens and has 3',
    ],
    [
      'a wrong last message',
      [head({}), message(4, 1, { tokens: 0 })],
      'should end with message null and ends with',
    ],
    [
      'an event with a role',
      [head({}), event(4, 1, { role: 'user' })],
      'Line 3: role of a line of kind event must be null',
    ],
    [
      'a format that is none',
      [head({}), message(4, 1, { format: 'x' })],
      'format of a line of kind message must be one of',
    ],
  ])('%s', async (_what, lines, message) => {
    await expect(read(exportOf(...lines))).rejects.toThrow(message)
  })

  it('a file of something else', async () => {
    const runs = Buffer.from('{"user":"a","configs":{},"messages":[]}\n')
    await expect(read(runs)).rejects.toThrow('Line 1: this is not the header of an Annals export.')
    await expect(read(Buffer.from('id,name\n'))).rejects.toThrow('Line 1: it is not JSON')
    await expect(read(Buffer.alloc(0))).rejects.toThrow('Line 1: the file ends before')
  })

  it('a format of the future', async () => {
    const later = Buffer.from(`${JSON.stringify({ ...HEADER, annals_export: 2 })}\n`)
    await expect(read(later)).rejects.toThrow('format version 2; this version of Annals reads version 1')
  })
})

describe('what no export has is refused', () => {
  const chunk = (n: number, bytes: string, more: Line = {}): Line => ({
    kind: 'blob_chunk',
    blob_id: idOf(1),
    n,
    data: Buffer.from(bytes).toString('base64'),
    ...more,
  })
  const blob = (bytes: string, more: Line = {}): Line => ({
    kind: 'blob',
    id: idOf(1),
    sha256: createHash('sha256').update(bytes).digest('hex'),
    bytes: bytes.length,
    created_at: '2026-11-21T09:30:00.123456Z',
    ...more,
  })

  it.each<[string, Line[], RegExp]>([
    ['a time to live of 0 s', [session(1, { expires_in_s: 0 })], /^Line 2: expires_in_s .* from 1 to/],
    ['a session below itself', [session(1, { parent_id: idOf(1) })], /^Line 2: parent_id must not be/],
    [
      'a circle of parents',
      [3, 1, 2].map((n) => session(n, { parent_id: idOf((n % 3) + 1) })),
      /^Line 4: parent_id must not be/,
    ],
    ['an entry of no bytes', [session(1, { last_seq: 1 }), event(1, 1, { bytes: 0 })], /^Line 3: bytes/],
    ['an event of tokens', [session(1, { last_seq: 1 }), event(1, 1, { tokens: 1 })], /^Line 3: tokens/],
    ['a chunk that is no base64', [chunk(0, '', { data: 'a' }), blob('')], /^Line 2: data must be base64/],
    ['an empty chunk', [chunk(0, ''), blob('')], /^Line 2: data must be 1 to/],
    ['a chunk out of turn', [chunk(1, 'a'), blob('a')], /^Line 2: n must be 0/],
    ['a chunk behind a short one', [chunk(0, 'a'), chunk(1, 'b'), blob('ab')], /^Line 3: the chunk before/],
    ['chunks without a blob', [chunk(0, 'a'), user(1)], /^Line 3: before this line, the line of blob/],
    ['a blob whose hash is none', [blob('', { sha256: 'A' })], /^Line 2: sha256 of a line of kind blob/],
  ])('%s', async (_what, lines, message) => {
    await expect(read(exportOf(...lines))).rejects.toThrow(message)
  })

  it('and a blob has a flaw whose chunks are not those of its bytes or its hash', async () => {
    const flaws: unknown[] = []
    const files = [
      [chunk(0, 'ab'), blob('ab')],
      [chunk(0, 'ab'), blob('ab', { bytes: 3 })],
      [chunk(0, 'ab'), blob('ac')],
      [blob('a')],
      [chunk(0, 'ab'), blob('ab', { id: idOf(2) })],
    ]
    for (const lines of files) {
      const reader = new ExportReader(chunksOf(exportOf(...lines)), registryOf(MODULES).tables)
      for await (const read of reader.read()) flaws.push(read.at(-1)!.followed)
    }
    expect(flaws).toEqual([
      { flaw: undefined },
      { flaw: 'the chunks before it have 2 bytes, and it has 3' },
      { flaw: 'the chunks before it do not have its SHA-256' },
      { flaw: 'the chunks before it have 0 bytes, and it has 1' },
      { flaw: 'the chunks before it are those of another blob' },
    ])
  })
})
