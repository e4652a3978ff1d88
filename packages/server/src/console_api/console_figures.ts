import type { Queryable, Tenant } from '@annals/kits/postgres/database.js'
import { uncut } from '@annals/recall'
import { findOwner } from '../users/users.js'
import {
  COUNT_SESSIONS_OF_USERS,
  type CountedSessions,
  countSessionsOverTime,
  FIND_BELOW,
  FIND_CHAIN,
  NAME_USERS,
  READ_FIGURES,
  READ_TREE,
} from './console_queries.js'

const NO_SESSIONS = '{"seconds":60,"sessions":0,"columns":[]}'

export async function readIdentifiers(
  { database, project_id }: Tenant,
  user_ids: string[],
): Promise<string[]> {
  return (await database.query(NAME_USERS, [project_id, user_ids])).map((row) => row.json!)
}

const USERS_AT_ONCE = 5

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

const TITLE_LENGTH_MAX = 160

/** Figures of a session that the console shows, beyond the API's fields. */
interface SessionFigures {
  session_id: string
  /** configs.title, or what a user said first. */
  title: string | null
  last_seq: number
  total_tokens: number
  /** When its first entry happened; null without one. */
  began_at: string | null
  /** From the first entry to the last. */
  duration_ms: number
  calls: number
  failures: number
  /** Whether the whole log was read for its calls and its title; more of it is read in a moment. */
  is_whole: boolean
  /** An automatic summary of it waits for the model, or could not be written. */
  summary: 'waits' | 'failed' | null
}

export async function readFigures(
  { database, project_id }: Tenant,
  session_ids: readonly string[],
  isMasked: boolean,
): Promise<SessionFigures[]> {
  const rows = await database.query(READ_FIGURES, [project_id, [...session_ids]])
  return rows.map((row) => ({
    session_id: row.session_id!,
    title: titleOf(row.title ?? row.question, isMasked),
    last_seq: Number(row.last_seq),
    total_tokens: Number(row.total_tokens),
    began_at: row.began_at ?? null,
    duration_ms: Number(row.duration_ms),
    calls: Number(row.calls),
    failures: Number(row.failures),
    is_whole: row.is_whole === 't',
    summary: (row.summary as SessionFigures['summary'] | undefined) ?? null,
  }))
}

/** A line of bounded length; for a masked reader without the word that it is cut through, which would not be recognized. */
function titleOf(text: string | null | undefined, isMasked: boolean): string | null {
  const line = text?.slice(0, 4 * TITLE_LENGTH_MAX).replaceAll(/\s+/g, ' ') ?? null
  if (line === null || (line.length <= TITLE_LENGTH_MAX && !line.endsWith('…'))) return line
  const cut = line.slice(0, TITLE_LENGTH_MAX)
  return isMasked ? uncut(`${cut}…`) : `${cut}…`
}

const SHOWN_MAX = 50
const COUNTED_MAX = 500
const LEVELS_MAX = 20

/**
 * A session with those that it comes from, and those below any of these, as JSON: `items`, and how many `more` there
 * are, counted up to a bound. None for a session on its own. First come those above it, then what is nearest, so that no
 * item is without the one that it is below.
 */
export async function readSessionTree(
  { database, project_id }: Tenant,
  session_id: string,
): Promise<{ shown: string[]; json: string }> {
  const chain = await database.query(FIND_CHAIN, [project_id, session_id])
  const found = new Set(chain.map(({ id }) => id!))
  let level = [...found]
  for (let depth = 0; depth < LEVELS_MAX && level.length > 0 && found.size < COUNTED_MAX; depth++) {
    const below = await database.query(FIND_BELOW, [
      project_id,
      level,
      COUNTED_MAX - found.size + level.length,
    ])
    level = below.map(({ id }) => id!).filter((id) => !found.has(id))
    for (const id of level) found.add(id)
  }
  if (found.size <= 1) return { shown: [], json: '{"items":[],"more":0}' }
  const shown = [...found].slice(0, SHOWN_MAX)
  const rows = await database.query(READ_TREE, [project_id, shown])
  const json = `{"items":[${rows.map(({ json }) => json).join(',')}],"more":${Math.max(found.size - SHOWN_MAX, 0)}}`
  return { shown, json }
}
