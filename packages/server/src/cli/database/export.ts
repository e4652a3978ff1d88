import { Command } from 'commander'
import type { ExportOptions } from './export_run.js'
import { runLongWork } from './long_work.js'
import { withDatabaseForLong } from './with_database.js'

/** annals export */
export function exportCommand(): Command {
  return new Command('export')
    .description('Export a project, a user or a session as JSON lines (NDJSON).')
    .option('--project <name or id>', 'the project; not needed if there is only one')
    .option('--user <identifier>', "only this user's learning spaces and sessions")
    .option('--session <id>', 'only this session')
    .option('--output <file>', 'the file, or - for stdout. The file appears once it is complete', '-')
    .addHelpText(
      'after',
      `
Each session is exported as of one moment, even while the service runs. The last line is a checksum: \`annals import\`
refuses a file that was truncated or changed. API keys are not exported.

Examples:
  annals export --output default.ndjson
  annals export --user alice | gzip > alice.ndjson.gz`,
    )
    .action(async (options: ExportOptions, command: Command) => {
      if (options.user !== undefined && options.session !== undefined) {
        command.error("annals: give --user or --session, not both: a session's user is exported with it.")
      }
      const { runExport } = await import('./export_run.js')
      await runLongWork(
        (signal) => withDatabaseForLong((database) => runExport(database, options, signal), signal),
        {
          interrupted: 'No export was written.',
          unfinished: 'No export was written; run the command again.',
        },
      )
    })
}
