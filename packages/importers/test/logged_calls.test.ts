import { describe, expect, it } from 'vitest'
import type { ImportRecord } from '../src/records.ts'
import { blobsIn, entriesIn, fixture, formatOf, recordsOf } from './reading.ts'

function spansIn(records: ImportRecord[]) {
  return entriesIn(records).flatMap((entry) =>
    entry.kind === 'event' && entry.type === 'otel.span' ? [entry.data] : [],
  )
}

function sessionsIn(records: ImportRecord[]) {
  return new Set(records.flatMap((record) => (record.kind === 'session' ? [record.id] : [])))
}

const HELLO = [
  { role: 'user', content: 'Hello' },
  { role: 'assistant', content: 'Hi.' },
]
const SYSTEM = { role: 'system', content: 'Be short.' }

describe('calls of models that a platform has logged', () => {
  it('say each message of a session once, and join calls with results: Bedrock', async () => {
    const records = await recordsOf('bedrock.jsonl')
    expect(formatOf(records)).toBe('bedrock-logs')
    expect(sessionsIn(records).size).toBe(1)
    expect(blobsIn(records)).toMatchObject([
      SYSTEM,
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'I look.', tool_calls: [{ id: 't1', function: { name: 'weather' } }] },
      { role: 'tool', tool_call_id: 't1', content: 'Rain' },
      { role: 'assistant', content: 'It rains.' },
    ])
    expect(spansIn(records)).toMatchObject([
      { model: 'anthropic.claude-sonnet-4', usage: { input_tokens: 9, output_tokens: 4 } },
      { usage: { input_tokens: 20, output_tokens: 3 } },
    ])
  })

  it.each([
    ['vertex.jsonl', 'vertex-logs', 'gemini-2.5-pro', [SYSTEM, ...HELLO]],
    ['braintrust.jsonl', 'braintrust', 'gpt-5', HELLO],
    ['helicone.jsonl', 'helicone', 'gpt-5', HELLO],
    ['weave.jsonl', 'weave', 'gpt-5', HELLO],
  ])('have messages, models and tokens: %s', async (name, format, model, said) => {
    const records = await recordsOf(name)
    expect(formatOf(records)).toBe(format)
    expect(blobsIn(records)).toEqual(said)
    expect(sessionsIn(records).size).toBe(1)
    const [span] = spansIn(records)
    expect(span).toMatchObject({ operation: 'model', model, usage: { input_tokens: 9, output_tokens: 2 } })
    expect(entriesIn(records).every(({ occurred_at }) => occurred_at?.startsWith('2026-01-15T10:00:0'))).toBe(
      true,
    )
  })

  it.each(['braintrust.jsonl', 'weave.jsonl'])('say which tool failed, and why: %s', async (name) => {
    const [, tool] = spansIn(await recordsOf(name))
    expect(tool).toMatchObject({
      operation: 'tool',
      tool: { name: 'search', arguments: { q: 'x' }, is_error: true },
      error: 'no index',
    })
  })

  it('may come as a page of an API', async () => {
    const calls = fixture('braintrust.jsonl')
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const page = await recordsOf('page.json', JSON.stringify({ events: calls.reverse(), cursor: 'c' }))
    const ids = (records: ImportRecord[]) => spansIn(records).map(({ span_id }) => span_id)
    expect(ids(page)).toEqual(ids(await recordsOf('braintrust.jsonl')))
  })
})

describe('traces of other tracers', () => {
  it.each(['jaeger.json', 'zipkin.json'])('mean what those of OpenTelemetry mean: %s', async (name) => {
    const records = await recordsOf(name)
    expect(formatOf(records)).toBe(name.replace('.json', ''))
    expect(blobsIn(records)).toEqual(HELLO)
    expect(spansIn(records)).toMatchObject([
      { operation: 'model', model: 'gpt-5', usage: { input_tokens: 5 }, duration_ms: 1500 },
      {
        operation: 'tool',
        tool: { name: 'search', is_error: true },
        error: 'no index',
        duration_ms: 500,
        started_at: '2026-11-18T11:06:42.000000Z',
      },
    ])
    const again = await recordsOf(name, JSON.stringify(JSON.parse(fixture(name).toString())))
    expect(entriesIn(again)).toEqual(entriesIn(records).map((entry) => entry))
  })

  it("have ids in hexadecimal digits where Tempo's have base64", async () => {
    const records = await recordsOf('tempo.json')
    expect(formatOf(records)).toBe('otlp')
    expect(spansIn(records)).toMatchObject([
      { trace_id: '00000000000000000000000000000001', span_id: '0000000000000001', tool: { name: 'search' } },
    ])
    const { batches } = JSON.parse(fixture('tempo.json').toString())
    const wrapped = await recordsOf(
      'trace.json',
      JSON.stringify({ trace: { resourceSpans: batches }, metrics: {} }),
    )
    expect(spansIn(wrapped)).toMatchObject([{ trace_id: '00000000000000000000000000000001' }])
  })
})
