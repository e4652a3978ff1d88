import type { Parameter, Queryable, Row } from '@annals/kits/postgres/database.js'
import { describe, expect, it } from 'vitest'
import { exportSessions } from '../../src/sessions/export_pieces.js'

/** Logs by session; each answer holds at most `rows_max` rows, as if these had filled a piece. */
class Logs implements Queryable {
  readonly answers: number[] = []

  constructor(
    private readonly logs: Record<string, number>,
    private readonly rows_max: number,
    private readonly beforeAnswer: (logs: Record<string, number>, answer: number) => void = () => {},
  ) {}

  async query(_statement: unknown, parameters: readonly Parameter[]): Promise<Row[]> {
    this.beforeAnswer(this.logs, this.answers.length)
    const [, ids, behind, until] = parameters as [string, string[], number[], number[]]
    const rows = ids.flatMap((id, index) => {
      const last = Math.min(this.logs[id] ?? 0, until[index]!)
      return Array.from({ length: Math.max(last - behind[index]!, 0) }, (_, n) => {
        const seq = behind[index]! + n + 1
        return { ord: String(index + 1), seq: String(seq), line: `${id}${seq}` }
      })
    })
    this.answers.push(Math.min(rows.length, this.rows_max))
    return rows.slice(0, this.rows_max)
  }
}

/** The lines of an export of sessions that have so many entries when their heads are read. */
async function linesOf(database: Queryable, sessions: Record<string, number>): Promise<string> {
  const heads = Object.entries(sessions).map(([id, last_seq]) => ({
    id,
    line: id,
    last_seq: String(last_seq),
  }))
  const lines: string[] = []
  for await (const piece of exportSessions({ database, project_id: 'project' }, heads))
    lines.push(...piece.lines)
  return lines.join(' ')
}

describe('sessions are exported', () => {
  it.each([1, 2, 3, 100])('each with its entries after it, in pieces of %i', async (rows_max) => {
    const logs = { a: 2, b: 0, c: 3, d: 0, e: 1 }
    expect(await linesOf(new Logs(logs, rows_max), logs)).toBe('a a1 a2 b c c1 c2 c3 d e e1')
  })

  it('up to the seq that they had, whatever is appended', async () => {
    expect(await linesOf(new Logs({ a: 9, b: 5 }, 2), { a: 3, b: 0 })).toBe('a a1 a2 a3 b')
  })

  it('many in one statement, and a large one in several', async () => {
    const logs = { a: 5_000, b: 10 }
    const database = new Logs(logs, Number.POSITIVE_INFINITY)
    await linesOf(database, logs)
    expect(database.answers).toEqual([2_000, 2_000, 1_010])
  })

  it.each([1, 2, 100])('not where a log is shorter than its head says, in pieces of %i', async (rows_max) => {
    for (const last of ['a', 'b', 'c']) {
      const logs: Record<string, number> = { a: 2, b: 1, c: 2 }
      const database = new Logs({ ...logs, [last]: 0 }, rows_max)
      await expect(linesOf(database, logs)).rejects.toThrow(`Session ${last} cannot be exported`)
    }
  })
})
