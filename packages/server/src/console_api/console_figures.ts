import type { Queryable, Tenant } from '../postgres/database.js'
import { findOwner } from '../users/users.js'
import {
  COUNT_SESSIONS_OF_USERS,
  type CountedSessions,
  countSessionsOverTime,
  NAME_USERS,
} from './console_queries.js'

const NO_SESSIONS = '{"seconds":60,"sessions":0,"columns":[]}'

/** The identifiers of these users, as JSON texts. Unknown ids are left out. */
export async function readIdentifiers(
  { database, project_id }: Tenant,
  user_ids: string[],
): Promise<string[]> {
  return (await database.query(NAME_USERS, [project_id, user_ids])).map((row) => row.json!)
}

/** Users whose sessions one statement counts. */
const USERS_AT_ONCE = 5

/** How many sessions users have, how they ended, and when they last grew, as JSON texts. Unknown ids are left out. */
export async function countSessionsOfUsers(
  { database, project_id }: Tenant,
  user_ids: string[],
  path: string[] | undefined,
): Promise<string[]> {
  const counted: string[] = []
  for (let from = 0; from < user_ids.length; from += USERS_AT_ONCE) {
    const asked = user_ids.slice(from, from + USERS_AT_ONCE)
    const rows = await database.query(COUNT_SESSIONS_OF_USERS, [project_id, asked, path ?? null])
    counted.push(...rows.map((row) => row.json!))
  }
  return counted
}

/** The newest sessions counted by creation time, as JSON text. */
export async function countOverTime(
  database: Queryable,
  filter: Omit<CountedSessions, 'user_id'> & { user?: string | undefined },
): Promise<string> {
  const user = await findOwner(database, filter)
  if (user === 'nobody') return NO_SESSIONS
  const { statement, parameters } = countSessionsOverTime({ ...filter, user_id: user?.id })
  const [row] = await database.query(statement, parameters)
  return row!.json!
}
