import { describe, expect, it } from 'vitest'
import { writtenInSql } from '../../src/lists/listed.ts'
import { PIECE_READ_BYTES, readList } from '../../src/lists/read_list.ts'
import type { Parameter, Row } from '../../src/postgres/database.ts'
import { prepared } from '../../src/postgres/statement.ts'

const ROWS = 20

/** Reads a list of rows of so many characters, as PostgreSQL gives it; gives the memory that was asked for. */
async function read(length: number): Promise<{ rows: number; held: number[] }> {
  const json = JSON.stringify('x'.repeat(length))
  const held: number[] = []
  const query = async (_statement: unknown, parameters: readonly Parameter[]): Promise<Row[]> => {
    const [, , after, limit] = parameters.map(Number) as [number, number, number, number]
    const ids = Array.from({ length: Math.min(limit, ROWS - after) }, (_, index) => after + index + 1)
    const joined = ids.map(() => json).join('\x01')
    const times = JSON.stringify(ids.map(() => '2026-01-01T00:00:00'))
    return [{ id: ids.join('\x01'), created_at: times, json: joined.length > 1024 * 1024 ? null : joined }]
  }
  const memory = { hold: async (bytes: number) => void held.push(bytes) }
  const tenant = { project_id: 'p', database: { query, objects: undefined }, memory }
  const parameters = ['p', '', 0, ROWS]
  const page = { statement: prepared('list', ''), parameters, listing: writtenInSql('') }
  return { rows: (await readList(tenant, page)).length, held }
}

describe('a list', () => {
  it('of small rows is read at once, into the memory that was reserved for it', async () => {
    expect(await read(1_000)).toEqual({ rows: ROWS, held: [] })
  })

  it('of large rows is read in pieces, and reserves memory for what it has read', async () => {
    const { rows, held } = await read(100_000)
    expect(rows).toBe(ROWS)
    expect(held).toHaveLength(3)
    expect(held[0]).toBeGreaterThan(PIECE_READ_BYTES + 2 * 8 * 100_000)
    expect(held[2]).toBeGreaterThan(PIECE_READ_BYTES + 2 * ROWS * 100_000)
  })
})
