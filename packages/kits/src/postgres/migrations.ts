import { readdirSync, readFileSync } from 'node:fs'
import { packagedFile } from '../version.js'

const DIRECTORY = packagedFile('migrations/')

export interface Migration {
  version: number
  name: string
  read(): string
}

let known: readonly Migration[] | undefined

export function migrations(): readonly Migration[] {
  known ??= readdirSync(DIRECTORY)
    .filter((name) => /^\d{4}_\w+\.sql$/.test(name))
    .sort()
    .map((name) => ({
      version: Number(name.slice(0, 4)),
      name,
      read: () => readFileSync(`${DIRECTORY}${name}`, 'utf8'),
    }))
  return known
}

export function schemaVersion(): number {
  return migrations().at(-1)?.version ?? 0
}

/** Parts of SQL in which a semicolon ends no statement: comments, strings, and dollar-quoted texts. */
// recheck: it reads our own migrations, which are short and not a caller's.
const WHOLE = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|(\$\w*\$)[\s\S]*?\1|;/g

/** The statements of a migration, with the comments before them. A cluster takes one per call. */
export function migrationStatements(sql: string): string[] {
  const statements: string[] = []
  let start = 0
  for (const { 0: text, index } of sql.matchAll(WHOLE)) {
    if (text !== ';') continue
    statements.push(sql.slice(start, index).trim())
    start = index + 1
  }
  return statements
}
