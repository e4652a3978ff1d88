import type { TimelineItem } from '@annals/client'
import { describe, expect, it } from 'vitest'
import { type ExportFormat, exportSession } from '../src/exporting/export_session.ts'
import type { ImportedEntry } from '../src/records.ts'
import { recordsOf } from './reading.ts'

const SESSION = {
  id: '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6e',
  project_id: '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6f',
  user_id: null,
  configs: { agent: 'shop', model: 'gpt-5', n: 1 },
  disable_task_tracking: false,
  created_at: '2026-11-20T10:00:00.000000Z',
  updated_at: '2026-11-20T10:00:00.000000Z',
}

/** Entries as an import gives them, as the timeline shows them. */
async function* timeline(entries: object[]): AsyncGenerator<TimelineItem> {
  for (const [index, entry] of entries.entries())
    yield {
      seq: index + 1,
      meta: null,
      parent_id: null,
      created_at: SESSION.created_at,
      ...entry,
    } as unknown as TimelineItem
}

async function exported(entries: object[], format: ExportFormat) {
  const omitted = new Map<string, number>()
  let text = ''
  for await (const part of exportSession(
    { session: SESSION, user: 'mia', entries: timeline(entries) },
    format,
    omitted,
  ))
    text += part
  return { text, omitted: Object.fromEntries(omitted) }
}

async function entriesOf(name: string, text?: string): Promise<Omit<ImportedEntry, 'id'>[]> {
  const records = await recordsOf(name, text)
  return records.flatMap((record) => {
    if (record.kind !== 'entry') return []
    const { id: _, ...entry } = record.entry
    return entry
  })
}

describe('a session in ATIF', () => {
  it.each([
    'claude_code.jsonl',
    'codex.jsonl',
    'gemini_cli.json',
    'chatgpt.json',
    'langfuse.json',
    'openai_chat.jsonl',
  ])('gives the same entries when it is read again: %s', async (name) => {
    const entries = (await entriesOf(name)).map((entry) => ({ ...entry, key: 'k' }))
    const { text } = await exported([{ kind: 'event', type: 'early', data: {} }, ...entries], 'atif')
    expect(await entriesOf('out.json', text)).toEqual([
      { kind: 'event', type: 'early', data: {} },
      ...entries,
    ])
    const [session] = await recordsOf('out.json', text)
    expect(session).toMatchObject({ kind: 'format', format: 'atif' })
  })

  it('has calls with their results in one step, needs nothing beside what ATIF says, and names what it cannot', async () => {
    const call = { id: 'c1', type: 'function', function: { name: 'find', arguments: '{"q":1}' } }
    const message = (blob: object) => ({
      kind: 'message',
      format: 'openai',
      blob,
      occurred_at: '2026-11-20T10:00:01.000000Z',
    })
    const entries = [
      message({ role: 'user', content: 'Find it' }),
      message({ role: 'assistant', content: null, tool_calls: [call] }),
      message({ role: 'tool', tool_call_id: 'c1', content: 'there' }),
      { kind: 'event', type: 'note', data: {} },
      { ...message({ role: 'user', content: 'Wrong' }), retracted_by: 9 },
    ]
    const { text, omitted } = await exported(entries, 'atif')
    const { steps, notes, final_metrics } = JSON.parse(text)
    expect(steps).toMatchObject([
      { step_id: 1, source: 'user', message: 'Find it' },
      {
        step_id: 2,
        source: 'agent',
        tool_calls: [{ tool_call_id: 'c1', function_name: 'find', arguments: { q: 1 } }],
        observation: { results: [{ source_call_id: 'c1', content: 'there' }] },
      },
    ])
    expect(steps[0].extra).toBeUndefined()
    expect(final_metrics).toEqual({ total_steps: 2, extra: { omitted } })
    expect(omitted).toEqual({ 'event note': 1, 'was retracted': 1 })
    expect(notes).toContain('event note (1)')
  })
})

describe('a session as a conversation', () => {
  it('is what the providers take, and names what they do not', async () => {
    const codex = await entriesOf('codex.jsonl')
    const openai = await exported(codex, 'openai')
    expect(JSON.parse(openai.text)).toMatchObject({
      user: 'mia',
      messages: [
        { role: 'user', content: 'List the files' },
        { role: 'assistant', tool_calls: [{ function: { name: 'shell' } }] },
        { role: 'tool' },
        { role: 'assistant', content: 'There are none.' },
      ],
    })
    expect(openai.omitted).toMatchObject({ 'thinking of a message': 1, 'event mcp_tool_call_end': 1 })
    const system = { kind: 'message', format: 'openai', blob: { role: 'system', content: 'Be brief.' } }
    const anthropic = await exported([system, ...codex], 'anthropic')
    expect(JSON.parse(anthropic.text)).toMatchObject({
      system: 'Be brief.',
      messages: [{ role: 'user' }, { role: 'assistant' }, {}, {}],
    })
    const jsonl = await exported(codex, 'jsonl')
    expect(jsonl.text.trimEnd().split('\n')).toHaveLength(codex.length + 1)
    expect(jsonl.omitted).toEqual({})
  })
})
