import { planned, type Statement } from '../../postgres/statement.js'
import { type HandledTable, isHandled, type Table } from '../table.js'

/**
 * How many rows there are to read, for the progress, a statement a table. Row: rows. Parameters: $1 project, or null for
 * all.
 */
export function measureStatements(tables: readonly Table[]): Statement[] {
  const measured = tables.flatMap(({ name, own }) => Object.entries({ [name]: 'count(*)', ...own?.measured }))
  return measured.map(([table, rows]) =>
    planned(
      `verify_measure_${table}`,
      `SELECT ${rows} AS rows FROM ${table} t WHERE $1::uuid IS NULL OR t.project_id = $1`,
    ),
  )
}

/**
 * The next project that a table has rows of: the only way to find rows of projects that do not exist. One statement
 * per table. Parameters: $1 project to start after.
 */
export function nextProjectStatements(tables: readonly (Table | HandledTable)[]): Statement[] {
  return tables
    .filter((table) => !isHandled(table) || !table.is_reference)
    .map(({ name }) =>
      planned(
        `verify_next_project_${name}`,
        `SELECT t.project_id FROM ${name} t WHERE $1::uuid IS NULL OR t.project_id > $1 ORDER BY t.project_id LIMIT 1`,
      ),
    )
}

/** Tokens without a project. Rows: id, project_id. */
export const TOKENS_WITHOUT_PROJECT = planned(
  'verify_tokens',
  'SELECT k.id, k.project_id FROM api_keys k LEFT JOIN projects p ON p.id = k.project_id WHERE p.id IS NULL ORDER BY k.id',
)

/** All projects. Rows: id, name. */
export const LIST_PROJECT_NAMES = planned(
  'verify_projects',
  'SELECT p.id, p.name FROM projects p ORDER BY p.created_at, p.id',
)

/** A row if there is such a project. Parameters: $1 id. */
export const PROJECT_IS_KNOWN = planned('verify_project', 'SELECT p.id FROM projects p WHERE p.id = $1')
