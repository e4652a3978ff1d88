import { Command, Option } from 'commander'
import { runLongWork } from './long_work.js'
import { withDatabaseForLong } from './with_database.js'

/** What the command line says of an import. */
export interface ImportOptions {
  project: string
  format: 'annals' | 'openai-runs'
  dryRun?: boolean
}

/** annals import */
export function importCommand(): Command {
  return new Command('import')
    .description('Read an export back into a project of this or another Annals, or read recorded runs.')
    .argument('<file>', 'the file; - is stdin')
    .requiredOption('--project <name or id>', 'the project to import into')
    .addOption(
      new Option('--format <format>', 'what the file is')
        .choices(['annals', 'openai-runs'])
        .default('annals', 'annals, an export'),
    )
    .option('--dry-run', 'store nothing; say what would be stored')
    .addHelpText(
      'after',
      `
A file is checked to its end before anything is stored; stdin is stored while it is read, and a bad checksum is
told at the end. What is there already is not stored again: after an interruption run the same command again.
A session that is there with another log is left as it is and named, and the exit code is 1.

With --format openai-runs each line is a run, { "user", "configs", "messages" }, with messages in OpenAI's chat
format; it becomes a session of its own.

Examples:
  annals import default.ndjson --project default
  gunzip -c alice.ndjson.gz | annals import - --project restored
  annals import --format openai-runs runs.jsonl --project default`,
    )
    .action(async (file: string, options: ImportOptions) => {
      const { ImportJob } = await import('./import_run.js')
      await runLongWork(
        (signal) =>
          withDatabaseForLong((database, appender) => {
            const job = new ImportJob(database, appender, file, options, signal)
            return options.format === 'annals' ? job.importExport() : job.importRuns()
          }),
        {
          interrupted: 'Run the same command again to import the rest.',
          unfinished: 'Run the same command again to import the rest.',
        },
      )
    })
}
