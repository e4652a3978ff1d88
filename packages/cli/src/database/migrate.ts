import { Command } from 'commander'
import { runSchemaWork } from './with_database.js'

const AGAIN = 'Applied migrations are kept; run the same command again for the rest.'

/** annals migrate */
export function migrateCommand(): Command {
  return new Command('migrate')
    .description(
      'Migrate the database schema to this version of Annals. `annals serve` does this when it starts.',
    )
    .addHelpText('after', '\nExample:\n  DATABASE_URL=postgresql://annals:…@db/annals annals migrate')
    .action(async () => {
      const { schemaVersion } = await import('@annals/kits/postgres/migrations.js')
      const outcome = async () => `The schema has version ${schemaVersion()}.`
      await runSchemaWork('Migrating', outcome, AGAIN)
    })
}
