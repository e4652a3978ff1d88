import { existsSync, realpathSync, statSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../configuration/config.js'
import { isLoopback } from '../../configuration/exposure.js'
import { withDatabase } from '../database/with_database.js'
import { keptAddress } from '../service/service_address.js'
import { tell } from '../terminal/output.js'
import { type Profile, profilesPath, readProfiles, saveProfile } from './profiles.js'

/** The project that the first start makes. */
const PROJECT = 'default'

/** Where the service beside us is: by the HOST and PORT that are given, else where it has said that it listens. */
export function addressHere(env: NodeJS.ProcessEnv): string {
  const { host, port, database_url, data_dir } = readConfig(env)
  const is_given = env.HOST || env.PORT || database_url !== undefined
  const kept = is_given ? undefined : keptAddress(data_dir)
  if (kept !== undefined) return kept
  return `http://${host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host}:${port || 8029}`
}

/**
 * The profile of the embedded database that lies here, with its name, if one does: whoever may open its directory may make tokens,
 * so one is made the first time and kept, and nobody has to copy it. `url` is where the service is said to be; the
 * token is never sent to another machine.
 */
export async function embeddedProfile(
  env: NodeJS.ProcessEnv,
  url: string | undefined,
): Promise<[name: string, Profile] | undefined> {
  const { database_url, data_dir } = readConfig(env)
  if (url !== undefined && !isOnThisMachine(url)) return undefined
  if (database_url !== undefined || !existsSync(join(data_dir, 'postgres'))) return undefined
  const name = `embedded ${realpathSync(data_dir)}`
  const made_for = identityOf(join(data_dir, 'postgres'))
  const address = url ?? addressHere(env)
  const kept = readProfiles().get(name)
  if (kept?.made_for === made_for) {
    // The service may have moved to another port.
    const profile = { ...kept, url: address }
    if (kept.url !== address) saveProfile(name, profile)
    return [name, profile]
  }
  const profile = { url: address, token: await makeToken(), made_for }
  saveProfile(name, profile)
  tell(
    `Created an API key for the project "${PROJECT}" of the embedded database in ${data_dir}, and stored it as the profile "${name}" in ${profilesPath()}.`,
  )
  return [name, profile]
}

function isOnThisMachine(url: string): boolean {
  const hostname = URL.canParse(url) ? new URL(url).hostname : ''
  return isLoopback(hostname.replace(/^\[|\]$/g, ''))
}

/** A directory that was removed and made again has the same name and another identity. */
function identityOf(path: string): string {
  const { dev, ino, birthtimeMs } = statSync(path)
  return `${dev}:${ino}:${birthtimeMs}`
}

async function makeToken(): Promise<string> {
  const { findProject, issueToken } = await import('../../projects/projects.js')
  const json = await withDatabase(async (database) =>
    issueToken(database, await findProject(database, PROJECT), {
      name: `command line of ${userInfo().username}@${hostname()}`,
      scopes: ['read', 'write'],
      expires_at: undefined,
    }),
  )
  return (JSON.parse(json) as { token: string }).token
}
