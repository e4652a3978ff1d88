import { zipSync } from 'fflate'
import { describe, expect, it } from 'vitest'
import { type ImportFile, readImport } from '../src/read_import.ts'
import type { ImportRecord } from '../src/records.ts'
import { blobsIn, chunks, entriesIn, recordsOf } from './reading.ts'

const PNG = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, ...Array(40_000).fill(7)])
const JPEG = Uint8Array.from([0xff, 0xd8, 0xff, 0xe0, 1, 2, 3])

interface Said {
  role: string
  content: object
  name?: string
  recipient?: string
  metadata?: object
}

/** An export of one conversation, in which each node follows the one before. */
function exported(...said: Said[]): string {
  const mapping = Object.fromEntries(
    said.map(({ role, content, name, recipient = 'all', metadata = {} }, at) => [
      `n${at}`,
      {
        id: `n${at}`,
        parent: at === 0 ? null : `n${at - 1}`,
        children: at === said.length - 1 ? [] : [`n${at + 1}`],
        message: {
          id: `n${at}`,
          author: { role, name: name ?? null },
          create_time: 1_795_000_000 + at,
          content,
          recipient,
          metadata,
        },
      },
    ]),
  )
  return JSON.stringify([
    { id: 'c1', title: 'Pictures', create_time: 1_795_000_000, current_node: `n${said.length - 1}`, mapping },
  ])
}

const text = (...parts: unknown[]) => ({ content_type: 'text', parts })
const picture = (asset_pointer: string) => ({
  content_type: 'image_asset_pointer',
  asset_pointer,
  size_bytes: 7,
  width: 2,
  height: 2,
})

async function readAll(file: ImportFile): Promise<ImportRecord[]> {
  const records: ImportRecord[] = []
  for await (const record of readImport(file)) records.push(record)
  return records
}

function archive(files: Record<string, Uint8Array>, has_parts = true): ImportFile {
  const bytes = zipSync(files)
  const slice = async (from: number, to: number) => bytes.slice(from, to)
  const parts = has_parts ? { parts: { size: bytes.length, slice } } : {}
  return { name: 'export.zip', bytes: chunks(bytes, 1_000), ...parts }
}

function warningsIn(records: ImportRecord[]): string[] {
  return records.flatMap((record) => (record.kind === 'warning' ? record.reason : []))
}

const PAINTED = exported(
  {
    role: 'user',
    content: { content_type: 'multimodal_text', parts: [picture('file-service://file-Abc1'), 'Paint this'] },
  },
  {
    role: 'assistant',
    recipient: 't2uay3k.sj1i4kz',
    content: { content_type: 'code', text: '{"prompt":"p"}' },
  },
  {
    role: 'tool',
    name: 't2uay3k.sj1i4kz',
    content: { content_type: 'multimodal_text', parts: [picture('sediment://file_00aB?shared=1')] },
  },
  { role: 'assistant', content: text('Here it is.') },
)
const url = (bytes: Uint8Array, type: string) => ({
  type: 'image_url',
  image_url: { url: `data:image/${type};base64,${Buffer.from(bytes).toString('base64')}` },
})

describe('pictures in an export of ChatGPT', () => {
  it.each(['before', 'after'])(
    'become parts of their messages, wherever they stand in the zip: %s it',
    async (at) => {
      const pictures = { 'file-Abc1-photo.png': PNG, 'user-7/file_00aB-1234.dat': JPEG, 'voice.wav': JPEG }
      const conversations = { 'conversations.json': Buffer.from(PAINTED) }
      const records = await readAll(
        archive(at === 'before' ? { ...pictures, ...conversations } : { ...conversations, ...pictures }),
      )
      const [asked, , painted] = blobsIn(records) as { content: unknown }[]
      expect(asked).toEqual({
        role: 'user',
        content: [url(PNG, 'png'), { type: 'text', text: 'Paint this' }],
      })
      expect(painted).toEqual({ role: 'tool', tool_call_id: 'call_n1', content: [url(JPEG, 'jpeg')] })
      expect(warningsIn(records)).toEqual([
        'files in it that are no transcripts, such as pictures, are left out: 1',
      ])
    },
  )

  it('that are not there, are no pictures, or cannot be reached leave a note of their names, and all else is the same', async () => {
    const conversations = { 'conversations.json': Buffer.from(PAINTED) }
    const whole = await readAll(archive({ ...conversations, 'file-Abc1-x.png': PNG, 'file_00aB.png': JPEG }))
    for (const file of [
      archive({ ...conversations, 'file-Abc1-x.png': Buffer.from('no picture') }),
      archive({ ...conversations, 'file-Abc1-x.png': PNG, 'file_00aB.png': JPEG }, false),
    ]) {
      const records = await readAll(file)
      const [asked] = blobsIn(records) as { content: unknown }[]
      expect(asked!.content).toEqual([
        { type: 'text', text: '[picture file-service://file-Abc1]' },
        { type: 'text', text: 'Paint this' },
      ])
      expect(warningsIn(records)).toContain('pictures that are not beside it leave a note of their names: 2')
      expect(entriesIn(records).map(({ id }) => id)).toEqual(entriesIn(whole).map(({ id }) => id))
    }
  })
})

describe('an export of ChatGPT', () => {
  it('has the models that answered, and the time of the conversation where a message has none', async () => {
    const text = (...parts: string[]) => ({ content_type: 'text', parts })
    const untimed = exported(
      { role: 'user', content: text('Hi') },
      { role: 'assistant', content: text('Hello'), metadata: { model_slug: 'gpt-9' } },
    ).replace('"create_time":1795000000,"content"', '"create_time":null,"content"')
    const records = await recordsOf('conversations.json', untimed)
    expect(records).toContainEqual(expect.objectContaining({ kind: 'configs', configs: { model: 'gpt-9' } }))
    expect(entriesIn(records)[0]!.occurred_at).toBe('2026-11-18T11:06:40.000000Z')
  })

  it('has custom instructions as a system message, whether in the content or beside it', async () => {
    const hidden = { is_visually_hidden_from_conversation: true }
    const beside = { about_user_message: 'I am Ada.', about_model_message: 'Be short.' }
    const records = await recordsOf(
      'conversations.json',
      exported(
        {
          role: 'user',
          content: {
            content_type: 'user_editable_context',
            user_profile: 'I am Bo.',
            user_instructions: 'Rhyme.',
          },
          metadata: hidden,
        },
        {
          role: 'user',
          content: { content_type: 'user_editable_context', text: '' },
          metadata: { ...hidden, user_context_message_data: beside },
        },
        { role: 'user', content: text('Hello') },
      ),
    )
    expect(blobsIn(records)).toEqual([
      { role: 'system', content: 'I am Bo.\n\nRhyme.' },
      { role: 'system', content: 'I am Ada.\n\nBe short.' },
      { role: 'user', content: 'Hello' },
    ])
  })

  it('has a canvas as a call with its result, and says which calls failed', async () => {
    const records = await recordsOf(
      'conversations.json',
      exported(
        { role: 'user', content: text('Write it') },
        {
          role: 'assistant',
          recipient: 'canmore.create_textdoc',
          content: { content_type: 'code', text: '{"name":"poem","type":"document","content":"Roses"}' },
        },
        {
          role: 'tool',
          name: 'canmore.create_textdoc',
          content: text('Successfully created text document.'),
          metadata: { canvas: { textdoc_id: 't1' } },
        },
        { role: 'assistant', recipient: 'python', content: { content_type: 'code', text: '1/0' } },
        {
          role: 'tool',
          name: 'python',
          content: { content_type: 'execution_output', text: 'ZeroDivisionError' },
          metadata: { aggregate_result: { status: 'failed_with_in_kernel_exception' } },
        },
        { role: 'assistant', recipient: 'browser', content: { content_type: 'code', text: 'search("x")' } },
        {
          role: 'tool',
          name: 'browser',
          content: { content_type: 'system_error', name: 'E', text: 'Timed out' },
        },
      ),
    )
    const [, create, created, , failed, , broken] = blobsIn(records)
    const called = { name: 'canmore.create_textdoc', arguments: expect.stringContaining('"poem"') }
    expect(create).toMatchObject({ tool_calls: [{ id: 'call_n1', function: called }] })
    expect(created).toMatchObject({ role: 'tool', tool_call_id: 'call_n1' })
    expect(failed).toMatchObject({ content: [{ tool_use_id: 'call_n3', is_error: true }] })
    expect(broken).toMatchObject({
      content: [{ tool_use_id: 'call_n5', content: 'Timed out', is_error: true }],
    })
  })
})
