import { notFound } from '../../errors.js'
import { plainArray } from '../../postgres/array_literal.js'
import type { Queryable, Row } from '../../postgres/database.js'
import { FIND_IDS, FIND_LATEST, FIND_LATEST_OF_KEY } from './place_queries.js'

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
  const rows = await database.query(FIND_IDS, [project_id, session_id, plainArray(ids)])
  for (const [index, seq, type] of found<[number, number, string | null]>(rows))
    places[index - 1] = { seq, type }
  return places
}

/** Which keys are asked for: one, or those with a prefix behind the last one of the page before. */
export interface LatestPage {
  key: string | undefined
  key_prefix: string
  after_key: string
  limit: number
}

/**
 * The newest live entry of each key, in the order of keys.
 * @throws AnnalsError session_not_found
 */
export async function findLatest(
  database: Queryable,
  { project_id, session_id }: Session,
  { key, key_prefix, after_key, limit }: LatestPage,
): Promise<Array<{ key: string; seq: number }>> {
  const rows =
    key === undefined
      ? await database.query(FIND_LATEST, [project_id, session_id, after_key, key_prefix, limit])
      : await database.query(FIND_LATEST_OF_KEY, [project_id, session_id, key])
  return found<[string, number]>(rows).map(([key, seq]) => ({ key, seq }))
}

function found<Place>([row]: Row[]): Place[] {
  if (!row) throw notFound('session')
  return JSON.parse(row.found ?? '[]') as Place[]
}
