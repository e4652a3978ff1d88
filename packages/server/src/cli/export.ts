import { Command } from 'commander'
import type { Database } from '../database/database.js'
import { schemaVersion } from '../database/migrator.js'
import { FIND_PROJECT } from '../database/queries/projects.js'
import { AnnalsError } from '../errors.js'
import { type ExportOutput, fileOutput, OutputClosed, streamOutput } from '../transfer/export_output.js'
import {
  type ExportCounts,
  type ExportScope,
  measureExport,
  writeExport,
} from '../transfer/export_project.js'
import { EXIT_PIPE_CLOSED, runLongWork } from './long_work.js'
import { showProgress } from './progress.js'
import { withDatabaseForLong } from './with_database.js'

interface Options {
  project: string
  user?: string
  session?: string
  output: string
}

/** annals export */
export function exportCommand(): Command {
  return new Command('export')
    .description('Write a project, or what belongs to one user or session, as JSON lines (NDJSON).')
    .requiredOption('--project <name or id>', 'the project')
    .option('--user <identifier>', 'only this user, with learning spaces and sessions')
    .option('--session <id>', 'only this session')
    .option('--output <file>', 'where to; - is stdout. The file appears when it is whole', '-')
    .addHelpText(
      'after',
      `
Each session is exported as it is at one moment, also while the service runs. The last line holds a checksum:
\`annals import\` refuses a file that was cut off or changed. Tokens are not exported.

Examples:
  annals export --project default --output default.ndjson
  annals export --project default --user alice | gzip > alice.ndjson.gz`,
    )
    .action(async (options: Options, command: Command) => {
      if (options.user !== undefined && options.session !== undefined) {
        command.error("annals: give --user or --session, not both: a session's user is exported with it.")
      }
      await runLongWork((signal) => withDatabaseForLong((database) => run(database, options, signal)), {
        interrupted: 'No export was written.',
        unfinished: 'No export was written; run the command again.',
      })
    })
}

async function run(database: Database, options: Options, signal: AbortSignal): Promise<void> {
  const project = await findProject(database, options.project)
  const scope: ExportScope = { project, user: options.user, session_id: options.session }
  const entries = await measureExport(database, scope)
  const output = options.output === '-' ? streamOutput(process.stdout) : await fileOutput(options.output)
  const progress = showProgress('Exporting', 'entries', entries)
  try {
    const counts = await writeExport(database, scope, output, {
      schema_version: schemaVersion(),
      exported_at: new Date().toISOString(),
      signal,
      onProgress: (counts) => progress.update(counts.entries, counts.bytes),
    })
    await output.finish()
    progress.stop()
    process.stderr.write(summaryOf(counts))
  } catch (error) {
    progress.stop()
    await abandon(output)
    // As other programs do when `head` has seen enough: no word, and a code that is not success.
    if (error instanceof OutputClosed) process.exitCode = EXIT_PIPE_CLOSED
    else throw error
  }
}

async function abandon(output: ExportOutput): Promise<void> {
  // What went wrong before is what is told.
  await output.abandon().catch(() => {})
}

async function findProject(database: Database, name_or_id: string): Promise<{ id: string; name: string }> {
  const [row] = await database.query(FIND_PROJECT, [name_or_id])
  if (!row) throw new AnnalsError('project_not_found', `There is no project ${JSON.stringify(name_or_id)}.`)
  return { id: row.id!, name: row.name! }
}

function summaryOf({ users, learning_spaces, sessions, entries, bytes }: ExportCounts): string {
  return `Exported ${users} users, ${learning_spaces} learning spaces, ${sessions} sessions and ${entries} entries (${bytes} bytes).\n`
}
