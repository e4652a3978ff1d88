import { open } from 'node:fs/promises'
import { FORMAT_NAMES } from '@annals/importers/names'
import { Command, Option } from 'commander'
import { withConnection } from '../client/connection.js'
import type { ImportFilesOptions } from '../client/import_files.js'
import { UsageError } from '../run_command.js'
import { commandLine } from '../terminal/command_name.js'
import { momentOf } from '../terminal/times.js'
import type { ImportOptions } from './import_run.js'
import { runLongDatabaseWork, runLongWork } from './with_database.js'

/** The format that is stored directly in the database. */
const OWN_FORMAT = 'annals'
const HEAD_BYTES = 4_096
const EXPORT_HEADER = /^\s*\{\s*"annals_export"\s*:/
const AGAIN = 'Run the same command again to import the rest.'

type Options = Omit<ImportFilesOptions, 'format'> & { format?: string; project?: string }

/** annals import */
export function importCommand(): Command {
  const command = new Command('import')
    .description('Import transcripts, exports and traces of other tools, or an export of Annals.')
    .argument('<path...>', 'files and folders, or - for stdin')
    .addOption(
      new Option('--format <format>', 'the format (default: detected)').choices([
        ...FORMAT_NAMES,
        OWN_FORMAT,
      ]),
    )
    .option('--dry-run', 'store nothing; show what was found')
    .option('--since <time>', 'only files and sessions that changed since: a duration such as 7d, or a time')
    .option('--watch', 'also import later changes of the file or the folder, until Ctrl-C')
    .option('--strict', 'stop at the first refused line')
    .option('--user <identifier>', 'the user of sessions for which the source names no user')
    .option('--json', 'print the report as JSON')
    .option(
      '--project <name or id>',
      'for an export of Annals: the project to import into; not needed if there is only one',
    )
  return withConnection(command)
    .addHelpText(
      'after',
      `
Importing again adds only what is new. Lines that no rule knows are stored as events. A line that is not JSON is
refused and reported, and the import continues. The exit code is 1 if a line was refused, or has changed since it was imported.
docs/import.md says how each format is stored.

An export of Annals is imported directly into the database. It is checked completely before anything is stored; stdin is
stored while it is read, and a wrong checksum is reported at the end. A session that exists with a different log is left
unchanged and reported, and the exit code is 1.

Examples:
  annals import ~/.claude/projects
  annals import ~/.codex/sessions --since 7d --watch
  annals import conversations.zip --dry-run
  annals import run-*.json
  gunzip -c alice.ndjson.gz | annals import - --project restored`,
    )
    .action(importPaths)
}

async function importPaths(paths: string[], options: Options): Promise<void> {
  const [path, ...more] = paths as [string, ...string[]]
  if (more.length > 0 && paths.includes('-'))
    throw new UsageError('stdin (-) cannot be combined with other paths.')
  const input = path === '-' ? process.stdin[Symbol.asyncIterator]() : undefined
  const first = input && (await input.next())
  const stdin = input && restOf(first!, input)
  const head: Buffer = first ? (first.value ?? Buffer.alloc(0)) : await headOf(path)
  // Only an export of Annals goes into a project that is named: other formats go where the API key leads.
  const is_export = options.project !== undefined || EXPORT_HEADER.test(head.toString('latin1'))
  const format = options.format ?? (is_export ? OWN_FORMAT : undefined)
  if (format === OWN_FORMAT) {
    if (more.length > 0)
      throw new UsageError('An export of Annals cannot be combined with other paths: import it separately.')
    return importIntoDatabase(path, options, stdin)
  }
  if (options.project !== undefined)
    throw new UsageError(
      '--project is only for exports of Annals. For other formats, the API key determines the project.',
    )
  if (options.watch && (options.dryRun || path === '-'))
    throw new UsageError('--watch needs a file or a folder: it cannot be used with stdin or with --dry-run.')
  const { importFiles } = await import('../client/import_files.js')
  const { project: _, since, format: __, ...others } = options
  const files = { ...others, ...(format && { format }), ...(since && { since: timeSince(since) }) }
  await runLongWork((signal) => importFiles(paths, files, stdin, signal), `${AGAIN}`)
}

function importIntoDatabase(
  path: string,
  options: ImportOptions,
  stdin: AsyncIterable<Buffer> | undefined,
): Promise<void> {
  return import('./import_run.js').then(({ runImport }) =>
    runLongDatabaseWork(
      (database, signal, usage) => runImport({ database, usage }, path, options, signal, stdin),
      AGAIN,
      true,
    ),
  )
}

async function* restOf(first: IteratorResult<Buffer>, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  for (let next = first; !next.done; next = await rest.next()) yield next.value
}

/** The beginning of a file; nothing of a folder, or of what cannot be read, which is told later. */
async function headOf(path: string): Promise<Buffer> {
  const file = await open(path).catch(() => undefined)
  if (!file) return Buffer.alloc(0)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
    return buffer.subarray(0, bytesRead)
  } catch {
    return Buffer.alloc(0)
  } finally {
    await file.close()
  }
}

function timeSince(text: string): string {
  const moment = momentOf(text)
  if (moment === undefined)
    throw new UsageError(
      `--since takes a duration such as 7d, or a time: ${commandLine(['import', '--since', '7d', 'folder'])}.`,
    )
  return new Date(moment).toISOString()
}
