import { Loop } from '@annals/kits/lifecycle/background.js'
import type { Module, OpenModule } from '@annals/kits/module.js'
import { describeError } from '@annals/kits/postgres/database_errors.js'
import { TokenDirectory } from './authenticate.js'
import { AdminSessions } from './tokens/admin_sessions.js'
import { UsageDirectory } from './usage.js'

const USED = {
  ...({ sessions: 'bigint', entries: 'bigint', bytes: 'bigint' } as const),
  ...({ blobs: 'bigint', blob_bytes: 'bigint', model_tokens: 'bigint' } as const),
}

/** Between two writes of usage by day, on average. */
const USAGE_MS = 10_000

export interface Projects extends OpenModule {
  /** API keys, their owners and scopes. */
  tokens: TokenDirectory
  adminSessions: AdminSessions | undefined
  usage: UsageDirectory
}

export const PROJECTS_MODULE: Module<Projects> = {
  name: 'projects',
  open: (kits) => {
    const { config, database, reserved, background } = kits
    const { token_cache_ms, admin_token } = config
    const usage = new UsageDirectory(database)
    const writeUsage = () => usage.days.write()
    const failure = 'usage by day could not be written'
    return {
      tokens: new TokenDirectory(reserved, token_cache_ms),
      adminSessions:
        admin_token === undefined ? undefined : new AdminSessions(database.of('sign_in'), admin_token),
      usage,
      routes: async () => (await import('./project_routes.js')).projectRoutes({ ...kits, usage }),
      background: () => new Loop({ ...background, failure, poll: writeUsage, poll_ms: USAGE_MS }),
      // After all that is counted, and before the connections are closed.
      close: () =>
        writeUsage().catch((error) => background.logger.warn({ err: describeError(error) }, failure)),
    }
  },
  tables: [
    {
      name: 'usage_days',
      kind: 'usage_day',
      key: ['day'],
      columns: { day: 'date', ...USED },
      erased_with: 'project',
      counted: false,
      exported: 'in_backups',
      is_derived: true,
      checks: {},
    },
    {
      name: 'projects',
      is_reference: true,
      backed_up: { key: 'id', type: 'uuid', project: 'id', without: ['consumers', 'vectors'] },
      handled: 'The last row that an erasure of the project deletes; an export has its name in the header.',
    },
    {
      name: 'api_keys',
      is_reference: true,
      backed_up: { key: 'id', type: 'uuid', project: 'project_id' },
      handled: 'Deleted first when a project is erased, so that nobody gets in; never exported.',
    },
    {
      name: 'admin_sessions',
      is_reference: true,
      handled: 'Sessions in the console, which end by themselves. Neither exported nor backed up.',
    },
    {
      name: 'audit',
      is_reference: true,
      backed_up: { key: 'seq', type: 'bigint' },
      handled: 'Append-only: it tells who erased a project, too. Never exported with one.',
    },
  ],
}
