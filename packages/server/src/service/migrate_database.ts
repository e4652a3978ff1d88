import type { ConnectionTarget } from '../postgres/database.js'
import { installFunctions } from '../postgres/install_functions.js'
import { connect, migrate } from '../postgres/migrator.js'
import { FUNCTIONS } from './modules.js'

/** Migrates the schema and installs this version's functions. @throws StartError as `migrate` */
export async function migrateDatabase(
  target: ConnectionTarget,
  onProgress: (sentence: string) => void = () => {},
  signal?: AbortSignal,
  functions = FUNCTIONS,
): Promise<void> {
  await migrate(target, onProgress, signal)
  signal?.throwIfAborted()
  const client = await connect(target)
  try {
    await installFunctions(client, functions)
  } finally {
    await client.end().catch(() => {})
  }
}
