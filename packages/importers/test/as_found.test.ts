import { describe, expect, it } from 'vitest'
import { lines, outline, recordsOf } from './reading.ts'

describe('what is found beside the forms that are described', () => {
  it('trajectories of ATIF: lines of steps after a line about them, and versions without a prefix', async () => {
    const steps = [
      { schema_version: '1.4', session_id: 'a', agent: { name: 'shop', version: '1', model: 'small-1' } },
      { step_id: 1, source: 'user', message: 'Ship it', timestamp: '2026-03-01T14:00:00Z' },
      {
        step_id: 2,
        source: 'agent',
        message: '',
        tool_calls: [{ tool_call_id: 'c1', function_name: 'ship', arguments: {} }],
        observation: { results: [{ source_call_id: 'c1', content: { passed: false, output: 'no box' } }] },
      },
      { schema_version: '1.4', session_id: 'b', agent: { name: 'shop', version: '1' } },
      { step_id: 1, source: 'user', message: 'Pack it' },
    ]
    const records = await recordsOf('run.jsonl', lines(...steps))
    expect(outline(records)).toMatchInlineSnapshot(`
      [
        "s1 {"agent":"shop","version":"1","model":"small-1"}",
        "s1 source.atif.trajectory (noise)",
        "s1 openai user at 14:00:00",
        "s1 openai assistant at 14:00:00",
        "s1 openai tool at 14:00:00",
        "s2 {"agent":"shop","version":"1"}",
        "s2 source.atif.trajectory (noise)",
        "s2 openai user",
      ]
    `)
    const result = records.find(
      (record) => record.kind === 'entry' && JSON.stringify(record).includes('no box'),
    )
    expect(result).toMatchObject({
      entry: { blob: { role: 'tool', tool_call_id: 'c1', content: '{"passed":false,"output":"no box"}' } },
    })
  })

  it("answers of Langfuse's API: a trace, a page of traces, and either in the envelope of a gateway", async () => {
    const generation = {
      id: 'o1',
      traceId: 't1',
      type: 'GENERATION',
      name: 'chat',
      startTime: '2026-03-01T17:00:00Z',
      endTime: '2026-03-01T17:00:01Z',
      input: [{ role: 'user', content: 'Where is it?' }],
      output: 'On its way.',
    }
    const trace = { id: 't1', timestamp: '2026-03-01T17:00:00Z', observations: [generation] }
    const listed = { ...trace, observations: ['o1'] }
    const said = async (answer: object) => outline(await recordsOf('answer.json', JSON.stringify(answer)))
    const whole = await said(trace)
    expect(whole).toContain('s1 openai user at 17:00:00')
    const meta = { page: 1 }
    expect(await said({ data: [trace], meta })).toEqual(whole)
    expect(await said({ message: 'ok', data: trace })).toEqual(whole)
    expect(await said({ message: 'ok', data: { data: [trace], meta } })).toEqual(whole)
    expect(await said({ data: [listed], meta })).toEqual([
      's1 {"trace":"t1"}',
      's1 source.langfuse.trace (noise) at 17:00:00',
    ])
  })

  describe("what Langfuse's page downloads: a trace, and its observations beside it", () => {
    let count = 0
    const observed = (type: string, at: number, about: object) => ({
      id: `o${count++}`,
      traceId: 't1',
      type,
      name: 'chat',
      startTime: `2026-03-01T17:00:0${at}Z`,
      endTime: `2026-03-01T17:00:0${at + 1}Z`,
      ...about,
    })
    const download = async (...observations: object[]) => {
      const trace = { id: 't1', projectId: 'p', name: 'agent', timestamp: '2026-03-01T17:00:00Z' }
      const records = await recordsOf('trace.json', JSON.stringify({ trace, observations }))
      const entries = records.flatMap((record) => (record.kind === 'entry' ? [record.entry] : []))
      return {
        outline: outline(records),
        messages: entries.flatMap((entry) => (entry.kind === 'message' ? [entry.blob] : [])),
        tools: entries.flatMap((entry) =>
          entry.kind === 'event' && entry.data.operation === 'tool' ? [entry.data.tool] : [],
        ),
      }
    }
    const asked = { role: 'user', content: 'How is it there?' }
    const callOf = (id: string, args: string) => ({
      role: 'assistant',
      content: null,
      tool_calls: [{ id, type: 'function', function: { name: 'weather', arguments: args } }],
    })
    const resultOf = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'Rain.' })
    const said = { role: 'assistant', content: 'It rains.' }

    it('is stored in the order in which things ended, and what called others comes last', async () => {
      const { outline: told } = await download(
        observed('AGENT', 0, { endTime: '2026-03-01T17:00:09Z', name: 'agent' }),
        observed('GENERATION', 5, { input: [asked, said, asked], output: said }),
        observed('GENERATION', 1, { input: [asked], output: said }),
      )
      expect(told).toMatchInlineSnapshot(`
        [
          "s1 {"agent":"agent","trace":"t1"}",
          "s1 source.langfuse.trace (noise) at 17:00:00",
          "s1 openai user at 17:00:01",
          "s1 openai assistant at 17:00:02",
          "s1 otel.span at 17:00:02",
          "s1 openai user at 17:00:05",
          "s1 openai assistant at 17:00:06",
          "s1 otel.span at 17:00:06",
          "s1 otel.span at 17:00:09",
        ]
      `)
    })

    it('has the parts of the conventions for generative AI, also with an id of two parts', async () => {
      const ask = { role: 'user', parts: [{ type: 'text', content: 'How is it there?' }] }
      const id = ['run_7', 'call_7']
      const call = {
        role: 'assistant',
        parts: [{ type: 'tool_call', id, name: 'weather', arguments: { at: 'sea' } }],
      }
      const result = { role: 'tool', parts: [{ type: 'tool_call_response', id, response: 'Rain.' }] }
      const answer = { role: 'assistant', parts: [{ type: 'text', content: 'It rains.' }] }
      const { messages } = await download(
        observed('GENERATION', 0, { input: [ask], output: [call] }),
        observed('GENERATION', 2, { input: [ask, call, result], output: [answer] }),
      )
      expect(messages).toEqual([asked, callOf('call_7', '{"at":"sea"}'), resultOf('call_7'), said])
    })

    it('has the items of Responses, whose calls have a second id', async () => {
      const call = { type: 'function_call', id: 'fc_1', call_id: 'call_a', name: 'weather', arguments: '{}' }
      const result = { type: 'function_call_output', call_id: 'call_a', output: 'Rain.' }
      const answer = {
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'It rains.' }],
      }
      const { messages } = await download(
        observed('GENERATION', 0, { input: [asked], output: { object: 'response', output: [call] } }),
        observed('GENERATION', 2, { input: [asked, call, result], output: { output: [answer] } }),
      )
      expect(messages).toEqual([asked, callOf('call_a', '{}'), resultOf('call_a'), said])
    })

    it("has Gemini's contents, whose calls have no ids, and instructions beside them", async () => {
      const config = { system_instruction: 'Be brief.' }
      const ask = { role: 'user', parts: [{ text: 'How is it there?' }] }
      const call = { role: 'model', parts: [{ function_call: { name: 'weather', args: {} } }] }
      const response = { name: 'weather', response: { result: 'Rain.' } }
      const result = { role: 'user', parts: [{ function_response: response }] }
      const { messages } = await download(
        observed('GENERATION', 0, { input: { config, contents: [ask] }, output: { content: call } }),
        observed('GENERATION', 2, {
          input: { config, contents: [ask, call, result] },
          output: { candidates: [{ content: { role: 'model', parts: [{ text: 'It rains.' }] } }] },
        }),
      )
      expect(messages).toEqual([
        { role: 'system', content: 'Be brief.' },
        asked,
        callOf('call_1', '{}'),
        { ...resultOf('call_1'), content: '{"result":"Rain."}' },
        said,
      ])
    })

    it('has calls among the blocks of a message, and failed results', async () => {
      const call = {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 'k1', name: 'weather', input: {} }],
      }
      const failed = { type: 'tool_result', tool_use_id: 'k1', content: 'no sea', is_error: true }
      const { messages } = await download(
        observed('GENERATION', 0, { input: { messages: [asked] }, output: call }),
        observed('GENERATION', 2, {
          input: { messages: [asked, call, { role: 'user', content: [failed] }] },
          output: 'It rains.',
        }),
      )
      expect(messages).toEqual([asked, callOf('k1', '{}'), { role: 'user', content: [failed] }, said])
    })

    it('says a call once, however a context is arranged that repeats it, and says no definitions of tools', async () => {
      const call = callOf('call_a', '{}')
      const defined = { role: 'tool', content: { type: 'function', function: { name: 'weather' } } }
      const { messages } = await download(
        observed('GENERATION', 0, { input: [asked, defined], output: call }),
        observed('GENERATION', 2, { input: [call, resultOf('call_a')], output: said }),
      )
      expect(messages).toEqual([asked, call, resultOf('call_a'), said])
    })

    it('names the tools that were called, by what was sent or by what they returned', async () => {
      const sent = { 'gen_ai.tool.name': 'weather', 'gen_ai.tool.call.id': 'call_a' }
      const inference = { 'tool.name': 'find', 'openinference.span.kind': 'TOOL' }
      const { tools } = await download(
        observed('SPAN', 0, { name: 'tool.weather', metadata: { attributes: sent }, output: 'Rain.' }),
        observed('SPAN', 1, {
          name: 'Find',
          metadata: JSON.stringify({ attributes: inference }),
          output: '3',
        }),
        observed('SPAN', 2, {
          name: 'Look',
          output: { type: 'tool', name: 'look', tool_call_id: 'k2', content: 'a bay' },
        }),
      )
      expect(tools).toEqual([
        { name: 'weather', id: 'call_a', arguments: {}, result: 'Rain.' },
        { name: 'find', arguments: {}, result: '3' },
        { name: 'look', id: 'k2', arguments: {}, result: 'a bay' },
      ])
    })
  })

  describe('runs of LangSmith of which an export has only some', () => {
    const run = {
      id: 'r1',
      trace_id: 'r1',
      parent_run_id: null,
      name: 'LangGraph',
      run_type: 'chain',
      start_time: '2026-03-01T17:00:00Z',
      end_time: '2026-03-01T17:00:03Z',
      inputs: { messages: [{ type: 'human', content: 'Where is it?' }] },
      outputs: {
        messages: [
          { type: 'human', content: 'Where is it?' },
          { type: 'ai', content: 'On its way.', tool_calls: [] },
        ],
      },
    }
    const model = {
      ...run,
      id: 'r2',
      parent_run_id: 'r1',
      run_type: 'llm',
      inputs: { messages: [[{ role: 'user', content: 'Where is it?' }]] },
      outputs: { output: 'On its way.' },
    }
    const read = async (...runs: object[]) =>
      outline(await recordsOf('runs.jsonl', runs.map((one) => JSON.stringify(one)).join('\n')))
    const conversation = ['s1 openai user at 17:00:00', 's1 openai assistant at 17:00:03']
    const spoken = (told: string[]) => told.filter((line) => line.includes(' openai '))

    it('have the conversation in the roots, where no run of a model is there', async () => {
      const told = await read(run)
      expect(spoken(told)).toEqual(conversation)
      expect(told.at(-1)).toBe('s1 otel.span at 17:00:03')
      expect(spoken(await read(run, { ...run, id: 'r5', trace_id: 'r5' }))).toHaveLength(4)
    })

    it('have it in the runs of the model, where these are there, in either order', async () => {
      expect(spoken(await read(run, model))).toEqual(conversation)
      expect(spoken(await read(model, run))).toEqual(conversation)
    })

    it('are known without their types, and those of models by what they were asked', async () => {
      const { run_type: _, trace_id: __, parent_run_id: ___, ...some } = model
      const told = await recordsOf('runs.jsonl', JSON.stringify(some))
      expect(spoken(outline(told))).toEqual(conversation)
      expect(JSON.stringify(told)).toContain('"operation":"model"')
    })
  })

  it("events of Claude's managed agents: a page of them, and lines that somebody wrote of them", async () => {
    const eventOf = (id: string, type: string, second: number, about: object = {}) => ({
      id: `sevt_${id}`,
      type,
      processed_at: `2026-03-01T17:00:0${second}.5Z`,
      ...about,
    })
    const text = (words: string) => ({ content: [{ type: 'text', text: words }] })
    const usage = {
      input_tokens: 3,
      output_tokens: 4,
      cache_read_input_tokens: 50,
      cache_creation_input_tokens: 6,
    }
    const events = [
      eventOf('1', 'session.thread_status_running', 0, { agent_name: 'auditor' }),
      eventOf('2', 'user.message', 0, text('Ship it')),
      eventOf('3', 'agent.message', 1, text('I will.')),
      eventOf('4', 'agent.tool_use', 1, { name: 'bash', input: { command: 'ship' } }),
      eventOf('5', 'span.model_request_end', 1, { is_error: false, model_usage: usage }),
      eventOf('6', 'agent.tool_result', 2, { tool_use_id: 'sevt_4', is_error: true, ...text('no box') }),
      eventOf('7', 'agent.mcp_tool_use', 3, { name: 'find', input: {}, mcp_server_name: 'shop' }),
      eventOf('8', 'agent.mcp_tool_result', 4, { mcp_tool_use_id: 'sevt_7', ...text('a box') }),
      eventOf('9', 'span.outcome_evaluation_end', 5, { result: 'satisfied', explanation: 'It is there.' }),
    ]
    const written = events.map((raw) => ({ role: 'system', kind: 'event', time: raw.processed_at, raw }))
    const whole = await recordsOf('events.json', JSON.stringify({ data: events, next_page: null }))
    const told = outline(whole)
    expect(told).toMatchInlineSnapshot(`
      [
        "s1 {"agent":"auditor"}",
        "s1 source.conversations.session.thread_status_running (noise) at 17:00:00",
        "s1 openai user at 17:00:00",
        "s1 openai assistant at 17:00:01",
        "s1 openai assistant at 17:00:01",
        "s1 otel.span at 17:00:01",
        "s1 anthropic user at 17:00:02",
        "s1 openai assistant at 17:00:03",
        "s1 openai tool at 17:00:04",
        "s1 outcome at 17:00:05",
      ]
    `)
    expect(outline(await recordsOf('transcript.jsonl', lines(...written)))).toEqual(told)
    const entries = JSON.stringify(whole)
    expect(entries).toContain('"cached_tokens":50')
    expect(entries).toContain('"tool_use_id":"sevt_4","content":"no box","is_error":true')
  })

  it('several runs of Gemini CLI in one file, each after what its caller put above it', async () => {
    const asked = (words: string, second: number) => ({
      type: 'message',
      role: 'user',
      content: words,
      ts: `2026-03-01T17:00:0${second}Z`,
    })
    const begun = (session_id: string) => ({ type: 'init', session_id, model: 'gemini-3' })
    const done = { type: 'result', status: 'success', stats: {}, timestamp: '2026-03-01T17:00:02Z' }
    const file = lines(asked('First', 1), begun('a'), done, asked('Second', 5), begun('b'), asked('It', 6))
    const told = outline(await recordsOf('transcript.jsonl', file))
    expect(told.filter((line) => line.includes(' gemini '))).toEqual([
      's1 gemini user at 17:00:01',
      's2 gemini user at 17:00:05',
      's2 gemini user at 17:00:06',
    ])
  })
})
