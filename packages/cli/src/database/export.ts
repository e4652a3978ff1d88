import type { ExportCounts, ExportScope } from '@annals/archive'
import type { DatabasePool } from '@annals/kits/postgres/database.js'
import { Command, Option } from 'commander'
import { parseSession } from '../client/arguments.js'
import { withConnection } from '../client/connection.js'
import type { ExportSessionsOptions } from '../client/export_sessions.js'
import { EXIT_CODES } from '../exit_codes.js'
import { countsOf } from '../terminal/count.js'
import { runLongReading, runLongWork } from './with_database.js'

/** annals export */
export function exportCommand(): Command {
  const command = new Command('export')
    .description(
      'Export a project, a user or a session as JSON lines (NDJSON), or in the format of other tools.',
    )
    .argument('[session]', 'the same as --session', parseSession)
    .addOption(
      new Option('--format <format>', 'the format of the file')
        .choices(['annals', 'atif', 'openai', 'anthropic', 'jsonl'])
        .default('annals', 'annals, which annals import restores to the byte'),
    )
    .option('--project <name or id>', 'the project; not needed if there is only one')
    .option('--user <identifier>', "only this user's learning spaces and sessions")
    .option('--session <session>', "only this session: its id, or the id's beginning", parseSession)
    .option('--output <file>', 'the file, or - for stdout. The file appears once it is complete', '-')
  return withConnection(command)
    .addHelpText(
      'after',
      `
Everything is exported as of one moment, even while the service runs. It only reads, so a standby works, too. The last
line is a checksum: \`annals import\` refuses a file that was truncated or changed. API keys are not exported.

The other formats are read through a service, with an API key: atif (trajectories), openai and anthropic (a line
{ "messages" } for each session, as files for fine-tuning have it), jsonl (the entries as the API shows them).
Entries that a format has no form for are counted on stderr.

Examples:
  annals export --output default.ndjson
  annals export --user alice | gzip > alice.ndjson.gz
  annals export 01931b0e --format atif --output run.json`,
    )
    .action(async (session: string | undefined, given: ExportOptions, command: Command) => {
      if (session !== undefined && given.session !== undefined)
        command.error('annals: the session is named twice.')
      const options = session === undefined ? given : { ...given, session }
      if (options.user !== undefined && options.session !== undefined) {
        command.error("annals: give --user or --session, not both: a session's user is exported with it.")
      }
      if (options.format !== 'annals') {
        if (options.project !== undefined)
          command.error(
            'annals: --project is for the format annals; for others, the API key names the project.',
          )
        const { exportSessions } = await import('../client/export_sessions.js')
        const { format, project: _, ...others } = options
        await runLongWork((signal) => exportSessions({ ...others, format }, signal), 'No export was written.')
        return
      }
      await runLongReading((database, signal) => runExport(database, options, signal), {
        interrupted: 'No export was written.',
        unfinished: 'No export was written; run the command again.',
      })
    })
}

/** Prints the result of an export. */
type ExportOptions = Omit<ExportSessionsOptions, 'format'> & {
  project?: string
  format: 'annals' | ExportSessionsOptions['format']
}

/** Runs `annals export`. */
async function runExport(database: DatabasePool, options: ExportOptions, signal: AbortSignal): Promise<void> {
  const { registryOf } = await import('@annals/kits/lifecycle/registry.js')
  const {
    completeSessionId,
    fileOutput,
    lostSnapshot,
    measureExport,
    onSnapshot,
    OutputClosed,
    streamOutput,
    writeExport,
  } = await import('@annals/archive')
  const { SnapshotLost } = await import('@annals/kits/postgres/database.js')
  const { schemaVersion } = await import('@annals/kits/postgres/migrations.js')
  const { findNamedProject } = await import('annals/dist/projects/projects.js')
  const { MODULES } = await import('annals/dist/service/modules.js')
  const { showProgress } = await import('../terminal/progress.js')
  const { tellLost } = await import('./backup_run.js')
  const project = await findNamedProject(database, options.project)
  const session_id = options.session && (await completeSessionId(database, project.id, options.session))
  const scope: ExportScope = { project, user: options.user, session_id }
  const tables = registryOf(MODULES).tables.filter(({ exported }) => exported !== 'in_backups')
  const entries = await measureExport(database, scope, tables)
  const output = options.output === '-' ? streamOutput(process.stdout) : await fileOutput(options.output)
  const progress = showProgress('Exporting', 'entries', entries)
  try {
    const counts = await onSnapshot(database, project.id, tables, (snapshot) =>
      writeExport(snapshot, scope, output, {
        tables,
        schema_version: schemaVersion(),
        exported_at: new Date().toISOString(),
        signal,
        onProgress: (counts) => progress.update(counts.rows.entries ?? 0, counts.bytes),
      }),
    )
    await output.finish()
    progress.stop()
    process.stderr.write(summaryOf(counts))
    tellLost(counts.rows)
  } catch (error) {
    progress.stop()
    // The first error is the one to report.
    await output.abandon().catch(() => {})
    // As other programs do when `head` has closed the pipe: no message, and an exit code other than 0.
    if (error instanceof OutputClosed) process.exitCode = EXIT_CODES.pipe_closed
    else throw error instanceof SnapshotLost ? lostSnapshot(project.name, error) : error
  }
}

function summaryOf({ rows, bytes }: ExportCounts): string {
  const counted = countsOf(rows)
  return `Exported ${counted.slice(0, -1).join(', ')} and ${counted.at(-1)} (${bytes} bytes).\n`
}
