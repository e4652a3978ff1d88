import { divergedAt, type LogPosition } from '@annals/kits/lists/log_position.js'
import type { Database, Queryable } from '@annals/kits/postgres/database.js'
import { isUniqueViolation } from '@annals/kits/postgres/database_errors.js'
import { ADD_ACT, LIST_ACTS } from './project_queries.js'

const ATTEMPTS_MAX = 50

/** An operator's act. `details` has no secret. */
export interface Act {
  action:
    | 'project.create'
    | 'project.change'
    | 'project.restore'
    | 'project.delete'
    | 'token.create'
    | 'token.revoke'
    | 'member.invite'
    | 'member.change'
    | 'member.remove'
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

/** Acts after one that was seen before, in order, as JSON. @throws AnnalsError log_diverged if that is another by now */
export async function listActs(
  database: Queryable,
  seen: LogPosition,
  limit: number,
): Promise<Array<{ seq: number; created_at: string; json: string }>> {
  const rows = await database.query(LIST_ACTS, [seen.seq, limit + 1])
  const acts = rows.map(({ seq, created_at, json }) => ({
    seq: Number(seq),
    created_at: created_at!,
    json: json!,
  }))
  if (seen.seq === 0) return acts.slice(0, limit)
  const [first, ...rest] = acts
  if (first?.seq !== seen.seq || first.created_at !== (seen.created_at ?? first.created_at))
    throw divergedAt(seen.seq)
  return rest
}
