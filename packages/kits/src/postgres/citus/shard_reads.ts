import type { Parameter, Queryable, Row } from '../database.js'
import { planned, prepared, type Statement } from '../statement.js'

/*
 * On a worker, Citus plans each statement on distributed tables anew, which takes many times as long as a read of a few
 * rows. Those that name the shards in place of the tables it leaves to PostgreSQL, which keeps their plans.
 */

/** The tables of one project, by name, as they are called where its data is. */
export interface Shards {
  /** That of session_heads, beside which all others lie. */
  readonly id: string
  readonly names: ReadonlyMap<string, string>
}

/** Rows: each distributed table, with the shard of it that has a project. Parameters: $1 project. */
const NAME_SHARDS = planned(
  'name_shards',
  `
SELECT c.relname AS table_name, shard_name(t.logicalrelid, get_shard_id_for_distribution_column(t.logicalrelid, $1::uuid)) AS shard
FROM pg_dist_partition t JOIN pg_class c ON c.oid = t.logicalrelid WHERE c.relnamespace = current_schema()::regnamespace`,
)

export async function shardsOf(database: Queryable, project_id: Parameter, id: string): Promise<Shards> {
  const rows: Row[] = await database.query(NAME_SHARDS, [project_id])
  return { id, names: new Map(rows.map(({ table_name, shard }) => [table_name!, shard!])) }
}

/**
 * A row if the machine that is asked has a shard, which may have been moved away: its copy there stays for a while, and
 * is not written to any more. What follows in the transaction is planned once, for all values. Parameters: $1 shard.
 */
const SHARD_IS_HERE = prepared(
  'shard_is_here',
  `SELECT set_config('plan_cache_mode', 'force_generic_plan', true) FROM pg_dist_placement p
WHERE p.shardid = $1::bigint AND p.shardstate = 1 AND p.groupid = (SELECT l.groupid FROM pg_dist_local_group l)`,
)

const TABLE = /\{(\w+)\}/g
const STRING = /'[^']*'/g
const WORD = /\w+/g

/** By statement and shard; undefined where it also names a table of which that shard is not known. */
const known = new WeakMap<Statement, Map<string, Statement | undefined>>()

/** A read of one project as its shards are asked it; undefined if that is not possible. */
export function onShards(statement: Statement, shards: Shards): Statement | undefined {
  const { of_shard: text } = statement
  if (text === undefined) return undefined
  const ofShards = known.get(statement) ?? new Map<string, Statement | undefined>()
  known.set(statement, ofShards)
  if (!ofShards.has(shards.id)) ofShards.set(shards.id, makeOnShards(statement, text, shards))
  return ofShards.get(shards.id)
}

function makeOnShards(statement: Statement, text: string, { id, names }: Shards): Statement | undefined {
  const tables = [...text.matchAll(TABLE)].map(([, table]) => table!)
  const others = text.replaceAll(TABLE, '').replaceAll(STRING, '').match(WORD) ?? []
  if (tables.length === 0 || tables.some((table) => !names.has(table))) return undefined
  // Of a table and a shard in one statement, Citus would make something else.
  if (others.some((word) => names.has(word))) return undefined
  return {
    ...statement,
    name: `${statement.name}_${id}`,
    text: text.replaceAll(TABLE, (_, table: string) => names.get(table)!),
    only_if: { statement: SHARD_IS_HERE, parameters: [id] },
  }
}
