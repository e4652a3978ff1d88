import { readMessage } from '@annals/messages'
import { type LogEntry, readPriceList, SessionCost } from '@annals/messages/session'
import { describe, expect, it } from 'vitest'
import type { ImportRecord } from '../src/records.ts'
import { entriesIn, lines, recordsOf } from './reading.ts'

const PRICES = readPriceList({
  currency: 'USD',
  models: { 'gpt-5-codex': { input: 1, output: 10, cached_input: 0.1 } },
})
const at = (second: number) => `2026-11-20T11:00:${String(second).padStart(2, '0')}.000Z`
const META = { timestamp: at(0), type: 'session_meta', payload: { id: 'a', cwd: '/shop' } }
const MODEL = { timestamp: at(0), type: 'turn_context', payload: { model: 'gpt-5-codex' } }
const item = (second: number, payload: object) => ({ timestamp: at(second), type: 'response_item', payload })
const said = (second: number, text = `Said ${second}`) =>
  item(second, { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] })
const call = (second: number) =>
  item(second, { type: 'function_call', name: 'shell', arguments: '{}', call_id: `call_${second}` })
const result = (second: number, of: number) =>
  item(second, { type: 'function_call_output', call_id: `call_${of}`, output: 'ok' })

interface Used {
  input_tokens: number
  cached_input_tokens?: number
  output_tokens: number
  reasoning_output_tokens?: number
  total_tokens?: number
}
const count = (second: number, total: Used | undefined, last?: Used) => ({
  timestamp: at(second),
  type: 'event_msg',
  payload: {
    type: 'token_count',
    info: total && { total_token_usage: total, last_token_usage: last, model_context_window: 200_000 },
    rate_limits: { primary: { used_percent: second } },
  },
})
const used = (input: number, cached: number, output: number, thought = 0): Used => ({
  input_tokens: input,
  cached_input_tokens: cached,
  output_tokens: output,
  reasoning_output_tokens: thought,
  total_tokens: input + output,
})

function usagesIn(records: ImportRecord[]): unknown[] {
  return entriesIn(records).flatMap((entry) =>
    entry.kind === 'event' && entry.type === 'otel.span' ? [entry.data.usage] : [],
  )
}

/** What a session costs, as readers of its log add it up. */
function costOf(records: ImportRecord[]): string | undefined {
  const cost = new SessionCost(PRICES)
  for (const [index, entry] of entriesIn(records).entries()) {
    const place = { seq: index + 1, created_at: at(0) }
    const role = entry.kind === 'message' ? readMessage(entry.format, entry.blob).role : undefined
    cost.add({
      ...entry,
      ...place,
      role,
      parent_id: null,
    } as unknown as LogEntry)
  }
  return cost.text()
}

const read = (...all: object[]) => recordsOf('rollout.jsonl', lines(META, MODEL, ...all))

describe('the use of tokens in a session of Codex', () => {
  it('is that of each call, whose cached input has its own price and whose thoughts are output', async () => {
    const records = await read(
      count(1, undefined),
      call(2),
      count(3, used(1_000, 0, 100, 60), used(1_000, 0, 100, 60)),
      result(4, 2),
      said(5),
      call(6),
      result(7, 6),
      count(8, used(3_000, 800, 150, 60), used(2_000, 800, 50)),
      said(9),
      count(10, used(6_000, 2_800, 250, 60), used(3_000, 2_000, 100)),
    )
    expect(usagesIn(records)).toEqual([
      { input_tokens: 1_000, output_tokens: 100, reasoning_tokens: 60, total_tokens: 1_100 },
      { input_tokens: 2_000, output_tokens: 50, cached_tokens: 800, total_tokens: 2_050 },
      { input_tokens: 3_000, output_tokens: 100, cached_tokens: 2_000, total_tokens: 3_100 },
    ])
    // 3,200 input, 2,800 cached, 250 output.
    expect(costOf(records)).toBe('0.00598 USD')
  })

  it('is told once, although totals are written again with new limits or after a compaction', async () => {
    const total = used(1_000, 0, 100)
    const records = await read(
      said(1),
      count(2, total, total),
      count(3, total, total),
      { timestamp: at(4), type: 'compacted', payload: { message: 'So far: nothing.' } },
      count(5, total, { input_tokens: 0, output_tokens: 0, total_tokens: 4_000 }),
      count(
        6,
        { ...total, total_tokens: 200_000 },
        { input_tokens: 0, output_tokens: 0, total_tokens: 198_900 },
      ),
      said(7),
      count(8, used(1_500, 500, 120), used(500, 500, 20)),
    )
    expect(usagesIn(records).map((usage) => (usage as Used).total_tokens)).toEqual([1_100, 520])
    expect(costOf(records)).toBe('0.00225 USD')
  })

  it('goes on or begins anew with the totals of a session that was resumed', async () => {
    const first = used(1_000, 0, 100)
    const goes_on = await read(
      said(1),
      count(2, first, first),
      META,
      said(3),
      count(4, used(1_200, 0, 110), used(200, 0, 10)),
    )
    expect(usagesIn(goes_on).map((usage) => (usage as Used).total_tokens)).toEqual([1_100, 210])
    const less = used(300, 0, 10)
    const anew = await read(said(1), count(2, first, first), META, said(3), count(4, less, less))
    expect(usagesIn(anew).map((usage) => (usage as Used).total_tokens)).toEqual([1_100, 310])
    const more = used(3_000, 0, 400)
    const anew_with_more = await read(said(1), count(2, first, first), META, said(3), count(4, more, more))
    expect(usagesIn(anew_with_more).map((usage) => (usage as Used).total_tokens)).toEqual([1_100, 3_400])
    const without_beginning = await read(said(3), count(4, used(90_000, 0, 9_000), used(200, 0, 10)))
    expect(usagesIn(without_beginning).map((usage) => (usage as Used).total_tokens)).toEqual([210])
  })

  it('is a lower bound while an answer has no count', async () => {
    const total = used(1_000, 0, 100)
    const records = await read(said(1), count(2, total, total), said(3))
    expect(costOf(records)).toBe('≥ 0.002 USD')
  })

  it('is the difference of totals where the command writes them after each turn', async () => {
    const done = (id: number) => ({
      type: 'item.completed',
      item: { id: `item_${id}`, type: 'agent_message', text: `Done ${id}` },
    })
    const turn = (usage: Used) => [{ type: 'turn.started' }, done(0), { type: 'turn.completed', usage }]
    const streamed = lines(
      { type: 'thread.started', thread_id: 'b' },
      ...turn(used(1_000, 200, 100)),
      ...turn(used(1_700, 500, 130)),
    )
    expect(usagesIn(await recordsOf('run.jsonl', streamed))).toEqual([
      { input_tokens: 1_000, output_tokens: 100, cached_tokens: 200, total_tokens: 1_100 },
      { input_tokens: 700, output_tokens: 30, cached_tokens: 300, total_tokens: 730 },
    ])
  })

  it('has the same names when more was written', async () => {
    const total = used(1_000, 0, 100)
    const some = [said(1), count(2, total, total)]
    const ids = (await read(...some)).filter(({ kind }) => kind === 'entry')
    const more = await read(...some, said(3), count(4, used(1_100, 0, 110), used(100, 0, 10)))
    expect(more.filter(({ kind }) => kind === 'entry').slice(0, ids.length)).toEqual(ids)
  })
})
