import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { withDatabaseName } from './database_url.ts'
import { execute } from './sql.ts'

export interface TestDatabase {
  url: string
  drop(): Promise<void>
}

/** Why tests that need a database of their own cannot run here; undefined where they can. */
export function reasonForNoOwnDatabase(): string | undefined {
  return inject('testServer').mode === 'shared'
    ? 'Citus databases cannot be cloned or created empty'
    : undefined
}

/** A migrated database: a clone of the template, or the one that all files share where cloning is impossible. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const server = inject('testServer')
  if (server.mode === 'shared') return { url: server.serverUrl, drop: async () => {} }
  return createDatabase(`TEMPLATE ${server.template}`)
}

/** A database without any table, as a first start finds it. */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  const reason = reasonForNoOwnDatabase()
  if (reason) throw new Error(reason)
  return createDatabase('')
}

async function createDatabase(clause: string): Promise<TestDatabase> {
  const { serverUrl, prefix } = inject('testServer')
  const name = `${prefix}_${randomBytes(6).toString('hex')}`
  await execute(serverUrl, `CREATE DATABASE ${name} ${clause}`)
  return {
    url: withDatabaseName(serverUrl, name),
    drop: () => execute(serverUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  }
}
