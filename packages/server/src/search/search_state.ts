import { AnnalsError } from '@annals/kits/errors.js'
import type { Queryable } from '@annals/kits/postgres/database.js'
import { COUNT_SESSIONS, READ_SEARCH_STATE } from './search_queries.js'

export interface SearchState {
  /** Entries stored before are in the index; null while it is being made. */
  indexed_through: string | null
  /** While it is being made. */
  indexing: { sessions_done: number; sessions: number } | null
  /** The id of the user who was named, if there is one. */
  user_id: string | null
  /** Whether an older index is being rewritten. */
  is_refilling: boolean
}

/** How far the index of a project is. @throws AnnalsError search_off */
export async function readSearchState(
  database: Queryable,
  project_id: string,
  user: string | undefined,
): Promise<SearchState> {
  const [row] = await database.query(READ_SEARCH_STATE, [project_id, user ?? null])
  if (row?.is_on !== 't') throw new AnnalsError('search_off')
  const user_id = row.user_id ?? null
  const is_refilling = row.is_refilling === 't'
  if (row.is_ready === 't')
    return { indexed_through: row.indexed_through!, indexing: null, user_id, is_refilling }
  const [count] = await database.query(COUNT_SESSIONS, [project_id])
  const sessions = Number(count!.sessions)
  const done = Number(row.sessions_scanned ?? 0) - Number(row.sessions_left)
  const sessions_done = Math.min(Math.max(done, 0), sessions)
  return { indexed_through: null, indexing: { sessions_done, sessions }, user_id, is_refilling }
}
