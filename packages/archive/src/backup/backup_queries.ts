import { type HandledTable, isHandled, type Table } from '@annals/kits/lifecycle/table.js'
import { planned, type Statement } from '@annals/kits/postgres/statement.js'

export const CATALOGUE_ROWS_MAX = 500

export type BackedUpTable = HandledTable & Required<Pick<HandledTable, 'backed_up'>>

/** The tables of the installation that backups have, each after those that it refers to. */
export function backedUp(tables: ReadonlyArray<Table | HandledTable>): BackedUpTable[] {
  return tables.filter((table): table is BackedUpTable => isHandled(table) && table.backed_up !== undefined)
}

/** Rows of the installation. Rows: key, project (null: of none), line. Parameters: $1 project or null: all, $2 key to begin after or null. */
export function readCatalogue({ name, backed_up }: BackedUpTable): Statement {
  const { key, type, project, without = [] } = backed_up
  const row = without.reduce((json, column) => `${json} - '${column}'`, 'to_jsonb(t)')
  return planned(
    `back_up_${name}`,
    `
SELECT t.${key}::text AS key, ${project ? `t.${project}::text` : 'NULL'} AS project, concat('{"table":"${name}","row":', ${row}, '}') AS line
FROM ${name} t
WHERE ($1::uuid IS NULL OR ${project ? `t.${project} = $1::uuid` : 'false'}) AND ($2::text IS NULL OR t.${key} > $2::text::${type})
ORDER BY t.${key} LIMIT ${CATALOGUE_ROWS_MAX}`,
  )
}

/** Stores rows that are not there. Rows: key, of those. Parameters: $1 rows as a JSON array. */
export function restoreCatalogue({ name, backed_up }: BackedUpTable, columns: readonly string[]): Statement {
  return planned(
    `restore_${name}`,
    `
INSERT INTO ${name} AS n (${columns.join(', ')})
SELECT ${columns.map((column) => `r.${column}`).join(', ')} FROM jsonb_populate_recordset(NULL::${name}, $1::jsonb) AS r
ON CONFLICT DO NOTHING RETURNING n.${backed_up.key}`,
  )
}

/** Rows: key, of those that are there. Parameters: $1 keys. */
export function findCatalogue({ name, backed_up: { key, type } }: BackedUpTable): Statement {
  return planned(
    `find_restored_${name}`,
    `SELECT t.${key}::text AS key FROM ${name} t WHERE t.${key} = ANY ($1::${type}[])`,
  )
}
