import type pg from 'pg'
import { inject } from 'vitest'
import type { Queryable } from '../../packages/server/src/postgres/database.ts'

interface Plan {
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

/**
 * The database of a connection, which notes for each statement how many rows of a table it looked at: none on Citus,
 * which does not plan an EXPLAIN with parameters.
 */
export function watched(connection: pg.Client, table: string, looks: number[]): Queryable {
  return {
    query: async ({ text }, parameters) => {
      const { rows } = await connection.query(text, parameters as unknown[])
      if (inject('testServer').mode === 'shared') {
        looks.push(0)
        return rows
      }
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
