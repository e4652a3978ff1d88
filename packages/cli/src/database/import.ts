import { Command, Option } from 'commander'
import type { ImportOptions } from './import_run.js'
import { runLongDatabaseWork } from './with_database.js'

/** annals import */
export function importCommand(): Command {
  return new Command('import')
    .description('Import an export, or a file of recorded runs, into a project.')
    .argument('<file>', 'the file, or - for stdin')
    .option('--project <name or id>', 'the project to import into; not needed if there is only one')
    .addOption(
      new Option('--format <format>', "the file's format")
        .choices(['annals', 'openai-runs'])
        .default('annals', 'annals, an export'),
    )
    .option('--dry-run', 'store nothing; show what would be stored')
    .addHelpText(
      'after',
      `
A file is checked completely before anything is stored. Stdin is stored while it is read, and a wrong checksum is
reported at the end. Existing data is not stored again, so after an interruption run the same command again.
A session that exists with a different log is left unchanged and reported, and the exit code is 1.

With --format openai-runs, each line is one run, { "user", "configs", "messages" }, with messages in OpenAI's chat
format. Each run becomes one session.

Examples:
  annals import default.ndjson
  gunzip -c alice.ndjson.gz | annals import - --project restored
  annals import --format openai-runs runs.jsonl`,
    )
    .action(async (file: string, options: ImportOptions) => {
      const { runImport } = await import('./import_run.js')
      await runLongDatabaseWork(
        (database, signal, appender, usage) =>
          runImport({ database, appender, usage }, file, options, signal),
        'Run the same command again to import the rest.',
      )
    })
}
