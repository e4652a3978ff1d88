import { notFound } from '../../errors.js'
import { Erasure } from '../../lifecycle/erase/erasure.js'
import { registryOf } from '../../lifecycle/registry.js'
import type { Database } from '../../postgres/database.js'
import { findNamedProject, listProjects } from '../../projects/projects.js'
import { MODULES } from '../../service/modules.js'
import { countCandidates, prune, timeBefore } from '../../sessions/erase/prune.js'
import { findOwner } from '../../users/users.js'
import { countOf } from '../terminal/count.js'
import { showProgress } from '../terminal/progress.js'

/** What the command line says of pruning. */
export interface PruneOptions {
  /** In seconds. */
  olderThan: number
  project?: string
  allProjects?: boolean
  user?: string
  filter?: string
  dryRun?: boolean
}

/** annals prune */
export async function runPrune(
  database: Database,
  options: PruneOptions,
  signal: AbortSignal,
): Promise<void> {
  const untouched_since = await timeBefore(database, options.olderThan)
  const erasure = new Erasure(registryOf(MODULES).tables)
  const total = { sessions: 0, entries: 0 }
  for (const project_id of await chosenProjects(database, options)) {
    const user = await findOwner(database, { project_id, user: options.user })
    if (user === 'nobody') {
      if (options.allProjects) continue
      throw notFound('user')
    }
    const old = { project_id, untouched_since, user_id: user?.id, configs: options.filter }
    const progress = showProgress(
      options.dryRun ? 'Looking' : 'Pruning',
      'sessions',
      await countCandidates(database, old),
    )
    try {
      const pruned = await prune(database, erasure, old, {
        dry_run: options.dryRun ?? false,
        signal,
        onProgress: ({ looked_at }) => progress.update(looked_at),
      })
      total.sessions += pruned.sessions
      total.entries += pruned.entries
    } finally {
      progress.stop()
    }
  }
  const verb = options.dryRun ? 'Would delete' : 'Deleted'
  process.stdout.write(
    `${verb} ${countOf(total.sessions, 'sessions')} with ${countOf(total.entries, 'entries')}, last touched before ${untouched_since}.\n`,
  )
}

async function chosenProjects(database: Database, { project, allProjects }: PruneOptions): Promise<string[]> {
  if (!allProjects) return [(await findNamedProject(database, project)).id]
  return (await listProjects(database)).map((json) => (JSON.parse(json) as { id: string }).id)
}
