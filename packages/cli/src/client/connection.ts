import type { Annals } from '@annals/client'
import { AnnalsError } from '@annals/kits/errors.js'
import type { Command } from 'commander'
import { UsageError } from '../run_command.js'
import { type Output, type OutputOptions, openOutput, withOutput } from '../terminal/output.js'
import { addressHere, embeddedProfile } from './embedded_profile.js'
import { openClient } from './open_client.js'
import { DEFAULT_PROFILE, type Profile, profilesPath, readProfiles } from './profiles.js'

export const URL_DEFAULT = 'http://127.0.0.1:8029'
/** Most profiles that an error lists. */
const NAMED_MAX = 5

/** The service and key given on the command line, and how to print. */
export interface ConnectionOptions extends OutputOptions {
  url?: string
  token?: string
  profile?: string
}

/** A project of a service, reached over HTTP. */
export interface Connection {
  annals: Annals
  url: string
  /** Whether a service may have received anything: false if every attempt was refused a connection. */
  isReached: () => boolean
  /** Where the key came from: a sentence. */
  origin: string
  output: Output
}

/** A service, its key, and a sentence that tells where the key came from. */
interface Target {
  url: string
  token: string
  origin: string
}

/** Adds the options of a command that prints what a service says. */
export function withService(command: Command): Command {
  return withConnection(withOutput(command))
}

/** Adds the options that name the service. */
export function withConnection(command: Command): Command {
  return command
    .option('--url <url>', `URL of the service (default: ANNALS_URL, else ${URL_DEFAULT})`)
    .option('--token <token>', 'API key; prefer ANNALS_API_KEY, which does not appear in the process list')
    .option('--profile <name>', 'a stored login (default: ANNALS_PROFILE, else default)')
}

/**
 * The service and the key to use. The command line takes precedence over the environment, and that over stored
 * profiles. A stored key is only sent to the URL that it was stored for.
 * @param retries how often a call is retried; a person at a terminal wants an answer sooner than a program
 */
export async function connect(options: ConnectionOptions, retries = 2): Promise<Connection> {
  const { url, token, origin } = await findTarget(options, process.env)
  return { ...openClient(url, token, origin, retries), url, origin, output: openOutput(options) }
}

/** Whether a service is named, so that it need not be the embedded database's. */
export function isConnectionGiven({ url, token, profile }: ConnectionOptions): boolean {
  const { ANNALS_URL, ANNALS_TOKEN, ANNALS_PROFILE } = process.env
  if (url || token || profile || ANNALS_URL || ANNALS_TOKEN || ANNALS_PROFILE) return true
  return readProfiles().has(DEFAULT_PROFILE)
}

/** The URL if none is named: a given key tells who calls, not where. */
function urlMeant(env: NodeJS.ProcessEnv): string {
  // The local service's key is only for that service.
  const stored = env.ANNALS_API_KEY ? undefined : readProfiles().get(DEFAULT_PROFILE)
  return stored?.url ?? addressHere(env)
}

async function findTarget(options: ConnectionOptions, env: NodeJS.ProcessEnv): Promise<Target> {
  const url = options.url || env.ANNALS_URL || undefined
  if (url !== undefined && !/^https?:$/.test(protocolOf(url)))
    throw new UsageError(`${options.url ? '--url' : 'ANNALS_URL'} must be a URL such as ${URL_DEFAULT}.`)
  const is_whole = Boolean(options.token && url)
  const name = options.profile || (is_whole ? undefined : env.ANNALS_PROFILE) || undefined
  if (name !== undefined) {
    const stored = storedProfile(name, url)
    return options.token ? { url: stored.url, ...givenToken(options, env)! } : fromProfile(name, stored)
  }
  const given = givenToken(options, env)
  if (given) return { url: url ?? urlMeant(env), ...given }
  const profiles = readProfiles()
  const fallback = profiles.get(DEFAULT_PROFILE)
  if (fallback && (url === undefined || isSame(url, fallback.url)))
    return fromProfile(DEFAULT_PROFILE, fallback)
  // HOST and PORT name a service as well as a URL does.
  const named = url ?? (env.HOST || env.PORT ? addressHere(env) : undefined)
  const other = named === undefined ? undefined : [...profiles].find(([, one]) => isSame(named, one.url))
  const found = other ?? (await embeddedProfile(env, url))
  if (found) return fromProfile(...found)
  throw noToken(url ?? addressHere(env), profiles)
}

function protocolOf(url: string): string {
  return URL.canParse(url) ? new URL(url).protocol : ''
}

function givenToken(options: ConnectionOptions, env: NodeJS.ProcessEnv): Omit<Target, 'url'> | undefined {
  if (options.token) return { token: options.token, origin: 'It came from --token.' }
  for (const variable of ['ANNALS_TOKEN', 'ANNALS_API_KEY']) {
    const token = env[variable]
    if (token) return { token, origin: `It came from ${variable}.` }
  }
  return undefined
}

function fromProfile(name: string, { url, token, made_for }: Profile): Target {
  const option = `--profile ${JSON.stringify(name)}`
  const origin =
    made_for === undefined
      ? `It came from the profile ${JSON.stringify(name)}; \`annals login ${option}\` stores another.`
      : `It was created for the embedded database and stored as the profile ${JSON.stringify(name)}; \`annals logout ${option}\` removes it, and the next command creates another.`
  return { url, token, origin }
}

function noToken(url: string, profiles: Map<string, Profile>): AnnalsError {
  const named = [...profiles]
    .slice(0, NAMED_MAX)
    .map(([name, one]) => `${JSON.stringify(name)} for ${one.url}`)
  const more = profiles.size > NAMED_MAX ? `, and ${profiles.size - NAMED_MAX} more` : ''
  const known =
    named.length === 0
      ? ''
      : ` Use --profile with one of those in ${profilesPath()}: ${named.join(', ')}${more}.`
  return new AnnalsError(
    'unauthorized',
    `No API key for ${url}.${known} Set ANNALS_URL and ANNALS_API_KEY, or store both with \`annals login\`. On the service's machine, set the same PORT and ANNALS_DATA_DIR as the service; there, \`annals key\` creates a key.`,
  )
}

function storedProfile(name: string, url: string | undefined): Profile {
  const profile = readProfiles().get(name)
  if (!profile) throw new UsageError(`There is no profile ${JSON.stringify(name)} in ${profilesPath()}.`)
  if (url !== undefined && !isSame(url, profile.url))
    throw new UsageError(`The profile ${name} is for ${profile.url}, and its key is sent nowhere else.`)
  return profile
}

function isSame(one: string, other: string): boolean {
  const bare = (url: string) => url.replace(/(?<!\/)\/+$/, '')
  return bare(one) === bare(other)
}
