import type { Database, Queryable } from '../postgres/database.js'
import { isUniqueViolation } from '../postgres/database_errors.js'
import { ADD_ACT, LIST_ACTS } from './audit_queries.js'

const ATTEMPTS_MAX = 50

/** What an operator did. `details` has no secret. */
export interface Act {
  action:
    | 'project.create'
    | 'project.change'
    | 'project.restore'
    | 'project.delete'
    | 'token.create'
    | 'token.revoke'
  project_id: string
  details: object
}

/**
 * Does what an operator asked for, and notes it, in one transaction: neither is stored without the other. `actor`: who,
 * as the audit shows it.
 */
export async function audited<T>(
  database: Database,
  actor: string,
  work: (connection: Queryable) => Promise<{ act: Act; result: T }>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await database.transaction(async (connection) => {
        const { act, result } = await work(connection)
        const { action, project_id, details } = act
        await connection.query(ADD_ACT, [actor, action, project_id, JSON.stringify(details)])
        return result
      })
    } catch (error) {
      // Another act took the number.
      if (!isUniqueViolation(error) || attempt >= ATTEMPTS_MAX) throw error
    }
  }
}

/** Acts behind a seq, in order, as JSON. */
export async function listActs(
  database: Queryable,
  after_seq: number,
  limit: number,
): Promise<Array<{ seq: number; json: string }>> {
  const rows = await database.query(LIST_ACTS, [after_seq, limit])
  return rows.map(({ seq, json }) => ({ seq: Number(seq), json: json! }))
}
