import { notFound } from '../../errors.js'
import { plainArray } from '../../postgres/array_literal.js'
import type { Queryable } from '../../postgres/database.js'
import { FIND_IDS } from './place_queries.js'

interface Session {
  project_id: string
  session_id: string
}

/** An entry's place in its log, and the type of an event. */
export interface EntryPlace {
  seq: number
  type: string | null
}

/**
 * The entries with the given ids, in this order; undefined for an id that the session does not have.
 * @throws AnnalsError session_not_found
 */
export async function findIds(
  database: Queryable,
  { project_id, session_id }: Session,
  ids: readonly string[],
): Promise<Array<EntryPlace | undefined>> {
  const places = Array<EntryPlace | undefined>(ids.length).fill(undefined)
  const [row] = await database.query(FIND_IDS, [project_id, session_id, plainArray(ids)])
  if (!row) throw notFound('session')
  const found = JSON.parse(row.found ?? '[]') as Array<[number, number, string | null]>
  for (const [index, seq, type] of found) places[index - 1] = { seq, type }
  return places
}
