import { dropTerms } from '../../lists/listed.js'
import { prepared, type Statement } from '../../postgres/statement.js'
import { orderOf, ownerColumn, type Table } from '../table.js'

/**
 * Erasing rows of a table in slices. These are found by ctid, which needs no index but the one that finds the owner.
 * Nobody changes the rows meanwhile: their owner is deleted already, or locked.
 */
export function eraseRows(
  table: Table,
  further_owner?: string,
): { of_owners: Statement; of_project: Statement } {
  const { name, key } = table
  const slice = (suffix: string, condition: string) =>
    prepared(
      `erase_${name}_${suffix}`,
      `
WITH gone AS (
  DELETE FROM ${name} AS t WHERE t.project_id = $1 AND t.ctid = ANY (ARRAY(
    SELECT o.ctid FROM ${name} o WHERE o.project_id = $1 ${condition}))
  RETURNING 1 AS one
)
SELECT count(*) AS gone FROM gone`,
    )
  return {
    of_owners: slice(
      further_owner === undefined ? 'of_owners' : `of_${further_owner}s`,
      `AND o.${further_owner ?? ownerColumn(table)} = ANY ($2::uuid[]) LIMIT $3`,
    ),
    of_project: slice('of_project', `ORDER BY ${key.map((column) => `o.${column}`).join(', ')} LIMIT $2`),
  }
}

/** Erasing rows one by one, each with what belongs to it. */
export function eraseOwners(table: Table) {
  const { name, document } = table
  const find = (suffix: string, condition: string, order: readonly string[], limit: string) =>
    prepared(
      `find_${name}_${suffix}`,
      `SELECT t.id FROM ${name} t WHERE t.project_id = $1${condition} ORDER BY ${order.map((column) => `t.${column}`).join(', ')} LIMIT ${limit}`,
    )
  return {
    find_of_owner: find('of_owner', ` AND t.${ownerColumn(table)} = $2`, orderOf(table), '$3'),
    find_of_project: find('of_project', '', ['id'], '$2'),
    lock: prepared(
      `lock_${name}_by_id`,
      `SELECT t.id FROM ${name} t WHERE t.project_id = $1 AND t.id = ANY ($2::uuid[]) ORDER BY t.id FOR UPDATE`,
    ),
    /** Found by the documents of the rows, and so before these are deleted. */
    terms: document && prepared(`erase_terms_of_${name}`, dropTerms({ table: name, document })),
    rows: prepared(
      `erase_${name}_by_id`,
      `DELETE FROM ${name} AS t WHERE t.project_id = $1 AND t.id = ANY ($2::uuid[]) RETURNING t.id`,
    ),
  }
}

/** Taking out a project and a user. */
export const ERASE = {
  /** Takes the user out of reach of new rows until the transaction ends. Parameters: $1 project, $2 identifier. */
  lock_user: prepared(
    'lock_user',
    'SELECT u.id FROM users u WHERE u.project_id = $1 AND u.identifier = $2 FOR UPDATE',
  ),
  user: prepared('delete_user', 'DELETE FROM users WHERE project_id = $1 AND id = $2'),
  api_keys: prepared('erase_project_api_keys', 'DELETE FROM api_keys WHERE project_id = $1'),
  /** Parameters: $1 project. Row: one if it was there. */
  project: prepared('erase_project', 'DELETE FROM projects AS p WHERE p.id = $1 RETURNING p.id'),
} as const
