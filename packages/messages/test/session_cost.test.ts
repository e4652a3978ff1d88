import { describe, expect, it } from 'vitest'
import { type LogEntry, readPriceList, SessionCost } from '../src/session/index.js'

const PRICES = readPriceList({
  currency: 'USD',
  models: { 'claude-x': { input: 3, output: 15, cached_input: 0.3, cache_write: 3.75, cache_write_1h: 6 } },
})

let seq = 0
/** A message with one block of an answer, as a coding agent writes it for each block. */
function answer(id: string, usage: object | undefined, model = 'claude-x'): LogEntry {
  seq += 1
  const blob = { id, model, role: 'assistant', content: [{ type: 'text', text: 'ok' }], usage }
  const created_at = '2026-01-15T10:00:00Z'
  const place = { seq, id: `m${seq}`, parent_id: null, created_at }
  return { ...place, kind: 'message', role: 'assistant', format: 'anthropic', blob }
}

function span(last_id: string): LogEntry {
  seq += 1
  const usage = { input_tokens: 1_000, output_tokens: 0 }
  const data = {
    span_id: `s${seq}`,
    operation: 'model',
    model: 'claude-x',
    usage,
    messages: { output: 1, last_id },
  }
  return { seq, created_at: '2026-01-15T10:00:00Z', kind: 'event', type: 'otel.span', data }
}

function costOf(entries: LogEntry[], is_all = true): string | undefined {
  const cost = new SessionCost(PRICES)
  for (const entry of entries) cost.add(entry)
  return cost.text(is_all)
}

const USAGE = { input_tokens: 1_000, output_tokens: 100 }

describe('the cost of answers that have their usage', () => {
  it('counts an answer once, by what its last block says was written', () => {
    const blocks = [answer('a', { ...USAGE, output_tokens: 1 }), answer('a', USAGE), answer('a', USAGE)]
    expect(costOf(blocks)).toBe('0.0045 USD')
    expect(costOf([...blocks, answer('b', USAGE)])).toBe('0.009 USD')
  })

  it('prices what was read from and written to a cache apart, by how long it is kept', () => {
    const cache = { cache_read_input_tokens: 10_000, cache_creation_input_tokens: 3_000 }
    expect(costOf([answer('a', { ...USAGE, ...cache })])).toBe('0.01875 USD')
    const hour = { cache_creation: { ephemeral_1h_input_tokens: 1_000, ephemeral_5m_input_tokens: 2_000 } }
    expect(costOf([answer('a', { ...USAGE, ...cache, ...hour })])).toBe('0.021 USD')
  })

  it('is a lower bound where a model has no price, an answer no usage, or entries were not read', () => {
    expect(costOf([answer('a', USAGE), answer('b', USAGE, 'claude-y')])).toBe('≥ 0.0045 USD')
    expect(costOf([answer('a', USAGE), answer('b', undefined)])).toBe('≥ 0.0045 USD')
    expect(costOf([answer('a', USAGE)], false)).toBe('≥ 0.0045 USD')
    // A notice that the coding agent itself wrote.
    const notice = answer('b', { input_tokens: 0, output_tokens: 0 }, '<synthetic>')
    expect(costOf([answer('a', USAGE), notice])).toBe('0.0045 USD')
  })

  it('does not count an answer again of which a span tells', () => {
    const one = answer('a', USAGE)
    expect(costOf([one, span((one as { id: string }).id)])).toBe('0.003 USD')
  })
})
