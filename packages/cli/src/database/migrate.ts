import { readConfig } from 'annals/dist/configuration/config.js'
import { Command } from 'commander'
import { runLongWork, tellProgress, tellTime } from './with_database.js'

const AGAIN = 'Applied migrations are kept; run the same command again for the rest.'

/** annals migrate */
export function migrateCommand(): Command {
  return new Command('migrate')
    .description(
      'Migrate the database schema to this version of Annals. `annals serve` does this when it starts.',
    )
    .addHelpText('after', '\nExample:\n  DATABASE_URL=postgresql://annals:…@db/annals annals migrate')
    .action(async () => {
      const { locateDatabase } = await import('annals/dist/postgres/connection_target.js')
      const { schemaVersion } = await import('annals/dist/postgres/migrations.js')
      const { migrateDatabase } = await import('annals/dist/service/migrate_database.js')
      const location = await locateDatabase(readConfig(process.env), tellProgress)
      const work = async (signal: AbortSignal) => {
        await tellTime('Migrating', () => migrateDatabase(location.target, tellProgress, signal))
        process.stdout.write(`The schema has version ${schemaVersion()}.\n`)
      }
      try {
        await runLongWork(work, AGAIN)
      } finally {
        await location.release()
      }
    })
}
