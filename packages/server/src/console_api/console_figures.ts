import type { LogFigures } from '@annals/messages/session'
import type { Queryable, Row, Tenant } from '../postgres/database.js'
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

const SESSIONS_AT_ONCE = 4
const TITLE_LENGTH_MAX = 160

interface FoundFigures {
  figures: LogFigures
  entries: number
}

/** What the console shows of a session, beyond the API's fields. */
interface SessionFigures extends Omit<LogFigures, 'question'> {
  session_id: string
  /** configs.title, or what a user said first. */
  title: string | null
  last_seq: number
  total_tokens: number
  /** From the first entry to the last. */
  duration_ms: number
  /** Whether what comes from the log is of the whole session; otherwise of its beginning. */
  is_whole: boolean
}

/**
 * Figures of sessions, read from what is stored: nothing is kept for them, so appends pay nothing. Of a long session
 * only the beginning is read (see `READ_FIGURES`), a few sessions at a time. Unknown ids are left out.
 */
export async function readFigures(
  { database, project_id }: Tenant,
  session_ids: readonly string[],
  figuresOfText: (entries: string) => Promise<FoundFigures>,
): Promise<SessionFigures[]> {
  const figures: SessionFigures[] = []
  for (let from = 0; from < session_ids.length; from += SESSIONS_AT_ONCE) {
    const asked = session_ids.slice(from, from + SESSIONS_AT_ONCE)
    for (const row of await database.query(READ_FIGURES, [project_id, asked])) {
      figures.push(figuresOf(row, await figuresOfText(row.entries!)))
    }
  }
  return figures
}

function figuresOf(row: Row, found: FoundFigures): SessionFigures {
  const { question, ...figures } = found.figures
  const title = (row.title ?? question)?.slice(0, 4 * TITLE_LENGTH_MAX).replaceAll(/\s+/g, ' ')
  const last_seq = Number(row.last_seq)
  return {
    session_id: row.session_id!,
    title: title?.slice(0, TITLE_LENGTH_MAX) ?? null,
    last_seq,
    total_tokens: Number(row.total_tokens),
    duration_ms: Number(row.duration_ms),
    ...figures,
    is_whole: found.entries === last_seq,
  }
}

/** Sessions that are shown, and those that are counted. */
const SHOWN_MAX = 50
const COUNTED_MAX = 500
const LEVELS_MAX = 20

/**
 * A session with those that it comes from, and those below any of these, as JSON: `items`, and how many `more` there
 * are, counted up to a bound. None for a session on its own. First come those above it, then what is nearest, so that no
 * item is without the one that it is below.
 */
export async function readSessionTree({ database, project_id }: Tenant, session_id: string): Promise<string> {
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
  if (found.size <= 1) return '{"items":[],"more":0}'
  const rows = await database.query(READ_TREE, [project_id, [...found].slice(0, SHOWN_MAX)])
  return `{"items":[${rows.map(({ json }) => json).join(',')}],"more":${Math.max(found.size - SHOWN_MAX, 0)}}`
}
