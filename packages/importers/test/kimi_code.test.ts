import { describe, expect, it } from 'vitest'
import { blobsIn, lines, outline, recordsOf } from './reading.ts'

const FOLDER = '.kimi-code/sessions/wd_shop/session_7c0c/agents'
const TOOL = 'Bash_0'

function line(second: number, type: string, more: object = {}) {
  return { type, ...more, time: 1_785_578_400_000 + second * 1_000 }
}

function said(second: number, text: string, origin: object = { kind: 'user' }) {
  const message = { role: 'user', content: [{ type: 'text', text }], toolCalls: [], origin }
  return line(second, 'context.append_message', { message })
}

function looped(second: number, type: string, more: object) {
  return line(second, 'context.append_loop_event', { event: { type, turnId: '0', step: 1, ...more } })
}

const USAGE = { inputOther: 900, output: 40, inputCacheRead: 100, inputCacheCreation: 0 }
const BEGUN = [
  { type: 'metadata', protocol_version: '1.5', created_at: 1_785_578_400_000 },
  line(0, 'profile.bind', {
    modelAlias: 'kimi-k3',
    systemPrompt: 'You help.',
    environmentDisclosure: { cwd: '/shop' },
  }),
  line(1, 'turn.prompt', { input: [{ type: 'text', text: 'List  the files' }] }),
  said(1, 'List  the files'),
]
const ANSWERED = [
  looped(2, 'step.begin', { uuid: 's1' }),
  looped(3, 'content.part', { uuid: 'p1', stepUuid: 's1', part: { type: 'think', think: 'I look.' } }),
  looped(3, 'content.part', { uuid: 'p2', stepUuid: 's1', part: { type: 'text', text: 'Let me see.' } }),
  looped(3, 'tool.call', { toolCallId: TOOL, name: 'Bash', args: { command: 'ls' } }),
  looped(5, 'tool.result', { toolCallId: TOOL, result: { output: 'No such folder', isError: true } }),
  looped(5, 'step.end', { uuid: 's1', usage: USAGE, finishReason: 'tool_use' }),
  line(5, 'usage.record', { model: 'kimi-k3', usage: USAGE, usageScope: 'turn' }),
]

describe('kimi-code', () => {
  it('has what the agent said, called and was told, with its failures, tokens and title', async () => {
    const records = await recordsOf(`${FOLDER}/main/wire.jsonl`, lines(...BEGUN, ...ANSWERED))
    expect(outline(records).filter((one) => !one.includes('noise'))).toEqual([
      's1 {"agent":"kimi-code"}',
      's1 {"cwd":"/shop","model":"kimi-k3"}',
      's1 {"title":"List the files"}',
      's1 openai user at 10:00:01',
      's1 openai assistant at 10:00:03',
      's1 openai assistant at 10:00:03',
      's1 anthropic user at 10:00:05',
      's1 otel.span at 10:00:05',
    ])
    expect(blobsIn(records).slice(1)).toEqual([
      { role: 'assistant', content: 'Let me see.', reasoning_content: 'I look.' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: TOOL, type: 'function', function: { name: 'Bash', arguments: '{"command":"ls"}' } },
        ],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: TOOL, content: 'No such folder', is_error: true }],
      },
    ])
    expect(JSON.stringify(records)).toContain('"input_tokens":900,"output_tokens":40,"cached_tokens":100')
  })

  it('has subagents below their session', async () => {
    const [main] = await recordsOf(`${FOLDER}/main/wire.jsonl`, lines(...BEGUN)).then(sessionsIn)
    const [, below] = await recordsOf(`${FOLDER}/agent-0/wire.jsonl`, lines(...BEGUN)).then(sessionsIn)
    expect(below).toMatchObject({ parent_id: main?.id, configs: { subagent: 'agent-0' } })
  })

  it('takes back the turns that were undone, and goes on after a summary', async () => {
    const records = await recordsOf(
      `${FOLDER}/main/wire.jsonl`,
      lines(
        ...BEGUN,
        ...ANSWERED,
        said(6, 'Again'),
        said(6, 'You are in plan mode.', { kind: 'injection', variant: 'plan_mode' }),
        line(7, 'context.undo', { count: 1 }),
        line(8, 'context.apply_compaction', { summary: 'Files were listed.', compactedCount: 4 }),
      ),
    )
    expect(outline(records)).toContain('s1 takes back 2')
    expect(records.find(({ kind }) => kind === 'compaction')).toMatchObject({
      summary: [{ blob: { role: 'user', content: 'Files were listed.' } }],
    })
  })
})

function sessionsIn(records: Awaited<ReturnType<typeof recordsOf>>) {
  return records.flatMap((record) => (record.kind === 'session' ? [record] : []))
}
