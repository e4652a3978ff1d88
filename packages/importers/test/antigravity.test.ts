import { describe, expect, it } from 'vitest'
import { readImport } from '../src/read_import.ts'
import type { ImportRecord } from '../src/records.ts'
import { blobsIn, chunks, lines, outline, recordsOf } from './reading.ts'

const LOGS = 'brain/aaaa1111/.system_generated/logs'

function step(step_index: number, source: string, type: string, more: object = {}) {
  return { step_index, source, type, status: 'DONE', created_at: `2026-06-26T21:16:0${step_index}Z`, ...more }
}

const REQUEST =
  '<USER_REQUEST>\nList  them.\n</USER_REQUEST>\n<USER_SETTINGS_CHANGE>\nThe user changed setting `Model Selection` from None to Gemini 3.5 Pro.\n</USER_SETTINGS_CHANGE>'
const CALLS = [
  { name: 'list_dir', args: { DirectoryPath: '"/w"', Depth: '2' } },
  { name: 'run_command', args: { CommandLine: '"make"' } },
]
const TRANSCRIPT = lines(
  step(0, 'USER_EXPLICIT', 'USER_INPUT', { content: REQUEST }),
  step(1, 'SYSTEM', 'CONVERSATION_HISTORY'),
  step(2, 'MODEL', 'PLANNER_RESPONSE', { thinking: 'I look.', tool_calls: CALLS }),
  step(3, 'MODEL', 'LIST_DIRECTORY', { content: 'a.md' }),
  step(4, 'MODEL', 'RUN_COMMAND', { status: 'ERROR', content: 'No rule' }),
  step(5, 'SYSTEM', 'CHECKPOINT', { content: '# So far' }),
  step(6, 'MODEL', 'PLANNER_RESPONSE', { content: 'There is a.md.' }),
)

describe('antigravity', () => {
  it('has what was asked and answered, and joins calls and results that name each other nowhere', async () => {
    const records = await recordsOf(`${LOGS}/transcript.jsonl`, TRANSCRIPT)
    expect(outline(records)).toEqual([
      's1 {"agent":"antigravity"}',
      's1 {"model":"Gemini 3.5 Pro"}',
      's1 {"title":"List them."}',
      's1 openai user at 21:16:00',
      's1 source.antigravity.CONVERSATION_HISTORY (noise) at 21:16:01',
      's1 openai assistant at 21:16:02',
      's1 openai tool at 21:16:03',
      's1 anthropic user at 21:16:04',
      's1 source.antigravity.CHECKPOINT at 21:16:05',
      's1 openai assistant at 21:16:06',
    ])
    const [, called, listed, failed] = blobsIn(records)
    expect(called).toMatchObject({
      reasoning_content: 'I look.',
      tool_calls: [
        { id: 'call_2_0', function: { name: 'list_dir', arguments: '{"DirectoryPath":"/w","Depth":2}' } },
        { id: 'call_2_1', function: { name: 'run_command' } },
      ],
    })
    expect(listed).toEqual({ role: 'tool', tool_call_id: 'call_2_0', content: 'a.md' })
    expect(failed).toMatchObject({ content: [{ tool_use_id: 'call_2_1', is_error: true }] })
  })

  it('is read once where the whole transcript stands beside the one that is cut', async () => {
    const beside = {
      names: async () => ['transcript.jsonl', 'transcript_full.jsonl'],
      read: async () => undefined,
    }
    const read = async (name: string) => {
      const records: ImportRecord[] = []
      const bytes = chunks(Buffer.from(TRANSCRIPT))
      for await (const one of readImport({ name, bytes, folder: LOGS, beside })) records.push(one)
      return records.filter(({ kind }) => kind === 'entry').length
    }
    expect(await read('transcript.jsonl')).toBe(0)
    expect(await read('transcript_full.jsonl')).toBe(7)
  })
})
