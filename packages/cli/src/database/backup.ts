import { Command } from 'commander'
import type { BackupCommandOptions } from './backup_run.js'
import { runLongDatabaseWork, runLongReading } from './with_database.js'

const AGAIN = 'Run the same command again: it goes on from there.'

/** annals backup */
export function backupCommand(): Command {
  return new Command('backup')
    .description('Back up all projects, with their keys and the audit, to a file.')
    .argument('<file>', 'the file. It appears once it is complete')
    .option('--project <name or id>', 'only this project, with its keys')
    .addHelpText(
      'after',
      `
The service can keep running. Each project is in the file as of one moment. The command only reads, so it also works on a
standby. An interrupted backup is kept next to the file for a day, and the same command continues it, project by project.

Examples:
  annals backup annals.backup
  annals backup --project checkout-agent checkout.backup`,
    )
    .action(async (file: string, options: BackupCommandOptions) => {
      const { runBackup } = await import('./backup_run.js')
      await runLongReading((database, signal) => runBackup(database, file, options, signal), AGAIN)
    })
}

/** annals restore */
export function restoreCommand(): Command {
  return new Command('restore')
    .description('Restore a backup into a database without its projects, and verify the result.')
    .argument('<file>', 'a file that annals backup wrote')
    .addHelpText(
      'after',
      `
The whole file is checked before anything is stored. Then projects and keys are restored, then their data, and the
result is counted and verified. A project that is damaged in the file is left out and named, and the exit code is 1;
the others are restored. Rows that exist already stay as they are, so an interrupted restore is completed by
running it again. To go back in time, restore into a new database, and point the service at that.

Example:
  ANNALS_DATA_DIR=restored annals restore annals.backup`,
    )
    .action(async (file: string) => {
      const { runRestore } = await import('./backup_run.js')
      await runLongDatabaseWork((database, signal) => runRestore(database, file, signal), AGAIN, true)
    })
}
