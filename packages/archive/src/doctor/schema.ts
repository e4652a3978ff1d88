import type { Database } from '@annals/kits/postgres/database.js'
import { isUndefinedTable } from '@annals/kits/postgres/database_errors.js'
import { migrationStatements, migrations, schemaVersion } from '@annals/kits/postgres/migrations.js'
import { type Diagnosis, well, wrong } from './diagnosis.js'
import { LIST_OBJECTS, READ_SCHEMA_VERSION } from './doctor_queries.js'

/** Whether the schema has this version, and all its indexes and constraints exist and are valid. */
export async function checkSchema(database: Database): Promise<Diagnosis[]> {
  const applied = await appliedVersion(database)
  const needed = schemaVersion()
  if (applied === 0) return [well('schema', 'none yet; the first start creates it')]
  if (applied < needed) {
    const todo = 'Run "annals migrate", or start this version of Annals, which does that.'
    const found = `version ${applied}, and this version of Annals needs ${needed}`
    return [wrong('schema', 'warning', found, todo)]
  }
  if (applied > needed) {
    const todo = 'A newer version of Annals has migrated it: run that version, or a newer one.'
    const found = `version ${applied}, and this version of Annals knows up to ${needed}`
    return [wrong('schema', 'failure', found, todo)]
  }
  return [well('schema', `version ${applied}`), ...(await checkObjects(database))]
}

async function checkObjects(database: Database): Promise<Diagnosis[]> {
  const rows = await database.query(LIST_OBJECTS, [])
  const valid = new Map(rows.map((row) => [row.name!, row.valid === 't']))
  const expected = expectedObjects()
  const checks = expected
    .filter(({ name }) => valid.get(name) !== true)
    .map(({ name, statement }) =>
      valid.has(name)
        ? wrong('indexes', 'failure', `${name} is not valid`, `Drop it and create it again: ${statement};`)
        : wrong('indexes', 'failure', `${name} is missing`, `Make it: ${statement};`),
    )
  return checks.length > 0
    ? checks
    : [well('indexes', `all ${expected.length} indexes and constraints are there`)]
}

async function appliedVersion(database: Database): Promise<number> {
  try {
    const [row] = await database.query(READ_SCHEMA_VERSION, [])
    return Number(row!.version ?? 0)
  } catch (error) {
    if (isUndefinedTable(error)) return 0
    throw error
  }
}

/** An index or constraint that the migrations create, and the statement that recreates it. */
interface ExpectedObject {
  name: string
  statement: string
}

const CREATED = [
  /^CREATE (?:UNIQUE )?INDEX (?:CONCURRENTLY )?(?:IF NOT EXISTS )?(\w+) ON/,
  /^ALTER TABLE (?:ONLY )?\w+ ADD CONSTRAINT (\w+) /,
]
const DROPPED = [
  /^DROP INDEX (?:CONCURRENTLY )?(?:IF EXISTS )?(\w+)/,
  /^ALTER TABLE (?:ONLY )?\w+ DROP CONSTRAINT (?:IF EXISTS )?(\w+)/,
]
// recheck: it reads our own migrations, which are short and not a caller's.
const PRIMARY_KEY = /^CREATE TABLE (?:IF NOT EXISTS )?(\w+) \([\s\S]*?\bPRIMARY KEY (\([^)]*\))/
const DROPPED_TABLE = /^DROP TABLE (?:IF EXISTS )?(\w+)/

/**
 * The indexes and constraints of a schema of this version, read from the migrations, so that no second list must be
 * kept. Statements inside DO blocks create none.
 */
export function expectedObjects(): ExpectedObject[] {
  const objects = new Map<string, string>()
  for (const statement of allStatements()) {
    const [created] = CREATED.flatMap((pattern) => pattern.exec(statement)?.[1] ?? [])
    if (created) objects.set(created, statement)
    const [dropped] = DROPPED.flatMap((pattern) => pattern.exec(statement)?.[1] ?? [])
    if (dropped) objects.delete(dropped)
    const [, table, columns] = PRIMARY_KEY.exec(statement) ?? []
    if (table) objects.set(`${table}_pkey`, `ALTER TABLE ${table} ADD PRIMARY KEY ${columns}`)
    const [, gone] = DROPPED_TABLE.exec(statement) ?? []
    if (gone) objects.delete(`${gone}_pkey`)
  }
  return [...objects].map(([name, statement]) => ({ name, statement }))
}

function allStatements(): string[] {
  return migrations()
    .flatMap((migration) => migrationStatements(migration.read()))
    .map((statement) => statement.replace(/--.*$/gm, '').trim().replace(/\s+/g, ' '))
}
