import { describe, expect, it } from 'vitest'
import { FORMAT_NAMES } from '../src/format_names.ts'
import { FORMATS } from '../src/formats.ts'
import { outline, recordsOf, tallyOf } from './reading.ts'

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
        "s1 source.claude-code.file-history-snapshot (noise)",
        "s1 {"agent":"claude-code","cwd":"/home/mia/shop","git_branch":"main","version":"2.1.0"}",
        "s1 anthropic user at 10:00:01",
        "s1 {"model":"claude-sonnet-5"}",
        "s1 anthropic assistant at 10:00:02",
        "s1 source.claude-code.progress (noise) at 10:00:03",
        "s1 anthropic user at 10:00:04",
        "s1 anthropic assistant at 10:00:05",
        "s1 anthropic user at 10:00:06",
        "s1 anthropic assistant at 10:00:07",
        "s1 takes back 2",
        "s1 anthropic user at 10:00:08",
        "s1 anthropic assistant at 10:00:09",
        "s2 below s1 {"agent":"claude-code","cwd":"/home/mia/shop","git_branch":"main","version":"2.1.0","agent_id":"a1b2","subagent":true}",
        "s2 anthropic user at 10:00:20",
        "s2 anthropic assistant at 10:00:21",
        "s1 anthropic user at 10:00:22",
        "s1 source.claude-code.system.turn_duration at 10:00:23",
        "s1 source.claude-code.hologram",
        "s1 {"title":"Failing tests"}",
        "s1 source.claude-code.summary",
      ]
    `)
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
        "s4 source.openai-chat.run (noise)",
      ]
    `)
  })
})

describe('openai-responses', () => {
  it('has input and output as items', async () => {
    expect(outline(await recordsOf('openai_responses.json'))).toMatchInlineSnapshot(`
      [
        "s1 {"model":"gpt-5","status":"completed"}",
        "s1 responses developer",
        "s1 responses user",
        "s1 responses reasoning at 11:06:40",
        "s1 responses function_call at 11:06:40",
        "s1 responses assistant at 11:06:40",
        "s1 source.openai-responses.response (noise) at 11:06:40",
      ]
    `)
  })
})
