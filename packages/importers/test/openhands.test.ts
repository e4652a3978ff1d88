import { describe, expect, it } from 'vitest'
import { readImport } from '../src/read_import.ts'
import type { ImportRecord } from '../src/records.ts'
import { blobsIn, chunks, entriesIn, formatOf, recordsOf } from './reading.ts'

const STAMP = '2026-10-01T10:00:00.000001'
const ID = '7b0e3a52-0000-4000-8000-00000000000'
const EVENTS = [
  {
    kind: 'MessageEvent',
    source: 'user',
    llm_message: { role: 'user', content: [{ type: 'text', text: 'List.' }] },
  },
  {
    kind: 'ActionEvent',
    source: 'agent',
    tool_name: 'terminal',
    tool_call_id: 'c1',
    tool_call: { id: 'c1', name: 'terminal', arguments: '{"command":"ls"}' },
    thought: [],
  },
  {
    kind: 'ObservationEvent',
    source: 'environment',
    tool_name: 'terminal',
    tool_call_id: 'c1',
    observation: { content: [{ type: 'text', text: 'a.ts' }], is_error: false },
  },
  { kind: 'PauseEvent', source: 'user' },
  { kind: 'ConversationErrorEvent', source: 'environment', code: 'LLMError', detail: 'no' },
].map((event, at) => ({ id: `${ID}${at}`, timestamp: STAMP, ...event }))

async function folderOf(name: (file: string) => string, folder?: string): Promise<ImportRecord[]> {
  const records: ImportRecord[] = []
  for (const [at, event] of EVENTS.entries()) {
    const bytes = chunks(Buffer.from(JSON.stringify(event, null, 2)))
    const file = { name: name(`event-0000${at}-${event.id}.json`), bytes, ...(folder && { folder }) }
    for await (const record of readImport(file)) records.push(record)
  }
  return records
}

const sessionsIn = (records: ImportRecord[]) =>
  new Set(records.flatMap((record) => (record.kind === 'entry' ? record.session_id : [])))

describe('conversations of OpenHands', () => {
  it('are one session, whose events are a file each, however its folder is given', async () => {
    const records = await folderOf((file) => `abc/events/${file}`)
    expect(sessionsIn(records).size).toBe(1)
    expect(blobsIn(records)).toMatchObject([
      { role: 'user', content: 'List.' },
      { role: 'assistant', tool_calls: [{ id: 'c1' }] },
      { role: 'tool', tool_call_id: 'c1', content: 'a.ts' },
    ])
    const entries = entriesIn(records)
    expect(entries).toHaveLength(5)
    expect(new Set(entries.map(({ id }) => id)).size).toBe(5)
    expect(entries.every(({ occurred_at }) => occurred_at === `${STAMP}Z`)).toBe(true)
    for (const other of [
      await folderOf((file) => file, 'abc/events'),
      await folderOf((file) => `abc/${file}`),
    ])
      expect(entriesIn(other)).toEqual(entries)
    expect(sessionsIn(await folderOf((file) => `def/events/${file}`))).not.toEqual(sessionsIn(records))
  })

  it('before version 1 have results of tools alone, and not of what OpenHands does itself', async () => {
    const made = (id: number, more: object) => ({ id, timestamp: STAMP, ...more })
    const records = await recordsOf(
      'trajectory.json',
      JSON.stringify([
        made(0, { source: 'user', action: 'message', args: { content: 'List.' } }),
        made(1, { source: 'user', action: 'recall', args: { query: 'List.' } }),
        made(2, { source: 'environment', observation: 'recall', cause: 1, content: 'Added context' }),
        made(3, { source: 'agent', action: 'run', args: { command: 'ls', thought: 'I look.' } }),
        made(4, { source: 'agent', observation: 'run', cause: 3, content: 'a.ts' }),
        made(5, { source: 'agent', action: 'condensation', args: { summary: 'So far.' } }),
        made(6, { source: 'environment', observation: 'null', cause: 5, content: '' }),
      ]),
    )
    expect(formatOf(records)).toBe('conversations')
    expect(blobsIn(records)).toMatchObject([
      { role: 'user', content: 'List.' },
      { role: 'assistant', content: 'I look.', tool_calls: [{ id: 'call_3' }] },
      { role: 'tool', tool_call_id: 'call_3', content: 'a.ts' },
    ])
    expect(entriesIn(records)).toHaveLength(7)
  })
})
