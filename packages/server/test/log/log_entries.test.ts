import { expect, it } from 'vitest'
import { logEntries } from '../../src/log/log_entries.js'

it('what is learnt from has no compactions: they repeat what was said', () => {
  const row = (seq: number, type: string) => ({
    seq: String(seq),
    id: `id ${seq}`,
    kind: 'event',
    type,
    role: null,
    format: null,
    created_at: '2026-11-26T00:00:00.000000Z',
    data: '{}',
  })
  const rows = [row(1, 'note'), row(2, 'annals.compaction'), row(3, 'note')]
  expect([...logEntries(rows)].map(({ seq }) => seq)).toEqual([1, 3])
})
