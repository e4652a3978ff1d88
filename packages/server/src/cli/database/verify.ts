import { Command } from 'commander'
import { runLongWork } from './long_work.js'
import type { VerifyOptions } from './verify_run.js'
import { withDatabaseToRead } from './with_database.js'

/** annals verify */
export function verifyCommand(): Command {
  return new Command('verify')
    .description('Check that a database holds what Annals promises: every log, head, key and count.')
    .option('--project <name or id>', 'only this project')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
It only reads, in small pieces, and blocks no writes, so the service can keep running. It exits with 1 if it finds
something wrong; each finding says what is wrong, where, and what to do.

Examples:
  annals verify
  annals verify --project default --json | jq .findings`,
    )
    .action(async (options: VerifyOptions) => {
      const { runVerify } = await import('./verify_run.js')
      await runLongWork((signal) => withDatabaseToRead((database) => runVerify(database, options), signal), {
        interrupted: 'Part of the database was not checked.',
        unfinished: 'Part of the database was not checked; run the command again.',
      })
    })
}
