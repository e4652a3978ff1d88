import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename } from 'node:path'
import { packagedFile } from '../version.js'
import { insertValues } from './citus/insert_values.js'
import type { Parameter, Queryable } from './database.js'
import type { Statement } from './statement.js'

const { resolve } = createRequire(import.meta.url)

/**
 * A write of several steps that the database carries out in one call.
 *
 * On Citus a statement with several writing parts runs on the coordinator: each part is a command of its own, and what
 * lies between two parts is copied to every worker, which must all be up. A function that is distributed by its
 * project runs on the one worker that has the project: one command, whatever the function does. On one PostgreSQL it
 * costs less than the statement: what lies between two steps stays in variables.
 *
 * The name ends with a digest of the definition. A version of Annals so installs its own functions beside those of
 * another version, whose nodes may still be running: a change of a function needs no migration. What is left of old
 * versions is dropped: see install_functions.ts.
 */
export interface StoredFunction {
  /** The name in the database. */
  readonly name: string
  /** CREATE OR REPLACE FUNCTION. */
  readonly definition: string
  /** The same for a cluster. */
  readonly definition_on_cluster: string
  /** Calls it. Row: `answer`, which may be null. */
  readonly statement: Statement
}

/**
 * A whole function in PL/pgSQL that returns text. Its name is {name}. `values`: what else the text names in braces.
 * `tables`: those of the project's tables that it names in braces as well, because on a cluster their shards take their
 * places: see citus/on_shards.sql. What it selects to insert is inserted as values there, unless it names the table in
 * braces: see citus/insert_values.ts. One that only reads says STABLE.
 *
 * The first parameter is `p_project`, by which the function is distributed. Where a name is both a column's and a
 * variable's, the column is meant. The steps should be simple: on Citus each is planned on the worker, under the worker's
 * settings, and one that joins nothing and contains no subquery is planned once. They find rows by indexes whatever the
 * statistics say, unless the function sets the planner otherwise.
 */
export function storedFunction(
  name: string,
  sql: string,
  values: Values = {},
  tables: readonly string[] = [],
): StoredFunction {
  const text = fill(sql, values)
  const [head = ''] = text.split('$function$', 1)
  const parameters = parametersIn(text)
  const named = Object.fromEntries(tables.map((table) => [table, table]))
  const elsewhere = insertValues(fill(text, named))
  const full_name = versioned(name, text + (tables.length === 0 ? elsewhere : ON_SHARDS + elsewhere))
  return {
    name: full_name,
    definition: fill(text, { name: full_name, ...named }),
    definition_on_cluster:
      tables.length === 0
        ? fill(elsewhere, { name: full_name })
        : onShards(full_name, parameters, { elsewhere, here: insertValues(text) }, tables),
    statement: { ...statementOf(name, full_name, parameters.length), writes: !/\bSTABLE\b/.test(head) },
  }
}

/** The same for one that stands in a file of its own, which has its name. */
export function storedFunctionIn(path: string, values?: Values, tables?: readonly string[]): StoredFunction {
  return storedFunction(basename(path, '.sql'), sqlFile(path), values, tables)
}

/**
 * The same for an INSERT of what a SELECT finds, or several, without RETURNING. The parameters are `$1`, the project, and so
 * on, of these types from $2 on. `answer`: an expression.
 */
export function storedInsert(
  name: string,
  types: readonly string[],
  text: string,
  answer = 'NULL',
): StoredFunction {
  const parameters = ['p_project uuid', ...types.map((type, index) => `p_${index + 2} ${type}`)]
  return storedFunction(
    name,
    `CREATE OR REPLACE FUNCTION {name}(${parameters.join(', ')}) RETURNS text
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
BEGIN
  ${text};
  RETURN ${answer};
END
$function$`,
  )
}

type Values = Readonly<Record<string, string | number>>

/** Names and types. */
function parametersIn(text: string): string[] {
  const [, after = ''] = text.replaceAll(/--.*/g, '').split('{name}(', 2)
  const list = after.slice(0, after.search(/\)(?: RETURNS|\n)/))
  return list.split(',').map((parameter) => parameter.trim())
}

function versioned(name: string, definition: string): string {
  return `${name}_${createHash('sha256').update(definition).digest('hex').slice(0, 8)}`
}

function statementOf(name: string, full_name: string, count: number): Statement {
  const given = Array.from({ length: count }, (_, index) => `$${index + 1}`)
  return { name, text: `SELECT ${full_name}(${given.join(', ')}) AS answer`, prepared: true }
}

/** Those among what files of statements export. */
export function functionsIn(...files: ReadonlyArray<object>): StoredFunction[] {
  const exported: unknown[] = files.flatMap((file) => Object.values(file))
  return exported.filter((one): one is StoredFunction => Object.hasOwn(Object(one), 'definition'))
}

/** Calls a function; the first parameter is the project. Returns its answer. */
export async function call(
  database: Queryable,
  { statement }: StoredFunction,
  ...parameters: Parameter[]
): Promise<string | null> {
  const [row] = await database.query(statement, parameters)
  return row?.answer ?? null
}

/**
 * SQL that stands in a file of its own, which comes with the package. `path`: below the server's `src`, such as
 * `log/append/append_entries.sql`; or `#citus/` and the name of a file in `postgres/citus`.
 */
export function sqlFile(path: string): string {
  return readFileSync(path.startsWith('#') ? resolve(path) : packagedFile(`src/${path}`), 'utf8')
}

/** Puts values in the places of a text that name them in braces. @throws if the text has no such place */
export function fill(text: string, values: Values): string {
  return Object.entries(values).reduce((filled, [name, value]) => {
    const parts = filled.split(`{${name}}`)
    if (parts.length === 1) throw new Error(`No place in the SQL is named {${name}}.`)
    return parts.join(`${value}`)
  }, text)
}

export const ON_SHARDS = sqlFile('#citus/on_shards.sql')

/**
 * The definition on a cluster of a function whose text names tables in braces. `parameters`: names and types. `here`: the
 * text for the machine that has the shards, `elsewhere` for others.
 */
export function onShards(
  name: string,
  parameters: readonly string[],
  { here, elsewhere }: { here: string; elsewhere: string },
  tables: readonly string[],
): string {
  return fill(ON_SHARDS, {
    name,
    tables: tables.join(','),
    parameters: parameters.join(', '),
    numbers: parameters.map((_, index) => `$${index + 1}`).join(', '),
    arguments: parameters.map((parameter) => parameter.split(' ')[0]).join(', '),
    // The last ones: what they name in braces stays.
    elsewhere,
    definition: here,
  })
}
