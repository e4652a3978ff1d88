import { createHash, randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { AnnalsError, StartError } from '@annals/kits/errors.js'
import { Command } from 'commander'
import { UsageError } from '../run_command.js'
import { askSecret } from '../terminal/ask.js'
import { tell } from '../terminal/output.js'
import { visibleLine } from '../terminal/visible.js'
import { URL_DEFAULT } from './connection.js'
import { addressHere } from './embedded_profile.js'
import { openLoopback } from './loopback.js'
import { openClient } from './open_client.js'
import { openerOf, showInBrowser } from './open_console.js'
import { DEFAULT_PROFILE, profilesPath, removeProfile, saveProfile } from './profiles.js'

interface Options {
  profile: string
  url?: string
  browser?: boolean
  key?: boolean
}

/** How long a service remembers that a person is signing in. */
const SIGN_IN_MS_MAX = 10 * 60_000
const NOBODY = 'Nobody signed in within 10 minutes. Run `annals login` again.'
/** How long a service may take to say whether people sign in there. */
const ANSWER_MS_MAX = 5_000

/** annals login */
export function loginCommand(): Command {
  return new Command('login')
    .description('Sign in to a service and store its URL and key, so commands need no --url or --token.')
    .option('--profile <name>', 'name of the login', DEFAULT_PROFILE)
    .option('--url <url>', `URL of the service (default: ANNALS_URL, else ${URL_DEFAULT})`)
    .option('--browser', 'sign in at the issuer of the service in a browser')
    .option('--no-browser', 'sign in with a browser on another machine, and paste the code that it shows')
    .option('--key', 'store an API key, even if the service has an issuer')
    .addHelpText(
      'after',
      `
If the service has an issuer (OpenID Connect), the command opens it in a browser: sign in and choose a project, and the
command receives a personal token, valid for at most 90 days. Over SSH or without a display, it prints the address: open
it on any machine, and paste the code that the page shows.

Otherwise it prompts for the API key without showing it, or reads it from stdin, checks it, and stores it in a file
that only you can read. With the embedded database in this directory you need not log in: a key is created for you.

Examples:
  annals login
  annals login --url https://annals.example.com
  annals login --no-browser --url https://annals.example.com
  annals login --profile work --url https://annals.example.com < key.txt`,
    )
    .action(async (options: Options) => {
      const url = options.url || process.env.ANNALS_URL || addressHere(process.env)
      const isByBrowser =
        options.browser !== undefined ||
        (!options.key && process.stdin.isTTY === true && (await hasIssuer(url)))
      const token = isByBrowser
        ? await signInByBrowser(url, options.browser !== false && canShow(process.env))
        : await askSecret(`API key for ${url}: `)
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

/** Whether a browser on this machine belongs to the person at the terminal. */
function canShow(env: NodeJS.ProcessEnv): boolean {
  return !env.SSH_CONNECTION && openerOf(process.platform, env) !== undefined
}

/** Lets a person sign in at the issuer, in a browser here or elsewhere. Returns a personal token. */
async function signInByBrowser(url: string, isHere: boolean): Promise<string> {
  const verifier = randomBytes(32).toString('base64url')
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const code = isHere ? await codeFromHere(url, challenge) : await pastedCode(url, challenge)
  if (!/^[\w-]{43}$/.test(code))
    throw new UsageError(
      'This is not a code from that page. Run `annals login` again, and paste the whole code.',
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

const linkTo = (url: string, login: string) => addressOf(url, `/console/oidc/start?login=${login}`)

/** From whoever opens the address on any machine. */
function pastedCode(url: string, challenge: string): Promise<string> {
  tell(`Sign in at ${linkTo(url, challenge)}`)
  return askSecret('Code: ')
}

/** From a browser on this machine, unless somebody is faster to paste it. */
async function codeFromHere(url: string, challenge: string): Promise<string> {
  const loopback = await openLoopback()
  const done = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StartError(NOBODY)), SIGN_IN_MS_MAX)
  })
  try {
    const link = linkTo(url, `${challenge}.${loopback.port}.${loopback.state}`)
    tell(`Sign in at ${link}`)
    const pasted = askSecret('Waiting for the browser, or for the code that its page shows: ', done.signal)
    await showInBrowser(link)
    return await Promise.race([loopback.code, pasted.then((code) => code || loopback.code), late])
  } finally {
    clearTimeout(timer)
    done.abort()
    loopback.close()
  }
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
