import { Command } from 'commander'
import { AnnalsError } from '../../errors.js'
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
    .description('Store a service and its API key, so that commands need no --url and no --token.')
    .option('--profile <name>', 'what to call it', DEFAULT_PROFILE)
    .option('--url <url>', `the service; else ANNALS_URL, else ${URL_DEFAULT}`)
    .addHelpText(
      'after',
      `
The API key is asked for and not shown, or read from stdin. It is tried, and kept in a file that only you can read.
With the embedded database in this directory you need not log in: a key is made and kept by itself.

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
    .description(
      'Forget what `annals login` stored. The API key itself stays valid: revoke it if it got lost.',
    )
    .option('--profile <name>', 'which', DEFAULT_PROFILE)
    .addHelpText('after', '\nExample:\n  annals logout --profile work')
    .action(({ profile }: { profile: string }) => {
      if (!removeProfile(profile))
        throw new AnnalsError('token_not_found', `There is no profile ${JSON.stringify(profile)}.`)
      tell(`Forgot the profile "${profile}".`)
    })
}
