import { each, Loop } from '@annals/kits/lifecycle/background.js'
import type { Module, OpenModule } from '@annals/kits/module.js'
import type { Database } from '@annals/kits/postgres/database.js'
import { describeError } from '@annals/kits/postgres/database_errors.js'
import { NotedReads } from './noted_reads.js'
import { ADD_READS, FIND_PROJECTS_THAT_FORGET_READS, FORGET_READS } from './read_queries.js'

const WRITE_MS = 3_000
const FORGOTTEN_AT_ONCE = 10_000

export interface Audit extends OpenModule {
  notedReads: NotedReads
}

export const AUDIT_MODULE: Module<Audit> = {
  name: 'audit',
  open: (kits) => {
    const { database, background } = kits
    const { logger, signal } = background
    const failure = 'reads could not be noted; will retry'
    const notedReads = new NotedReads(database, (lost) =>
      logger.warn({ lost }, 'reads were not noted: too many waited for the database'),
    )
    return {
      notedReads,
      routes: async () => (await import('./audit_routes.js')).auditRoutes(kits),
      background: () => {
        const loops = [
          new Loop({ ...background, failure, poll: () => notedReads.write(), poll_ms: WRITE_MS }),
          new Loop({
            ...background,
            failure: 'old reads could not be deleted; will retry',
            poll: () => forgetReads(background.database, signal),
            poll_ms: kits.config.retention_ms,
          }),
        ]
        return { ended: () => Promise.all(loops.map((loop) => loop.ended())) }
      },
      // After the last answer, and before the connections are closed.
      close: () =>
        notedReads
          .write(true)
          .catch((error) => logger.warn({ err: describeError(error) }, 'reads could not be noted')),
    }
  },
  functions: [ADD_READS],
  tables: [
    {
      name: 'session_reads',
      kind: 'session_read',
      key: ['seq'],
      columns: {
        ...({ seq: 'ordinal', read_at: 'time', session_id: 'uuid', principal_id: 'uuid' } as const),
        ...({ shown: 'text', actor: 'text' } as const),
      },
      // Not with the session: who read what was erased is asked for afterwards.
      erased_with: 'project',
      counted: false,
      exported: 'in_backups',
      checks: {},
    },
  ],
}

/** Deletes reads that are older than their project keeps them. */
async function forgetReads(database: Database, signal: AbortSignal): Promise<void> {
  const projects = await database.query(FIND_PROJECTS_THAT_FORGET_READS, [])
  await each(projects, signal, async ({ id, days }) => {
    for (let deleted = FORGOTTEN_AT_ONCE - 1; deleted >= FORGOTTEN_AT_ONCE - 1 && !signal.aborted; )
      deleted = (await database.query(FORGET_READS, [id!, days!, FORGOTTEN_AT_ONCE])).length
  })
}
