import { describe, expect, it } from 'vitest'
import { recordsOf } from './reading.ts'

const TIME = '2026-11-20T10:00:00.000000Z'
const session = (id: string, parent_id?: string) => ({
  ...{ kind: 'session', user: 'mia', id, parent_id, user_id: 'u', configs: { agent: 'shop' } },
  ...{ disable_task_tracking: false, created_at: TIME, updated_at: TIME },
})
const event = (seq: number, type: string, data: object, more: object = {}) => ({
  ...{ kind: 'event', seq, id: `e${seq}`, session_id: 's', type, data, created_at: TIME, updated_at: TIME },
  ...more,
})
const message = (seq: number, content: string, more: object = {}) => ({
  ...{
    kind: 'message',
    seq,
    id: `m${seq}`,
    role: 'user',
    format: 'openai',
    created_at: TIME,
    updated_at: TIME,
  },
  ...{ blob: { role: 'user', content }, meta: { a: 1 }, ...more },
})

async function recordsOfLines(...lines: object[]) {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  const records = await recordsOf('sessions.jsonl', text)
  expect(records).toContainEqual(expect.objectContaining({ kind: 'format', format: 'annals-jsonl' }))
  return records
}

describe('sessions of Annals, exported as jsonl', () => {
  it('have their entries, keys, metas and times again, and stand below each other', async () => {
    const records = await recordsOfLines(
      session('parent'),
      event(1, 'note', { n: 1 }, { key: 'state' }),
      message(2, 'hello', { occurred_at: '2026-11-20T09:00:00.000000Z' }),
      session('child', 'parent'),
      message(1, 'hello'),
      session('other', 'elsewhere'),
    )
    const opened = records.filter(({ kind }) => kind === 'session') as unknown as Record<string, unknown>[]
    expect(opened).toMatchObject([
      { user: 'mia', configs: { agent: 'shop' }, parent_id: undefined },
      { parent_id: opened[0]!.id },
      { parent_id: undefined },
    ])
    const entries = records.flatMap((record) => (record.kind === 'entry' ? [record.entry] : []))
    expect(entries).toMatchObject([
      { kind: 'event', type: 'note', data: { n: 1 }, key: 'state', occurred_at: TIME },
      { kind: 'message', format: 'openai', meta: { a: 1 }, occurred_at: '2026-11-20T09:00:00.000000Z' },
      { kind: 'message' },
    ])
    expect(new Set(entries.map(({ id }) => id)).size).toBe(3)
  })

  it('have retractions and summaries made again, and say what only the service may append', async () => {
    const summary = [{ format: 'openai', blob: { role: 'user', content: 'They said hello.' } }]
    const compaction = { from_seq: 1, to_seq: 2, except_seqs: [], tokens: 4, summary }
    const records = await recordsOfLines(
      session('one'),
      message(1, 'hello'),
      message(2, 'are you there?'),
      event(3, 'annals.compaction', compaction),
      message(4, 'a slip', { retracted_by: 6 }),
      event(5, 'annals.compaction', { ...compaction, to_seq: 4 }, { retracted_by: 6 }),
      event(6, 'annals.retraction', { seqs: [4, 5], compactions: [5] }),
      event(7, 'annals.request', { kind: 'question' }),
    )
    const ids = records.flatMap((record) => (record.kind === 'entry' ? [record.entry.id] : []))
    expect(records.filter(({ kind }) => kind === 'compaction')).toMatchObject([{ at: ids[1], summary }])
    expect(records.filter(({ kind }) => kind === 'retraction')).toMatchObject([{ ids: [ids[2]] }])
    expect(records).toContainEqual(
      expect.objectContaining({
        entry: expect.objectContaining({ type: 'source.annals-jsonl.annals.request' }),
      }),
    )
    expect(ids).toHaveLength(4)
  })
})
