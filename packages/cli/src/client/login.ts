import { createHash, randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
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
/** After being told to slow down. */
const SLOWER_S = 5
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
    .option(
      '--no-browser',
      'print an address, and wait until somebody approves it in a browser on any machine',
    )
    .option('--key', 'store an API key, even if the service has an issuer')
    .addHelpText(
      'after',
      `
If the service has an issuer (OpenID Connect), the command opens it in a browser: sign in and choose a project, and the
command receives a personal token, valid for at most 90 days. Over SSH or without a display, it prints an address and a
code: open the address on any machine, compare the code, and approve.

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
  const name = `annals login on ${hostname()}`.slice(0, 100)
  const { token, project, expires_at } = await (isHere ? signInHere(url, name) : signInElsewhere(url, name))
  tell(`Signed in to the project "${visibleLine(project)}" until ${expires_at}.`)
  return token
}

const linkTo = (url: string, login: string) => addressOf(url, `/console/oidc/start?login=${login}`)

/** In a browser on this machine, which brings a code to a port here. */
async function signInHere(url: string, name: string): Promise<SignedIn> {
  const verifier = randomBytes(32).toString('base64url')
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const loopback = await openLoopback()
  const done = new AbortController()
  const late = sleep(SIGN_IN_MS_MAX, undefined, { signal: done.signal }).then(() => {
    throw new StartError(NOBODY)
  })
  late.catch(() => {})
  try {
    const link = linkTo(url, `${challenge}.${loopback.port}.${loopback.state}`)
    tell(`Sign in at ${link}\nWaiting for the browser. If it is on another machine, use --no-browser.`)
    await showInBrowser(link)
    const code = await Promise.race([loopback.code, late])
    return await post<SignedIn>(url, '/console/oidc/login', { code, verifier, name })
  } finally {
    done.abort()
    loopback.close()
  }
}

/** In a browser on any machine, in which somebody approves the code that is shown here (RFC 8628). */
async function signInElsewhere(url: string, name: string): Promise<SignedIn> {
  const begun = await post<Begun>(url, '/console/oidc/device', { name })
  const code = visibleLine(begun.user_code)
  tell(`Open ${linkTo(url, code)}\nin a browser on any machine, and approve the code ${code} there.`)
  const end = Date.now() + begun.expires_in_s * 1_000
  for (let wait_s = begun.interval_s; Date.now() < end; ) {
    await sleep(wait_s * 1_000)
    const polled = await post<SignedIn | { status: string }>(url, '/console/oidc/device/token', {
      device_code: begun.device_code,
    })
    if ('token' in polled) return polled
    if (polled.status === 'slow_down') wait_s += SLOWER_S
  }
  throw new StartError(NOBODY)
}

/** @throws AnnalsError if the answer is none of success */
async function post<Data>(url: string, path: string, body: object): Promise<Data> {
  const response = await fetch(addressOf(url, path), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    redirect: 'error',
    body: JSON.stringify(body),
  })
  const answer = (await response.json().catch(() => ({}))) as { msg?: string; data?: Data }
  if (response.ok && answer.data) return answer.data
  const other =
    response.status === 404
      ? `${url} has no such sign-in: it has no issuer, or is older than this command. Use --key, or update the service.`
      : `${url} answered ${response.status}: is it a service at which people sign in?`
  throw new AnnalsError('unauthorized', visibleLine(response.status === 404 ? other : (answer.msg ?? other)))
}

interface SignedIn {
  token: string
  project: string
  expires_at: string
}

interface Begun {
  device_code: string
  user_code: string
  interval_s: number
  expires_in_s: number
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
