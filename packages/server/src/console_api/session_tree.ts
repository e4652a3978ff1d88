import type { Tenant } from '../postgres/database.js'
import { FIND_BELOW, FIND_CHAIN, READ_TREE } from './session_tree_queries.js'

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
