import { describe, expect, it } from 'vitest'
import { outline, recordsOf } from './reading.ts'

describe('what is found beside the forms that are described', () => {
  it('trajectories of ATIF: lines of steps after a line about them, and versions without a prefix', async () => {
    const lines = [
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
    const records = await recordsOf('run.jsonl', lines.map((line) => JSON.stringify(line)).join('\n'))
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
})
