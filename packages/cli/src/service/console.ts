import { findProject } from 'annals/dist/projects/projects.js'
import { Command } from 'commander'
import { parseUrl } from '../client/arguments.js'
import { withDatabase } from '../database/with_database.js'

interface Options {
  project?: string
  url?: string
}

/** annals console */
export function consoleCommand(): Command {
  return new Command('console')
    .description(
      'Print a link that signs you in to the console of a running service, once, within 15 minutes.',
    )
    .option('--project <name or id>', 'the project; not needed if there is only one')
    .option('--url <url>', "the service's address, if it is not on this machine", parseUrl)
    .addHelpText('after', '\nExample:\n  annals console')
    .action(async (options: Options) => {
      const { createSignInCode } = await import('annals/dist/console_api/sign_in.js')
      const { addressHere } = await import('../client/embedded_profile.js')
      const code = await withDatabase(async (database) => {
        return createSignInCode(database, await findProject(database, options.project))
      })
      // recheck: it is what the operator typed.
      const address = (options.url ?? addressHere(process.env)).replace(/\/+$/, '')
      process.stdout.write(`${address}/console#code=${code}\n`)
    })
}
