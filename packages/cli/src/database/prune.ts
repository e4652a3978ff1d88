import { notFound } from '@annals/kits/errors.js'
import type { Database } from '@annals/kits/postgres/database.js'
import { writeJson } from '@annals/messages/json'
import { Command, InvalidArgumentError, Option } from 'commander'
import { parseObject } from '../client/arguments.js'
import { countOf } from '../terminal/count.js'
import { runLongDatabaseWork } from './with_database.js'

const SECONDS: Record<string, number> = { d: 86_400, h: 3_600, m: 60 }
/** A hundred years. */
const SECONDS_MAX = 36_500 * 86_400

/** annals prune */
export function pruneCommand(): Command {
  return new Command('prune')
    .description('Delete sessions, with their logs, that have not changed for a given time.')
    .requiredOption('--older-than <age>', 'not touched for this long, such as 90d, 36h or 30m', parseAge)
    .option('--project <name or id>', 'in this project; not needed if there is only one')
    .option('--all-projects', 'in all projects')
    .option('--user <identifier>', 'only sessions of this user')
    .option(
      '--configs <filter>',
      'only sessions whose configs contain this: JSON, or pairs such as env=test',
      parseObject,
    )
    .addOption(new Option('--filter <filter>').argParser(parseObject).conflicts('configs').hideHelp())
    .option('--dry-run', 'delete nothing; show what would be deleted')
    .addHelpText(
      'after',
      `
Appending an entry, or changing configs or a message's meta, touches a session. Sessions touched while this runs are
kept. The service can keep running; writers wait only briefly. Ctrl-C stops between two steps, and the same command
continues. Users are kept, even when their last session is deleted.

Examples:
  annals prune --older-than 90d --dry-run
  annals prune --older-than 30d --all-projects --configs env=test`,
    )
    .action(async (options: PruneOptions, command: Command) => {
      if (options.project !== undefined && options.allProjects)
        command.error('annals: give either --project or --all-projects.')
      await runLongDatabaseWork(
        (database, signal) => runPrune(database, options, signal),
        'Some sessions were deleted; run the same command again for the rest.',
      )
    })
}

function parseAge(text: string): number {
  const [, count, unit] = /^(\d{1,9})([dhm])$/.exec(text) ?? []
  const seconds = Number(count) * (SECONDS[unit ?? ''] ?? Number.NaN)
  if (!(seconds > 0 && seconds <= SECONDS_MAX))
    throw new InvalidArgumentError('It must be a number of days, hours or minutes, such as 90d, 36h or 30m.')
  return seconds
}

/** Prints the result of pruning. */
interface PruneOptions {
  /** In seconds. */
  olderThan: number
  project?: string
  allProjects?: boolean
  user?: string
  configs?: Record<string, unknown>
  /** The name of `configs` before. */
  filter?: Record<string, unknown>
  dryRun?: boolean
}

/** annals prune */
async function runPrune(database: Database, options: PruneOptions, signal: AbortSignal): Promise<void> {
  const { Erasure } = await import('@annals/kits/lifecycle/erase/erasure.js')
  const { registryOf } = await import('@annals/kits/lifecycle/registry.js')
  const { MODULES } = await import('annals/dist/service/modules.js')
  const { countCandidates, prune, timeBefore } = await import('annals/dist/sessions/erase/prune.js')
  const { findOwner } = await import('annals/dist/users/users.js')
  const { withProgress } = await import('../terminal/progress.js')
  const untouched_since = await timeBefore(database, options.olderThan)
  const erasure = new Erasure(registryOf(MODULES).tables)
  const filter = options.configs ?? options.filter
  const configs = filter && writeJson(filter)
  const total = { sessions: 0, entries: 0 }
  for (const project_id of await chosenProjects(database, options)) {
    const user = await findOwner(database, { project_id, user: options.user })
    if (user === 'nobody') {
      if (options.allProjects) continue
      throw notFound('user')
    }
    const old = { project_id, untouched_since, user_id: user?.id, configs }
    const task = options.dryRun ? 'Looking' : 'Pruning'
    const pruned = await withProgress(task, 'sessions', await countCandidates(database, old), (progress) =>
      prune(database, erasure, old, {
        dry_run: options.dryRun ?? false,
        signal,
        onProgress: ({ looked_at }) => progress.update(looked_at),
      }),
    )
    total.sessions += pruned.sessions
    total.entries += pruned.entries
  }
  const verb = options.dryRun ? 'Would delete' : 'Deleted'
  process.stdout.write(
    `${verb} ${countOf(total.sessions, 'sessions')} with ${countOf(total.entries, 'entries')}, last touched before ${untouched_since}.\n`,
  )
}

async function chosenProjects(database: Database, { project, allProjects }: PruneOptions): Promise<string[]> {
  const { findProject, listNamedProjects } = await import('annals/dist/projects/projects.js')
  if (!allProjects) return [await findProject(database, project)]
  return (await listNamedProjects(database)).map(({ id }) => id)
}
