import { describe, expect, it } from 'vitest'
import { groupLines } from '../src/client/failed_calls.js'

const ID = '01a21f16-baab-736c-a0bf-e657ad41bd29'
const example = (seq: number) => ({
  session_id: ID,
  seq,
  result: 'Error: no such order',
  title: 'Where is my refund for the order of last week?',
  said: null,
  called: null,
  at: '2026-11-21T09:30:00.123456Z',
})
const linesAt = (width: number) =>
  groupLines(
    {
      message: 'no such order',
      failures: 2,
      sessions: 1,
      last_at: '2026-11-21T09:30:00.123456Z',
      examples: [example(7), example(1234)],
    } as unknown as Parameters<typeof groupLines>[0],
    '',
    { width, paint: (_style, text) => text },
  ).filter((line) => line.includes(ID))

describe('failures of a tool', () => {
  it('say where each is, with as much of the title as there is room for', () => {
    expect(linesAt(69)).toEqual([
      `  ${ID}  seq 7     Where is my refund…`,
      `  ${ID}  seq 1234  Where is my refund…`,
    ])
  })

  it('keep the seq on a narrow terminal, and drop a title that would say nothing', () => {
    expect(linesAt(45)).toEqual([`  ${ID}  seq 7`, `  ${ID}  seq 1234`])
  })
})
