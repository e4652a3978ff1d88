import { createHash, randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { AnnalsError } from '@annals/kits/errors.js'
import { Command } from 'commander'
import { UsageError } from '../run_command.js'
import { askSecret } from '../terminal/ask.js'
import { tell } from '../terminal/output.js'
import { visibleLine } from '../terminal/visible.js'
import { URL_DEFAULT } from './connection.js'
import { addressHere } from './embedded_profile.js'
import { openClient } from './open_client.js'
import { showInBrowser } from './open_console.js'
import { DEFAULT_PROFILE, profilesPath, removeProfile, saveProfile } from './profiles.js'

interface Options {
  profile: string
  url?: string
  browser?: boolean
  key?: boolean
}

/** How long a service may take to say whether people sign in there. */
const ANSWER_MS_MAX = 5_000

/** annals login */
export function loginCommand(): Command {
  return new Command('login')
    .description('Sign in to a service and store its URL and key, so that commands need no --url or --token.')
    .option('--profile <name>', 'name of the login', DEFAULT_PROFILE)
    .option('--url <url>', `URL of the service (default: ANNALS_URL, else ${URL_DEFAULT})`)
    .option('--browser', 'sign in at the issuer of the service in a browser, here or on any other machine')
    .option('--key', 'store an API key, also where people sign in at an issuer')
    .addHelpText(
      'after',
      `
Where people sign in at an issuer, the command opens a browser at it, or prints the address to open on another machine.
Paste the code that the page shows: the command then has a personal token, which is valid for 90 days at most.

Otherwise it prompts for the API key without showing it, or reads it from stdin, checks it, and stores it in a file
that only you can read. With the embedded database in this directory you need not log in: a key is created for you.

Examples:
  annals login
  annals login --url https://annals.example.com
  annals login --profile work --url https://annals.example.com < key.txt`,
    )
    .action(async (options: Options) => {
      const url = options.url || process.env.ANNALS_URL || addressHere(process.env)
      const isByBrowser =
        options.browser ?? (!options.key && process.stdin.isTTY === true && (await hasIssuer(url)))
      const token = isByBrowser ? await signInByBrowser(url) : await askSecret(`API key for ${url}: `)
      if (token === '')
        throw new UsageError('No API key was given. Type one, or pass it on stdin: annals login < key.txt')
      await openClient(url, token, 'It was not stored.', 1).annals.ping()
      saveProfile(options.profile, { url, token })
      tell(`Stored the profile "${options.profile}" for ${url} in ${profilesPath()}.`)
    })
}

const addressOf = (url: string, path: string) => `${url.replace(/(?<!\/)\/+$/, '')}${path}`

/** Whether people sign in to a service at an issuer. A service that does not say so has keys alone. */
async function hasIssuer(url: string): Promise<boolean> {
  try {
    const headers = { 'x-annals-console': 'none' }
    const signal = AbortSignal.timeout(ANSWER_MS_MAX)
    const response = await fetch(addressOf(url, '/console/access'), { headers, signal })
    const { data } = (await response.json()) as { data?: { has_issuer?: unknown } }
    return data?.has_issuer === true
  } catch {
    return false
  }
}

/** Has somebody sign in at the issuer and paste the code that the page shows. Returns a personal token. */
async function signInByBrowser(url: string): Promise<string> {
  const verifier = randomBytes(32).toString('base64url')
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const link = addressOf(url, `/console/oidc/start?login=${challenge}`)
  tell(`Sign in at ${link}`)
  if (process.stdin.isTTY) await showInBrowser(link)
  const code = await askSecret('Code: ')
  if (!/^[\w-]{43}$/.test(code))
    throw new UsageError(
      'This is not a code of that page. Run `annals login` again, and paste the whole code.',
    )
  const name = `annals login on ${hostname()}`.slice(0, 100)
  const response = await fetch(addressOf(url, '/console/oidc/login'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    redirect: 'error',
    body: JSON.stringify({ code, verifier, name }),
  })
  const answer = (await response.json().catch(() => ({}))) as Partial<Answer>
  if (answer.data?.token) {
    tell(`Signed in to the project "${visibleLine(answer.data.project)}" until ${answer.data.expires_at}.`)
    return answer.data.token
  }
  const message = answer.msg ?? `${url} answered ${response.status}: is it a service at which people sign in?`
  throw new AnnalsError('unauthorized', visibleLine(message))
}

interface Answer {
  msg: string
  data: { token: string; project: string; expires_at: string }
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
