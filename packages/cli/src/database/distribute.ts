import type { ConnectionTarget } from '@annals/kits/postgres/database.js'
import { Command } from 'commander'
import { runSchemaWork, tellProgress } from './with_database.js'

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
      const { distribute } = await import('@annals/kits/postgres/citus/distribute.js')
      const { FUNCTIONS } = await import('annals/dist/service/modules.js')
      const work = async (target: ConnectionTarget, signal: AbortSignal) => {
        const tables = await distribute(target, FUNCTIONS, tellProgress, signal)
        return tables.length === 0
          ? 'Everything is already distributed.'
          : `Distributed ${tables.length} tables: ${tables.join(', ')}.`
      }
      await runSchemaWork('Distributing', work, AGAIN)
    })
}
