import { CREATE_LEARNING_SPACE, MERGE_META } from '../learning/learning_space_queries.js'
import { ERASE_SLICE_OF_ENTRIES } from '../lifecycle/erase/erasure_queries.js'
import { APPEND_ENTRIES, APPEND_MARKED_ENTRIES } from '../log/append/append_queries.js'
import { MERGE_MESSAGE_META } from '../log/read/message_queries.js'
import type { ConnectionTarget } from '../postgres/database.js'
import { installFunctions } from '../postgres/install_functions.js'
import { connect, migrate } from '../postgres/migrator.js'
import type { StoredFunction } from '../postgres/stored_function.js'
import { COPY_SHORT_SESSION, END_COPIES, MAKE_COPIED_SESSION } from '../sessions/copy_queries.js'
import { CREATE_SESSION, MERGE_CONFIGS, REPLACE_CONFIGS } from '../sessions/session_queries.js'

/** Every function that statements of this version call. */
export const STORED_FUNCTIONS: readonly StoredFunction[] = [
  APPEND_ENTRIES,
  APPEND_MARKED_ENTRIES,
  COPY_SHORT_SESSION,
  CREATE_LEARNING_SPACE,
  CREATE_SESSION,
  ERASE_SLICE_OF_ENTRIES,
  MAKE_COPIED_SESSION,
  MERGE_CONFIGS,
  MERGE_MESSAGE_META,
  MERGE_META,
  REPLACE_CONFIGS,
  ...Object.values(END_COPIES),
]

/** Migrates the schema and installs this version's functions. @throws StartError as `migrate` */
export async function migrateDatabase(
  target: ConnectionTarget,
  onProgress: (sentence: string) => void = () => {},
  signal?: AbortSignal,
): Promise<void> {
  await migrate(target, onProgress, signal)
  signal?.throwIfAborted()
  const client = await connect(target)
  try {
    await installFunctions(client, STORED_FUNCTIONS)
  } finally {
    await client.end().catch(() => {})
  }
}
