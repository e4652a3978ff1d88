import { Annals } from '@annals/client'
import type { Command } from 'commander'
import { AnnalsError } from '../../errors.js'
import { parseJson, writeJson } from '../../messages/message_format.js'
import { UsageError } from '../run_command.js'
import { embeddedProfile } from './embedded_profile.js'
import { DEFAULT_PROFILE, type Profile, profilesPath, readProfiles } from './profiles.js'

export const URL_DEFAULT = 'http://127.0.0.1:8029'

/** Where to, and as whom, as the command line has it. */
export interface ConnectionOptions {
  url?: string
  token?: string
  profile?: string
}

/** A project of a service, reached over HTTP. */
export interface Connection {
  annals: Annals
  url: string
}

/** Adds the options by which a command finds the service. */
export function withConnection(command: Command): Command {
  return command
    .option('--url <url>', `the service; else ANNALS_URL, else ${URL_DEFAULT}`)
    .option('--token <token>', 'the API key; else ANNALS_TOKEN, which others cannot see in the process list')
    .option('--profile <name>', 'what `annals login` stored; else ANNALS_PROFILE, else default')
}

/**
 * The service and the token to use. What stands in the command line goes before the environment, and that before
 * what was stored; a stored token is only ever sent where it was stored for.
 * @param retries how often a call is made again; a person at a terminal wants to know sooner than a program
 */
export async function connect(options: ConnectionOptions, retries = 2): Promise<Connection> {
  const { url, token } = await findProfile(options, process.env)
  try {
    return { annals: new Annals({ url, token, retries, parse: parseExactly, stringify: writeJson }), url }
  } catch (error) {
    throw new UsageError(`${JSON.stringify(url)} is not the URL of a service: ${(error as Error).message}.`)
  }
}

/** Whether something says which service is meant, or only the embedded database beside us could be. */
export function isConnectionGiven({ url, token, profile }: ConnectionOptions): boolean {
  const { ANNALS_URL, ANNALS_TOKEN, ANNALS_PROFILE } = process.env
  if (url || token || profile || ANNALS_URL || ANNALS_TOKEN || ANNALS_PROFILE) return true
  return readProfiles().has(DEFAULT_PROFILE)
}

async function findProfile(options: ConnectionOptions, env: NodeJS.ProcessEnv): Promise<Profile> {
  const url = options.url || env.ANNALS_URL || undefined
  const name = options.profile || (options.token ? undefined : env.ANNALS_PROFILE) || undefined
  if (name !== undefined)
    return { ...storedProfile(name, url), ...(options.token && { token: options.token }) }
  const token = options.token || env.ANNALS_TOKEN || env.ANNALS_API_KEY || undefined
  if (token !== undefined) return { url: url ?? URL_DEFAULT, token }
  const profiles = readProfiles()
  const fallback = profiles.get(DEFAULT_PROFILE)
  if (fallback && (url === undefined || isSame(url, fallback.url))) return fallback
  const other = url === undefined ? undefined : [...profiles.values()].find((one) => isSame(url, one.url))
  const found = other ?? (await embeddedProfile(env, url))
  if (found) return found
  const where = url === undefined ? '' : ` for ${url}`
  throw new AnnalsError(
    'unauthorized',
    `There is no token${where}: set ANNALS_TOKEN, or store one with \`annals login\`. \`annals token create\` makes one.`,
  )
}

function storedProfile(name: string, url: string | undefined): Profile {
  const profile = readProfiles().get(name)
  if (!profile) throw new UsageError(`There is no profile ${JSON.stringify(name)} in ${profilesPath()}.`)
  if (url !== undefined && !isSame(url, profile.url))
    throw new UsageError(`The profile ${name} is for ${profile.url}, and its token is sent nowhere else.`)
  return profile
}

function isSame(one: string, other: string): boolean {
  const bare = (url: string) => url.replace(/\/+$/, '')
  return bare(one) === bare(other)
}

/** An answer nests what is stored a few levels deeper, so its depth is not refused here. */
function parseExactly(text: string): unknown {
  try {
    return parseJson(text)
  } catch (error) {
    if (error instanceof RangeError) return JSON.parse(text)
    throw error
  }
}
