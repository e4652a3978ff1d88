import { parseSearchQuery } from '@annals/messages/search'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Queryable } from '../../../kits/src/postgres/database.ts'
import type { Finding, Search } from '../../src/search/find_entries.ts'
import { FIND_ENTRIES } from '../../src/search/find_entries_queries.ts'
import { findNewest, findRelevant } from '../../src/search/search.ts'

const SESSION = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'
const AT = '2026-11-21T09:30:00.000000Z'
const hit = (seq: number, bytes = 100) => [SESSION, seq, AT, bytes]

/** A search whose index answers as given; entries match if their seq is one of `matching`. */
function finding(
  q: string,
  answer: (limit: number, seq: number | null) => { hits: unknown[]; at?: unknown },
  matching: number[] = [],
): Finding {
  const query = async (statement: unknown, parameters: readonly unknown[]) => {
    if (statement === FIND_ENTRIES.statement)
      return [{ answer: JSON.stringify(answer(parameters[15] as number, parameters[14] as number | null)) }]
    const seqs = String(parameters[2]).match(/\d+/g)!.map(Number)
    return seqs.map((seq) => ({
      session_id: SESSION,
      seq,
      kind: 'event',
      type: 'n',
      role: null,
      data: `${seq}`,
    }))
  }
  return {
    database: { query } as unknown as Queryable,
    search: { project_id: SESSION, terms: parseSearchQuery(q) } as Search,
    state: { indexed_through: AT, indexing: null, user_id: null, is_refilling: false },
    limit: 20,
    matchesOf: async (_project, _terms, entries) =>
      entries.map(({ data }) =>
        matching.includes(Number(data))
          ? { snippet: { text: data, hits: [] }, score: Number(data), is_tool_result: false }
          : null,
      ),
  }
}

afterEach(() => void vi.restoreAllMocks())

describe('a page of a search', () => {
  it('ends among words that stand in many entries and never beside each other, and the next one goes on there', async () => {
    const asked: Array<[number, number]> = []
    const endless = finding('"flight insurance"', (limit, seq) => {
      const from = seq ?? 1_000_000
      asked.push([from, limit])
      return { hits: Array.from({ length: limit }, (_, n) => hit(from - 1 - n)) }
    })
    const first = await findNewest(endless, undefined)
    const looked_at = asked.reduce((sum, [, limit]) => sum + limit, 0)
    expect(first).toMatchObject({ items: [], next: { seq: 1_000_000 - looked_at } })
    expect(looked_at).toBeLessThanOrEqual(600)
    await findNewest(endless, first.next)
    expect(asked.find(([from]) => from === first.next!.seq)).toBeDefined()
  })

  it('by relevance goes on where its time ended, instead of saying that nothing is left', async () => {
    let now = 0
    vi.spyOn(performance, 'now').mockImplementation(() => (now += 600))
    const answers = [
      { hits: [], at: [AT, SESSION, 9] },
      { hits: [], at: [AT, SESSION, 7] },
      { hits: [hit(3), hit(5)], at: null },
    ]
    const slow = finding('refund', () => answers.shift()!, [3, 5])
    const first = await findRelevant(slow, undefined)
    expect(first).toEqual({
      items: [],
      next: { newest: { created_at: AT, session_id: SESSION, seq: 7 }, shown: 0 },
    })
    const second = await findRelevant(slow, first.next)
    expect(second).toMatchObject({ items: [{ seq: 5 }, { seq: 3 }], next: undefined })
  })

  it('ends among entries of a megabyte that take long to read, and the next one goes on there', async () => {
    let now = 0
    vi.spyOn(performance, 'now').mockImplementation(() => (now += 600))
    const large = finding('refund', (_, seq) => ({ hits: largeBelow(seq ?? 21) }), [20, 18])
    const first = await findNewest(large, undefined)
    expect(first).toMatchObject({ items: [{ seq: 20 }], next: { seq: 19 } })
    const second = await findNewest(large, first.next)
    expect(second).toMatchObject({ items: [{ seq: 18 }], next: { seq: 17 } })
  })

  it('by relevance ranks what 8 MiB of entries have, and then what the next ones have', async () => {
    const large = finding('"flight insurance"', (_, seq) => ({ hits: largeBelow(seq ?? 21) }), [20, 3, 5])
    const first = await findRelevant(large, undefined)
    expect(first).toMatchObject({ items: [{ seq: 20 }], next: { newest: { seq: 12 }, shown: 0 } })
    const second = await findRelevant(large, first.next)
    expect(second).toMatchObject({ items: [{ seq: 5 }, { seq: 3 }], next: { newest: { seq: 3 } } })
    expect(await findRelevant(large, second.next)).toEqual({ items: [], next: undefined })
  })

  it('by relevance ranks the newest 200, and then the next ones, to the last that matches', async () => {
    const all = Array.from({ length: 450 }, (_, n) => 450 - n)
    const many = finding(
      'refund',
      (limit, seq) => ({
        hits: all
          .filter((n) => n < (seq ?? 451))
          .slice(0, limit)
          .map((n) => hit(n)),
      }),
      all,
    )
    const found: number[] = []
    let after: Parameters<typeof findRelevant>[1]
    do {
      const page = await findRelevant(many, after)
      found.push(...page.items.map(({ seq }) => seq))
      after = page.next
    } while (after)
    expect(found).toEqual(all)
  })
})

const largeBelow = (seq: number) => Array.from({ length: seq - 1 }, (_, n) => hit(seq - 1 - n, 1024 * 1024))
