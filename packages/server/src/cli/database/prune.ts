import { Command, InvalidArgumentError } from 'commander'
import { runLongWork } from './long_work.js'
import type { PruneOptions } from './prune_run.js'
import { withDatabaseForLong } from './with_database.js'

const SECONDS: Record<string, number> = { d: 86_400, h: 3_600, m: 60 }
/** A hundred years. */
const SECONDS_MAX = 36_500 * 86_400

/** annals prune */
export function pruneCommand(): Command {
  return new Command('prune')
    .description('Delete sessions that have not been touched for a while, with their logs.')
    .requiredOption('--older-than <age>', 'not touched for this long, such as 90d, 36h or 30m', parseAge)
    .option('--project <name or id>', 'in this project; not needed if there is only one')
    .option('--all-projects', 'in all projects')
    .option('--user <identifier>', 'only sessions of this user')
    .option('--filter <json>', 'only sessions whose configs contain this object', parseFilter)
    .option('--dry-run', 'delete nothing; show what would be deleted')
    .addHelpText(
      'after',
      `
Appending an entry, or changing configs or a message's meta, touches a session. Sessions touched while this runs are
kept. The service can keep running; writers wait only briefly. Ctrl-C stops between two steps, and the same command
continues. Users are kept, even when their last session is deleted.

Examples:
  annals prune --older-than 90d --dry-run
  annals prune --older-than 30d --all-projects --filter '{"env":"test"}'`,
    )
    .action(async (options: PruneOptions, command: Command) => {
      if (options.project !== undefined && options.allProjects)
        command.error('annals: give either --project or --all-projects.')
      const { runPrune } = await import('./prune_run.js')
      await runLongWork(
        (signal) => withDatabaseForLong((database) => runPrune(database, options, signal), signal),
        {
          interrupted: 'Some sessions were deleted; run the same command again for the rest.',
          unfinished: 'Some sessions were deleted; run the same command again for the rest.',
        },
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

function parseFilter(text: string): string {
  try {
    const value = JSON.parse(text) as unknown
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return text
  } catch {
    // Said below.
  }
  throw new InvalidArgumentError('It must be a JSON object, such as {"agent":"gpt-4o"}.')
}
