import { Command } from 'commander'
import { readConfig } from '../config.js'
import { tellProgress } from './with_database.js'

/** annals migrate */
export function migrateCommand(): Command {
  return new Command('migrate')
    .description('Bring the database schema to the version of this Annals. `annals serve` does so by itself.')
    .addHelpText('after', '\nExample:\n  DATABASE_URL=postgresql://annals:…@db/annals annals migrate')
    .action(async () => {
      const { locateDatabase } = await import('../database/connection_target.js')
      const { migrate, schemaVersion } = await import('../database/migrator.js')
      const location = await locateDatabase(readConfig(process.env), tellProgress)
      try {
        await migrate(location.target, tellProgress)
      } finally {
        await location.release()
      }
      process.stdout.write(`The schema has version ${schemaVersion()}.\n`)
    })
}
