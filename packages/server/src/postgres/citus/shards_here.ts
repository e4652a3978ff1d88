import { createHash } from 'node:crypto'

/**
 * Steps of a stored function that Citus need not plan.
 *
 * Within a function on a worker, Citus plans each statement on a distributed table again, and carries out an
 * INSERT … SELECT by COPY: a flush cost a worker twice what it costs one PostgreSQL. So where the project's shards
 * are on the machine that runs the function, such a step names them itself.
 */

/** The tables that steps may name, in the order in which SHARDS_HERE gives their shards. */
const TABLES = ['session_heads', 'entries', 'idempotency_keys', 'change_marks'] as const

/**
 * The project's shards, once they can no longer be moved: the lock is that which Citus takes for a write, one for all
 * that lie beside each other. Null if another machine has them by now; then Citus finds them.
 */
const ON_A_CLUSTER = `(project uuid) RETURNS text[]
LANGUAGE plpgsql AS $function$
DECLARE
  shard bigint := get_shard_id_for_distribution_column('${TABLES[0]}', project);
BEGIN
  PERFORM lock_shard_metadata(5, ARRAY[shard]);
  IF EXISTS (SELECT FROM pg_dist_placement p WHERE p.shardid = shard AND p.groupid = (SELECT l.groupid FROM pg_dist_local_group l)) THEN
    RETURN ARRAY[${TABLES.map((table) => `shard_name('${table}', get_shard_id_for_distribution_column('${table}', project))`).join(', ')}];
  END IF;
  RETURN NULL;
END
$function$`

const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 8)

const NAME = `shards_here_${digest(ON_A_CLUSTER)}`

/** A function that is not called by itself, but by the stored ones, as it is on one PostgreSQL. */
export const SHARDS_HERE = {
  name: NAME,
  definition: `CREATE OR REPLACE FUNCTION ${NAME}(project uuid) RETURNS text[] LANGUAGE sql IMMUTABLE AS 'SELECT NULL::text[]'`,
}

/** The same on a cluster. */
export const SHARDS_HERE_ON_A_CLUSTER = `CREATE OR REPLACE FUNCTION ${NAME}${ON_A_CLUSTER}`

export const SHARDS_VARIABLE = `
  shards text[] := ${NAME}(p_project);`

/**
 * One statement on one of the tables, behind `before` and before `after`, such as a loop's, for which it gives columns of
 * these types. `variables`: those of the function that it reads, beside its parameters.
 *
 * On a shard it is a function of the connection's own, created when it is first needed there: planning the statement
 * each time would cost as much as carrying it out.
 */
export function onShard(
  table: (typeof TABLES)[number],
  statement: string,
  variables: readonly string[],
  {
    before = '',
    after = ';',
    gives = [],
  }: { before?: string; after?: string; gives?: readonly string[] } = {},
): string {
  const given: string[] = []
  const numbered = statement.replace(/\w+/g, (name) => {
    if (!name.startsWith('p_') && !variables.includes(name)) return name
    if (!given.includes(name)) given.push(name)
    return `$${given.indexOf(name) + 1}`
  })
  const shard = `shards[${TABLES.indexOf(table) + 1}]`
  const body = `$sql$${numbered.replace(table, `$sql$ || ${shard} || $sql$`)}$sql$`
  const step = `'pg_temp.step_${digest(statement)}_' || ${shard}`
  const types = given.map((name) => `pg_typeof(${name})`).join(', ')
  const numbers = given.map((_, index) => `$${index + 1}`).join(', ')
  const isRead = gives.length > 0
  const returned = isRead ? `TABLE (${gives.map((type, index) => `c${index} ${type}`).join(', ')})` : 'void'
  return `
  IF shards IS NULL THEN${before}${statement}${after}
  ELSE
    IF to_regproc(${step}) IS NULL THEN
      PERFORM set_config('citus.enable_ddl_propagation', 'off', true);
      EXECUTE 'CREATE FUNCTION ' || ${step} || '(' || concat_ws(', ', ${types}) || ') RETURNS ${returned} LANGUAGE plpgsql
        AS $step$ BEGIN ${isRead ? 'RETURN QUERY ' : ''}' || ${body} || '; END $step$';
    END IF;${before}
    EXECUTE 'SELECT ${isRead ? '* FROM ' : ''}' || ${step} || '(${numbers})' USING ${given.join(', ')}${after}
  END IF;`
}
