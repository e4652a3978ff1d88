import type { Queryable } from '../../postgres/database.js'
import { ERASE_CALLS } from './call_queries.js'

const CALLS_AT_ONCE_MAX = 1_000

/** Takes from some calls what they have of sessions that go. */
export async function eraseCalls(connection: Queryable, project_id: string, session_ids: string[]) {
  const [row] = await connection.query(ERASE_CALLS, [project_id, session_ids, CALLS_AT_ONCE_MAX])
  return { counts: {}, has_all: Number(row!.gone) < CALLS_AT_ONCE_MAX }
}
