import type pg from 'pg'
import { inject } from 'vitest'
import type { Queryable } from '../../packages/kits/src/postgres/database.ts'

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

function scanned(plan: Plan, table: string): number {
  const own =
    plan['Relation Name'] === table
      ? (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops']
      : 0
  return (plan.Plans ?? []).reduce((sum, inner) => sum + scanned(inner, table), own)
}
