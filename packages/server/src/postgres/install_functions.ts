import type pg from 'pg'
import { CREATE_LEARNING_SPACE, MERGE_META } from '../learning/learning_space_queries.js'
import { ERASE_SLICE_OF_ENTRIES } from '../lifecycle/erase/erasure_queries.js'
import { APPEND_ENTRIES } from '../log/append/append_queries.js'
import { MERGE_MESSAGE_META } from '../log/read/message_queries.js'
import { COPY_SHORT_SESSION, END_COPIES, MAKE_COPIED_SESSION } from '../sessions/copy_queries.js'
import { CREATE_SESSION, MERGE_CONFIGS, REPLACE_CONFIGS } from '../sessions/session_queries.js'
import type { StoredFunction } from './stored_function.js'

/** Every function that statements of this version call. */
export const STORED_FUNCTIONS: readonly StoredFunction[] = [
  APPEND_ENTRIES,
  COPY_SHORT_SESSION,
  CREATE_LEARNING_SPACE,
  CREATE_SESSION,
  ERASE_SLICE_OF_ENTRIES,
  MAKE_COPIED_SESSION,
  MERGE_CONFIGS,
  MERGE_MESSAGE_META,
  MERGE_META,
  REPLACE_CONFIGS,
  ...Object.values(END_COPIES),
]

/**
 * Creates the functions that are not there yet, and makes them known to all machines of a cluster. Those of other
 * versions stay: nodes of these may be running.
 */
export async function installFunctions(client: pg.Client): Promise<void> {
  if ((await missingFunctions(client)).length === 0) return
  await client.query('BEGIN')
  try {
    // Of two nodes that start at once, the second waits here and finds nothing left to do.
    await client.query('LOCK TABLE schema_migrations IN SHARE ROW EXCLUSIVE MODE')
    for (const { definition } of await missingFunctions(client)) await client.query(definition)
    await distributeFunctions(client)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}

/** Has Citus run the functions where their project is, if the tables are distributed. Does nothing without Citus. */
export async function distributeFunctions(client: pg.Client): Promise<void> {
  const citus = await client.query("SELECT 1 FROM pg_extension WHERE extname = 'citus'")
  if (citus.rows.length === 0) return
  const tables = await client.query(
    "SELECT 1 FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass AND partmethod = 'h'",
  )
  if (tables.rows.length === 0) return
  for (const { name } of STORED_FUNCTIONS)
    await client.query(
      `SELECT create_distributed_function('${name}'::regproc::oid::regprocedure, 'p_project', colocate_with => 'users')`,
    )
}

async function missingFunctions(client: pg.Client): Promise<StoredFunction[]> {
  const { rows } = await client.query<{ name: string }>(
    'SELECT p.proname AS name FROM pg_proc p WHERE p.proname = ANY ($1) AND p.pronamespace = current_schema()::regnamespace',
    [STORED_FUNCTIONS.map(({ name }) => name)],
  )
  const there = new Set(rows.map(({ name }) => name))
  return STORED_FUNCTIONS.filter(({ name }) => !there.has(name))
}
