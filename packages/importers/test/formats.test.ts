import { strToU8, zipSync } from 'fflate'
import { describe, expect, it } from 'vitest'
import { FORMAT_NAMES } from '../src/format_names.ts'
import { FORMATS } from '../src/formats.ts'
import { fixture, lines, outline, recordsOf, tallyOf } from './reading.ts'

describe('formats', () => {
  it('have the names that the command line shows', () => {
    expect(FORMATS.map(({ name }) => name).sort()).toEqual([...FORMAT_NAMES].sort())
  })
})

describe('claude-code', () => {
  it('has subagents below their session, takes back what was rewound, marks noise and keeps unknown lines', async () => {
    const records = await recordsOf('claude_code.jsonl')
    expect(tallyOf(records)).toEqual({ read: 16, mapped: 11, kept_raw: 5, refused: 0 })
    expect(outline(records)).toMatchInlineSnapshot(`
      [
        "s1 {"agent":"claude-code"}",
        "s1 source.claude-code.file-history-snapshot (noise) at 10:00:01",
        "s1 {"cwd":"/home/mia/shop","git_branch":"main","version":"2.1.0"}",
        "s1 anthropic user at 10:00:01",
        "s1 {"model":"claude-sonnet-5"}",
        "s1 anthropic assistant at 10:00:02",
        "s1 source.claude-code.progress (noise) at 10:00:03",
        "s1 anthropic user at 10:00:04",
        "s1 anthropic assistant at 10:00:05",
        "s1 anthropic user at 10:00:06",
        "s1 anthropic assistant at 10:00:07",
        "s1 anthropic user at 10:00:08",
        "s1 takes back 2",
        "s1 anthropic assistant at 10:00:09",
        "s2 below s1 {"agent":"claude-code","cwd":"/home/mia/shop","git_branch":"main","version":"2.1.0","agent_id":"a1b2","subagent":true}",
        "s2 anthropic user at 10:00:20",
        "s2 anthropic assistant at 10:00:21",
        "s1 anthropic user at 10:00:22",
        "s1 source.claude-code.system.turn_duration (noise) at 10:00:23",
        "s1 source.claude-code.hologram at 10:00:23",
        "s1 {"title":"Failing tests"}",
        "s1 source.claude-code.summary (noise) at 10:00:23",
      ]
    `)
  })
})

describe('claude-code', () => {
  it('keeps as an event what the command wrote in place of the model', async () => {
    const line = { sessionId: 's', timestamp: '2026-11-20T10:00:00.000Z' }
    const said = {
      role: 'assistant',
      model: '<synthetic>',
      content: [{ type: 'text', text: 'Limit reached' }],
    }
    const log = [
      { ...line, type: 'user', uuid: 'a', parentUuid: null, message: { role: 'user', content: 'Go' } },
      { ...line, type: 'assistant', uuid: 'b', parentUuid: 'a', isApiErrorMessage: true, message: said },
    ]
    expect(outline(await recordsOf('one.jsonl', lines(...log))).slice(-2)).toEqual([
      's1 anthropic user at 10:00:00',
      's1 source.claude-code.api_error at 10:00:00',
    ])
  })

  it('takes nothing back for a prompt that waited in the queue, for it stands where it was typed', async () => {
    const line = (uuid: string, parentUuid: string | null, content: string, type = 'user') => ({
      type,
      uuid,
      parentUuid,
      sessionId: 's',
      timestamp: '2026-11-20T10:00:00.000Z',
      message: { role: type, content },
    })
    const queued = { type: 'queue-operation', operation: 'enqueue', sessionId: 's', content: 'Is it done?' }
    const log = [
      line('a', null, 'Go'),
      line('b', 'a', 'Going.', 'assistant'),
      queued,
      line('c', 'b', 'Go on'),
      line('d', 'c', 'Gone.', 'assistant'),
      line('e', 'b', 'Is it done?'),
    ]
    const takenBack = async (...more: object[]) =>
      outline(
        await recordsOf('one.jsonl', [...log, ...more].map((one) => JSON.stringify(one)).join('\n')),
      ).filter((text) => text.includes('takes back'))
    expect(await takenBack()).toEqual([])
    // Said again at the same place, it was not in the queue any more.
    expect(await takenBack(line('f', 'b', 'Is it done?'))).toHaveLength(1)
  })
})

describe('codex', () => {
  it('has items as messages, and what only repeats them as noise', async () => {
    expect(outline(await recordsOf('codex.jsonl'))).toMatchInlineSnapshot(`
      [
        "s1 {"agent":"codex","cwd":"/home/mia/shop","git_branch":"main","version":"0.70.0","originator":"codex_cli_rs","model_provider":"openai"}",
        "s1 source.codex.session_meta (noise) at 11:00:00",
        "s1 {"model":"gpt-5-codex"}",
        "s1 source.codex.turn_context (noise) at 11:00:01",
        "s1 responses user at 11:00:02",
        "s1 {"title":"List the files"}",
        "s1 source.codex.user_message (noise) at 11:00:02",
        "s1 responses reasoning at 11:00:03",
        "s1 responses function_call at 11:00:04",
        "s1 responses function_call_output at 11:00:05",
        "s1 source.codex.token_count (noise) at 11:00:06",
        "s1 mcp_tool_call_end at 11:00:07",
        "s1 source.codex.ghost_snapshot (noise) at 11:00:08",
        "s1 responses assistant at 11:00:09",
        "s1 source.codex.compacted at 11:00:10",
      ]
    `)
  })
})

describe('openai-chat', () => {
  it('has recorded runs, files for fine-tuning, preferences and logged answers', async () => {
    expect(outline(await recordsOf('openai_chat.jsonl'))).toMatchInlineSnapshot(`
      [
        "s1 of mia {"agent":"gpt-4o","reward":0}",
        "s1 openai system",
        "s1 openai user",
        "s1 openai assistant",
        "s1 openai tool",
        "s1 outcome",
        "s2 {}",
        "s2 openai user",
        "s2 openai assistant",
        "s2 source.openai-chat.run (noise)",
        "s3 {}",
        "s3 openai user",
        "s3 openai assistant",
        "s3 source.openai-chat.run (noise)",
        "s4 {"model":"gpt-4o"}",
        "s4 openai assistant at 11:06:40",
        "s4 source.openai-chat.run (noise) at 11:06:40",
      ]
    `)
  })
})

describe('openai-responses', () => {
  it('has input and output as items', async () => {
    expect(outline(await recordsOf('openai_responses.json'))).toMatchInlineSnapshot(`
      [
        "s1 {"model":"gpt-5","status":"completed"}",
        "s1 responses developer at 11:06:40",
        "s1 responses user at 11:06:40",
        "s1 responses reasoning at 11:06:40",
        "s1 responses function_call at 11:06:40",
        "s1 responses assistant at 11:06:40",
        "s1 source.openai-responses.response (noise) at 11:06:40",
      ]
    `)
  })
})

describe('anthropic', () => {
  it('has requests and batches', async () => {
    expect(outline(await recordsOf('anthropic.json'))).toMatchInlineSnapshot(`
      [
        "s1 {"model":"claude-sonnet-5","metadata":{"user_id":"mia"}}",
        "s1 anthropic system",
        "s1 anthropic user",
        "s1 anthropic assistant",
        "s1 anthropic user",
        "s1 source.anthropic.run (noise)",
      ]
    `)
    expect(outline(await recordsOf('anthropic_batch.jsonl'))).toMatchInlineSnapshot(`
      [
        "s1 {}",
        "s1 anthropic assistant",
        "s1 source.anthropic.run (noise)",
        "s2 {}",
        "s2 source.anthropic.run (noise)",
      ]
    `)
  })
})

describe('gemini', () => {
  it('has contents, sessions of its command line, and prompts of AI Studio', async () => {
    expect(outline(await recordsOf('gemini.json'))).toMatchInlineSnapshot(`
      [
        "s1 {}",
        "s1 gemini system",
        "s1 gemini user",
        "s1 gemini model",
        "s1 gemini user",
        "s1 source.gemini.run (noise)",
      ]
    `)
    expect(outline(await recordsOf('gemini_cli.json'))).toMatchInlineSnapshot(`
      [
        "s1 {"agent":"gemini-cli"}",
        "s1 gemini user at 12:00:01",
        "s1 {"model":"gemini-3-pro"}",
        "s1 gemini model at 12:00:02",
        "s1 gemini model at 12:00:02",
        "s1 gemini user at 12:00:03",
        "s1 source.gemini.info (noise) at 12:00:04",
        "s1 source.gemini.session (noise) at 12:01:00",
      ]
    `)
    expect(outline(await recordsOf('gemini_studio.json'))).toMatchInlineSnapshot(`
      [
        "s1 {"model":"models/gemini-3-pro"}",
        "s1 gemini user",
        "s1 gemini model",
        "s1 gemini model",
        "s1 source.gemini.run (noise)",
      ]
    `)
  })
})

describe('chatgpt', () => {
  it('has the current branch as the session, and another as a fork', async () => {
    expect(outline(await recordsOf('chatgpt.json'))).toMatchInlineSnapshot(`
      [
        "s1 {"agent":"chatgpt","title":"A plot","model":"gpt-5"}",
        "s1 source.chatgpt.text (noise) at 11:06:40",
        "s1 openai user at 11:06:41",
        "s1 openai assistant at 11:06:43",
        "s1 openai tool at 11:06:44",
        "s1 openai assistant at 11:06:45",
        "s1 openai user at 11:06:46",
        "s1 source.chatgpt.conversation (noise) at 11:06:49",
        "s2 fork of s1 {"agent":"chatgpt","title":"A plot","model":"gpt-5","branch":"a1"}",
        "s2 openai assistant at 11:06:42",
      ]
    `)
  })
})

describe('claude-ai', () => {
  it("has branches, results of tools on the user's side, and attached texts", async () => {
    expect(outline(await recordsOf('claude_ai.json'))).toMatchInlineSnapshot(`
      [
        "s1 {"agent":"claude.ai","title":"A letter"}",
        "s1 anthropic user at 13:00:01",
        "s1 anthropic assistant at 13:00:02",
        "s1 anthropic user at 13:00:02",
        "s1 anthropic assistant at 13:00:02",
        "s1 anthropic user at 13:00:04",
        "s1 source.claude-ai.conversation (noise) at 13:05:00",
        "s2 fork of s1 {"agent":"claude.ai","title":"A letter","branch":"m-3"}",
        "s2 anthropic user at 13:00:03",
      ]
    `)
  })
})

describe('atif', () => {
  it('has steps as messages, and subagents below', async () => {
    expect(outline(await recordsOf('atif.json'))).toMatchInlineSnapshot(`
      [
        "s1 {"agent":"harbor","version":"1.0","model":"gpt-5"}",
        "s1 openai system at 14:00:01",
        "s1 openai user at 14:00:02",
        "s1 openai assistant at 14:00:03",
        "s1 openai tool at 14:00:03",
        "s1 source.atif.observation at 14:00:03",
        "s1 openai assistant at 14:00:04",
        "s1 source.atif.trajectory (noise) at 14:00:04",
        "s1 outcome at 14:00:04",
        "s2 below s1 {"agent":"helper","version":"1"}",
        "s2 openai user at 14:00:01",
        "s2 source.atif.trajectory (noise) at 14:00:01",
      ]
    `)
  })
})

describe('inspect', () => {
  it('has samples below their evaluation, with scores', async () => {
    expect(outline(await recordsOf('inspect.json'))).toMatchInlineSnapshot(`
      [
        "s1 {"agent":"inspect","task":"arithmetic","model":"openai/gpt-5","dataset":"sums","status":"success"}",
        "s2 below s1 {"agent":"inspect","task":"arithmetic","model":"openai/gpt-5","sample":1,"epoch":1}",
        "s2 openai user at 15:00:00",
        "s2 openai assistant at 15:00:03",
        "s2 anthropic user at 15:00:07",
        "s2 source.inspect.model (noise) at 15:00:00",
        "s2 source.inspect.tool (noise) at 15:00:03",
        "s2 source.inspect.attachments (noise) at 15:00:03",
        "s2 source.inspect.sample (noise) at 15:00:09",
        "s2 outcome at 15:00:09",
        "s3 below s1 {"agent":"inspect","task":"arithmetic","model":"openai/gpt-5","sample":2,"epoch":1}",
        "s3 openai user at 15:00:00",
        "s3 openai assistant at 15:00:03",
        "s3 anthropic user at 15:00:07",
        "s3 source.inspect.model (noise) at 15:00:00",
        "s3 source.inspect.tool (noise) at 15:00:03",
        "s3 source.inspect.attachments (noise) at 15:00:03",
        "s3 source.inspect.sample (noise) at 15:00:09",
        "s3 outcome at 15:00:09",
        "s1 source.inspect.log (noise) at 15:00:00",
        "s1 outcome at 15:00:10",
      ]
    `)
  })

  it('reads the files of an archive, but for those that only repeat others', async () => {
    const { samples, eval: evaluation, plan, results, stats } = JSON.parse(String(fixture('inspect.json')))
    const files = {
      '_journal/start.json': { version: 2, eval: evaluation, plan },
      'samples/1_epoch_1.json': samples[0],
      '_journal/summaries/1.json': [{ id: 1, epoch: 1, input: '2+2?' }],
      'summaries.json': [{ id: 1, epoch: 1, input: '2+2?' }],
      'reductions.json': [{ scorer: 'match', samples: [{ value: 1, sample_id: 1 }] }],
      'header.json': { version: 2, status: 'success', eval: evaluation, plan, results, stats },
    }
    const packed = zipSync(
      Object.fromEntries(
        Object.entries(files).map(([name, value]) => [name, strToU8(JSON.stringify(value))]),
      ),
    )
    const records = await recordsOf('sums.eval', packed)
    expect(records.filter(({ kind }) => kind === 'warning' || kind === 'refused')).toEqual([])
    const whole = outline(await recordsOf('inspect.json'))
    const read = outline(records)
    expect(read).toEqual(expect.arrayContaining(whole.filter((line) => /^s2 (?!below)/.test(line))))
    expect(read).toContain('s1 source.inspect.reductions (noise)')
  })
})

describe('swe-agent', () => {
  it('has the history, steps without repetitions, and how it ended', async () => {
    expect(outline(await recordsOf('swe_agent.json'))).toMatchInlineSnapshot(`
      [
        "s1 {"agent":"swe-agent","instance":"swe_agent","environment":"swe_main"}",
        "s1 openai system",
        "s1 openai user",
        "s1 openai assistant",
        "s1 openai tool",
        "s1 source.swe-agent.step (noise)",
        "s1 source.swe-agent.run (noise)",
        "s1 outcome",
      ]
    `)
    expect(outline(await recordsOf('mini_swe_agent.json'))).toMatchInlineSnapshot(`
      [
        "s1 {"agent":"swe-agent","instance":"repo__1"}",
        "s1 openai system",
        "s1 openai user at 11:06:40",
        "s1 openai assistant at 11:06:40",
        "s1 source.swe-agent.message at 11:06:40",
        "s1 source.swe-agent.run (noise) at 11:06:40",
        "s1 outcome at 11:06:40",
      ]
    `)
  })
})

describe('tau-bench', () => {
  it('has runs and simulations with their rewards', async () => {
    expect(outline(await recordsOf('tau_bench.json'))).toMatchInlineSnapshot(`
      [
        "s1 of mia_1 {"agent":"tau-bench","task_id":3,"trial":1,"reward":1}",
        "s1 openai system",
        "s1 openai user",
        "s1 openai assistant",
        "s1 openai tool",
        "s1 source.tau-bench.run (noise)",
        "s1 outcome",
      ]
    `)
    expect(outline(await recordsOf('tau2_bench.json'))).toMatchInlineSnapshot(`
      [
        "s1 {"agent":"tau2-bench","model":"gpt-5"}",
        "s2 {"agent":"tau2-bench","task_id":"0","trial":0,"reward":0,"model":"gpt-5"}",
        "s2 openai assistant at 16:00:01",
        "s2 openai user at 16:00:01",
        "s2 openai assistant at 16:00:01",
        "s2 openai tool at 16:00:01",
        "s2 source.tau-bench.simulation (noise) at 16:01:00",
        "s2 outcome at 16:01:00",
        "s1 source.tau-bench.results (noise) at 16:00:00",
      ]
    `)
  })
})

describe('langfuse', () => {
  it('stores what generations repeat once, and tools as calls', async () => {
    expect(outline(await recordsOf('langfuse.json'))).toMatchInlineSnapshot(`
      [
        "s1 of mia {"agent":"support","trace":"t1","tags":["a"]}",
        "s1 source.langfuse.trace (noise) at 17:00:00",
        "s1 {"model":"gpt-5"}",
        "s1 openai user at 17:00:00",
        "s1 openai assistant at 17:00:01",
        "s1 otel.span at 17:00:01",
        "s1 otel.span at 17:00:03",
        "s1 openai tool at 17:00:04",
        "s1 openai assistant at 17:00:05",
        "s1 otel.span at 17:00:05",
        "s1 outcome at 17:00:05",
      ]
    `)
  })
})

describe('langsmith', () => {
  it("has threads, LangChain's messages and failed tools", async () => {
    expect(outline(await recordsOf('langsmith.jsonl'))).toMatchInlineSnapshot(`
      [
        "s1 {"agent":"agent"}",
        "s1 outcome at 18:00:05",
        "s1 {"model":"gpt-5"}",
        "s1 otel.span at 18:00:05",
        "s1 openai user at 18:00:01",
        "s1 openai assistant at 18:00:02",
        "s1 otel.span at 18:00:02",
        "s1 otel.span at 18:00:03",
      ]
    `)
  })

  it('has the runs that its command line writes, whose ids have another name, and tokens of messages and runs', async () => {
    const runs = fixture('langsmith.jsonl').toString().trimEnd().split('\n')
    const [agent, model, tool] = runs.map((line) => JSON.parse(line))
    model.outputs.generations[0][0].message.kwargs.usage_metadata = { input_tokens: 12, output_tokens: 5 }
    Object.assign(agent, { prompt_tokens: 32, completion_tokens: 8 })
    const other = { ...model, id: 'r4', outputs: { output: 'Done' }, prompt_tokens: 20, completion_tokens: 3 }
    const written = [agent, model, tool, other].map(({ id: run_id, ...run }) => ({ run_id, ...run }))
    const records = await recordsOf('runs.jsonl', lines(...written))
    const spans = records.flatMap((record) =>
      record.kind === 'entry' && record.entry.kind === 'event' && record.entry.type === 'otel.span'
        ? [record.entry]
        : [],
    )
    expect(spans.map(({ data }) => data.span_id)).toEqual(['r1', 'r2', 'r3', 'r4'])
    expect(new Set(spans.map(({ id }) => id)).size).toBe(4)
    expect(spans.map(({ data }) => data.usage)).toMatchObject([
      undefined,
      { input_tokens: 12, output_tokens: 5 },
      undefined,
      { input_tokens: 20, output_tokens: 3 },
    ])
  })
})

describe('phoenix', () => {
  it('has flat and nested attributes', async () => {
    expect(outline(await recordsOf('phoenix.jsonl'))).toMatchInlineSnapshot(`
      [
        "s1 of mia {"model":"gpt-5"}",
        "s1 openai user at 19:00:00",
        "s1 openai assistant at 19:00:01",
        "s1 otel.span at 19:00:01",
        "s1 otel.span at 19:00:03",
      ]
    `)
  })
})

describe('otlp', () => {
  it('has the conversations and tools in spans, by the conventions of the package for OpenTelemetry', async () => {
    expect(outline(await recordsOf('otlp.jsonl'))).toMatchInlineSnapshot(`
      [
        "s1 {"model":"gpt-5","service":"shop"}",
        "s1 openai user at 11:06:40",
        "s1 openai assistant at 11:06:41",
        "s1 otel.span at 11:06:41",
        "s1 otel.span at 11:06:43",
        "s1 {"source":"opentelemetry"}",
        "s1 otel.log at 11:06:42",
        "s2 {}",
        "s2 source.otlp.resourceMetrics (noise)",
      ]
    `)
  })
})
