import { migrationStatements, migrations } from './migrations.js'

/** An index or constraint that the migrations create, and the statement that recreates it. */
export interface ExpectedObject {
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
