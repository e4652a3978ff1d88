import { fill, sqlFile } from '../sql_file.js'

export const ON_SHARDS = sqlFile('postgres/citus/on_shards.sql')

/** What a cluster has in place of a function whose text names tables in braces. `parameters`: names and types. */
export function onShards(
  name: string,
  parameters: readonly string[],
  definition: string,
  tables: readonly string[],
): string {
  return fill(ON_SHARDS, {
    name,
    tables: tables.join(','),
    parameters: parameters.join(', '),
    numbers: parameters.map((_, index) => `$${index + 1}`).join(', '),
    arguments: parameters.map((parameter) => parameter.split(' ')[0]).join(', '),
    // The last one: what it names in braces stays.
    definition,
  })
}
