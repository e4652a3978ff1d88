import { castOf, columnText, type Table } from '@annals/kits/lifecycle/table.js'
import { insertTerms } from '@annals/kits/lists/listed.js'
import { planned, type Statement } from '@annals/kits/postgres/statement.js'
import { hasUser, readColumn, userJoinText } from '../columns.js'
import { ownOf } from '../tables.js'

/**
 * Lines come as one JSON array and are taken apart here, so that their numbers keep every digit. No statement is
 * prepared: an import often begins with empty tables, and a plan made for these would stay.
 */
export function restoreStatements(table: Table, owner: Table | undefined) {
  const { name, key, columns, unchanging = [], document } = table
  const names = Object.keys(columns)
  const has_user = hasUser(columns)
  const user_column = names.find((column) => columns[column] === 'user?')
  const sameKey = key
    .map((column) => `t.${column} = (l ->> '${column}')::${castOf(columns[column]!)}`)
    .join(' AND ')
  const compared = unchanging.map((column) => {
    const of = column === 'user' ? user_column! : column
    return `${columnText(of, columns[of]!)} AS "${column}"`
  })
  const returned = [...new Set([...key, ...(document ? ['user_id', document, 'created_at'] : [])])]
  const terms = document ? `, made_terms AS (${insertTerms({ table: name, document }, '$1', 'made')}\n)` : ''
  return {
    /** Rows that exist. Rows: the key, and what never changes. Parameters: $1 project, $2 lines. */
    find: planned(
      `find_${name}_to_restore`,
      `
SELECT ${[...key.map((column) => `${columnText(column, columns[column]!)} AS ${column}`), ...compared].join(', ')}
FROM jsonb_array_elements($2::jsonb) AS l
CROSS JOIN LATERAL (SELECT t.* FROM ${name} t WHERE t.project_id = $1 AND ${sameKey} OFFSET 0) t
${has_user ? userJoinText(`u.id = t.${user_column}`) : ''}`,
    ),
    /** Rows: the keys that were stored; one whose user does not exist is not. Parameters: $1 project, $2 lines. */
    restore: planned(
      `restore_${name}`,
      `
WITH made AS (
  INSERT INTO ${name} AS s (project_id, ${names.join(', ')})
  SELECT $1, ${names.map((column) => readColumn(column, columns[column]!)).join(', ')}
  FROM jsonb_array_elements($2::jsonb) AS l
  ${has_user ? `${userJoinText("u.identifier = l ->> 'user'")}\n  WHERE l ->> 'user' IS NULL OR u.id IS NOT NULL` : ''}
  RETURNING ${returned.map((column) => `s.${column}`).join(', ')}
)${terms}
SELECT ${key.map((column) => `${columnText(column, columns[column]!, 'made')} AS ${column}`).join(', ')} FROM made`,
    ),
    /** Rows: id. Parameters: $1 project, $2 ids. */
    lock: owner && lockOf(owner),
  }
}

function lockOf(owner: Table): Statement {
  const { table, column } = ownOf(owner).lock ?? { table: owner.name, column: 'id' }
  return planned(
    `lock_${table}_of_restored_rows`,
    `SELECT o.${column} AS id FROM ${table} o WHERE o.project_id = $1 AND o.${column} = ANY ($2::uuid[]) ORDER BY o.${column} FOR KEY SHARE`,
  )
}
