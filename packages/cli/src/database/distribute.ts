import { readConfig } from 'annals/dist/configuration/config.js'
import { Command } from 'commander'
import { runLongWork, tellProgress, tellTime } from './with_database.js'

const AGAIN = 'Nothing was distributed; run the same command again.'

/** annals distribute */
export function distributeCommand(): Command {
  return new Command('distribute')
    .description('Distribute an existing database over the machines of its Citus cluster.')
    .addHelpText(
      'after',
      `
Use this for a database that was on a single PostgreSQL. First install Citus on all machines, run CREATE EXTENSION
citus, add the workers with citus_add_node, and stop the service: tables stay locked until the end. A new database
does not need this command: if the extension is installed, \`annals migrate\` distributes the tables it creates.

Example:
  DATABASE_URL=postgresql://annals:…@coordinator/annals annals distribute`,
    )
    .action(async () => {
      const { locateDatabase } = await import('annals/dist/postgres/connection_target.js')
      const { distribute } = await import('annals/dist/postgres/distribute.js')
      const { migrateDatabase } = await import('annals/dist/service/migrate_database.js')
      const location = await locateDatabase(readConfig(process.env), tellProgress)
      const work = async (signal: AbortSignal) => {
        const { target } = location
        const tables = await tellTime('Distributing', async () => {
          await migrateDatabase(target, tellProgress, signal)
          return distribute(target, tellProgress, signal)
        })
        process.stdout.write(
          tables.length === 0
            ? 'Everything is already distributed.\n'
            : `Distributed ${tables.length} tables: ${tables.join(', ')}.\n`,
        )
      }
      try {
        await runLongWork(work, AGAIN)
      } finally {
        await location.release()
      }
    })
}
