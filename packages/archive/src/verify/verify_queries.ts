import {
  type Check,
  castOf,
  columnText,
  type HandledTable,
  isHandled,
  isOwner,
  LOST,
  missing,
  notErased,
  ODD,
  ORPHAN,
  ownerColumn,
  type Table,
} from '@annals/kits/lifecycle/table.js'
import { indexTermsText } from '@annals/kits/lists/listed.js'
import { planned, type Statement } from '@annals/kits/postgres/statement.js'
import { ownOf } from '../tables.js'
import { findingsSql, UNLISTED, unlisted } from './findings.js'

/**
 * How many rows there are to read, for the progress, a statement a table. Row: rows. Parameters: $1 project, or null for
 * all.
 */
export function measureStatements(tables: readonly Table[]): Statement[] {
  const measured = tables.flatMap((table) =>
    Object.entries({ [table.name]: 'count(*)', ...ownOf(table).measured }),
  )
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

export const TOKENS_WITHOUT_PROJECT = planned(
  'verify_tokens',
  'SELECT k.id, k.project_id FROM api_keys k LEFT JOIN projects p ON p.id = k.project_id WHERE p.id IS NULL ORDER BY k.id',
)

export const LIST_PROJECT_NAMES = planned(
  'verify_projects',
  'SELECT p.id, p.name FROM projects p ORDER BY p.created_at, p.id',
)

export const PROJECT_IS_KNOWN = planned('verify_project', 'SELECT p.id FROM projects p WHERE p.id = $1')

/** What is checked of a table's rows: what follows from its columns, and what it names itself. */
export function rowChecks(table: Table, tables: readonly Table[]): Record<string, Check> {
  const { name, kind, erased_with, also_erased_with, columns, document } = table
  const words = kind.replaceAll('_', ' ')
  const owner = `t.${ownerColumn(table)}`
  const owners = tables.filter(
    (other) => isOwner(other) && (other.kind === erased_with || erased_with === 'any'),
  )
  const in_session = owners.some(({ kind }) => kind === 'session')
  const names = table.key.filter((column) => !in_session || column !== ownerColumn(table))
  const key = names.map((column) => `t.${column}`).join(` || ', ' || `)
  const named = columns[names[0]!] === 'text' ? `to_json(${key})::text` : key
  const row = {
    place: names.length > 0 ? `'${words} ' || ${named}` : `'${name}'`,
    ...(in_session && { session: owner }),
  }
  const checks: Record<string, Check> = {}
  const user = Object.keys(columns).find((column) => columns[column] === 'user?')
  if (owners.length > 0)
    checks[`${kind}_without_${erased_with === 'any' ? 'owner' : erased_with}`] = {
      ...row,
      where: [
        ...(columns[ownerColumn(table)]?.endsWith('?') ? [`${owner} IS NOT NULL`] : []),
        ...owners.map((other) => missing(other.name, owner)),
      ].join(' AND '),
      detail: `'the resource that it belongs to does not exist: ' || ${owner}`,
      means: `a ${words} of a resource that does not exist`,
      todo: ORPHAN,
    }
  const second = tables.find((other) => isOwner(other) && other.kind === also_erased_with?.kind)
  if (second !== undefined) {
    const id = `t.${second.kind}_id`
    checks[`${kind}_without_${second.kind}`] = {
      ...row,
      where: `${id} IS NOT NULL AND ${missing(second.name, id)}${second.kind === 'session' ? ` AND ${notErased(id)}` : ''}`,
      detail: `'the ${second.kind.replaceAll('_', ' ')} does not exist: ' || ${id}`,
      means: `a ${words} of a ${second.kind.replaceAll('_', ' ')} that does not exist`,
      todo: ORPHAN,
    }
  }
  if (user !== undefined)
    checks[`${kind}_without_user`] = {
      ...row,
      where: `t.${user} IS NOT NULL AND ${missing('users', `t.${user}`)}`,
      detail: `'no user has the id ' || t.${user}`,
      means: `a ${words}'s user does not exist`,
      todo: LOST,
    }
  if (document !== undefined)
    checks[`${kind}_unlisted`] = {
      ...row,
      where: unlisted('t'),
      detail: `'lists filtered by its ${document} or its user omit it'`,
      means: `filtered lists omit a ${words}`,
      todo: UNLISTED,
    }
  if ('created_at' in columns && 'updated_at' in columns)
    checks[`${kind}_times`] = {
      ...row,
      where: 't.updated_at < t.created_at',
      detail: `'updated_at ' || t.updated_at || ' is before created_at ' || t.created_at`,
      means: `a ${words} was changed before it was created`,
      todo: ODD,
    }
  for (const [check, own] of Object.entries({ ...table.checks, ...ownOf(table).further_checks }))
    checks[check] = { ...row, ...own }
  return checks
}

/**
 * A bounded number of rows, with a row for each thing that is wrong: one statement is one snapshot, on a single server
 * and on a cluster. Parameters: $1 project, $2 how many, and from $3 on the key to begin after, or nulls.
 */
export function verifyPiece(table: Table, tables: readonly Table[]): Statement {
  const { name, key, columns, erased_with, document } = table
  const order = key.map((column) => `r.${column}`).join(', ')
  const after = key.map((column, index) => `$${index + 3}::${castOf(columns[column]!)}`)
  const is_left = ['session', 'any'].includes(erased_with)
    ? `AND ${notErased(`r.${ownerColumn(table)}`)}`
    : ''
  const last = key.map((column) => columnText(column, columns[column]!)).join(', ')
  const rows = `count(*)${document === undefined ? '' : ' + coalesce(sum(cardinality(t.terms)), 0)'}`
  return planned(
    `verify_${name}`,
    `
WITH page AS MATERIALIZED (
  SELECT t.*${document === undefined ? '' : ', i.terms, i.signature'}
  FROM (
    SELECT r.* FROM ${name} r
    WHERE r.project_id = $1 AND (${after[0]} IS NULL OR (${order}) > (${after.join(', ')})) ${is_left}
    ORDER BY ${order} LIMIT $2
  ) t ${document === undefined ? '' : `CROSS JOIN LATERAL ${indexTermsText({ table: name, document }, 't')} AS i`}
)${findingsSql(
      rowChecks(table, tables),
      `SELECT json_build_object('count', count(*), 'rows', ${rows}, 'last',
  (SELECT json_build_array(${last})::text FROM page t ORDER BY ${key.map((column) => `t.${column} DESC`).join(', ')} LIMIT 1))
FROM page t`,
      'page t',
    )}`,
  )
}
