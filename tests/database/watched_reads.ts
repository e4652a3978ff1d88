import type pg from 'pg'
import { inject } from 'vitest'
import type { Database, Queryable } from '../../packages/kits/src/postgres/database.ts'

interface Plan {
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

/** Plans of Citus name shards, not tables, and EXPLAIN has no parameters there. */
export const NO_PLANS = inject('testServer').mode === 'shared'

/** The database of a connection, which notes for each statement how many rows of a table it looked at. */
export function watched(connection: pg.Client, table: string, looks: number[]): Queryable {
  return {
    query: async ({ text }, parameters) => {
      const { rows } = await connection.query(text, parameters as unknown[])
      const explained = await connection.query(
        `EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ${text}`,
        parameters as unknown[],
      )
      looks.push(scanned(explained.rows[0]['QUERY PLAN'][0].Plan, table))
      return rows
    },
  }
}

/** One connection as a database, which notes how many rows of some tables each statement reads, within functions too. */
export function counted(connection: () => pg.Client, tables: string[], reads: number[]): Database {
  /** How many the connection has read, since it last told the server. */
  const readSoFar = async () => {
    const { rows } = await connection().query<{ read: string }>(
      `SELECT sum(idx_tup_fetch + seq_tup_read) AS read FROM pg_stat_xact_user_tables WHERE relname = ANY ($1)`,
      [tables],
    )
    return Number(rows[0]!.read)
  }
  return {
    query: async ({ text }, values, onSending) => {
      onSending?.()
      await connection().query('BEGIN')
      try {
        const before = await readSoFar()
        const types = { getTypeParser: () => (value: unknown) => value }
        const { rows } = await connection().query({ text, values: values as unknown[], types })
        reads.push((await readSoFar()) - before)
        return rows
      } finally {
        await connection().query('COMMIT')
      }
    },
    transaction: () => Promise.reject(new Error('an append is one statement')),
  }
}

function scanned(plan: Plan, table: string): number {
  const own =
    plan['Relation Name'] === table
      ? (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops']
      : 0
  return (plan.Plans ?? []).reduce((sum, inner) => sum + scanned(inner, table), own)
}
