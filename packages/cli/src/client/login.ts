import { AnnalsError } from 'annals/dist/errors.js'
import { Command } from 'commander'
import { UsageError } from '../run_command.js'
import { askSecret } from '../terminal/ask.js'
import { tell } from '../terminal/output.js'
import { URL_DEFAULT } from './connection.js'
import { addressHere } from './embedded_profile.js'
import { openClient } from './open_client.js'
import { DEFAULT_PROFILE, profilesPath, removeProfile, saveProfile } from './profiles.js'

interface Options {
  profile: string
  url?: string
}

/** annals login */
export function loginCommand(): Command {
  return new Command('login')
    .description("Store a service's URL and API key, so that commands need no --url or --token.")
    .option('--profile <name>', 'name of the login', DEFAULT_PROFILE)
    .option('--url <url>', `URL of the service (default: ANNALS_URL, else ${URL_DEFAULT})`)
    .addHelpText(
      'after',
      `
The command prompts for the API key without showing it, or reads it from stdin, checks it, and stores it in a file
that only you can read. With the embedded database in this directory you need not log in: a key is created for you.

Examples:
  annals login
  annals login --profile work --url https://annals.example.com < key.txt`,
    )
    .action(async (options: Options) => {
      const url = options.url || process.env.ANNALS_URL || addressHere(process.env)
      const token = await askSecret(`API key for ${url}: `)
      if (token === '') throw new UsageError('No API key was given.')
      await openClient(url, token, 'It was not stored.', 1).annals.ping()
      saveProfile(options.profile, { url, token })
      tell(`Stored the profile "${options.profile}" for ${url} in ${profilesPath()}.`)
    })
}

/** annals logout */
export function logoutCommand(): Command {
  return new Command('logout')
    .description('Remove a stored login. The API key itself stays valid; revoke it if it leaked.')
    .option('--profile <name>', 'name of the login', DEFAULT_PROFILE)
    .addHelpText('after', '\nExample:\n  annals logout --profile work')
    .action(({ profile }: { profile: string }) => {
      if (!removeProfile(profile))
        throw new AnnalsError('token_not_found', `There is no profile ${JSON.stringify(profile)}.`)
      tell(`Removed the profile "${profile}".`)
    })
}
