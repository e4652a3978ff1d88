import { setPlannerOfWorkers } from '@annals/kits/postgres/citus/workers.js'
import type { ConnectionTarget } from '@annals/kits/postgres/database.js'
import { installFunctions } from '@annals/kits/postgres/install_functions.js'
import { migrate } from '@annals/kits/postgres/migrator.js'
import { FUNCTIONS } from './modules.js'

/** Migrates the schema, installs this version's functions and sets up the workers of a cluster. @throws StartError as `migrate` */
export async function migrateDatabase(
  target: ConnectionTarget,
  onProgress: (sentence: string) => void = () => {},
  signal?: AbortSignal,
  functions = FUNCTIONS,
): Promise<void> {
  let is_told = false
  const onApplied = (migration: string, is_new_schema: boolean) => {
    // A new schema is one sentence; a database with data shows how far a long migration has come.
    if (!is_new_schema) onProgress(`Applied migration ${migration}`)
    else if (!is_told) onProgress('Creating the schema')
    is_told = true
  }
  await migrate(target, onApplied, signal, onProgress)
  signal?.throwIfAborted()
  await installFunctions(target, functions, signal, onProgress)
  signal?.throwIfAborted()
  await setPlannerOfWorkers(target, signal)
}
