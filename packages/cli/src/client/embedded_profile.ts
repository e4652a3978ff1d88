import { existsSync, realpathSync, statSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '@annals/kits/configuration/config.js'
import { isLoopback } from '@annals/kits/configuration/exposure.js'
import { operatorName, withDatabase } from '../database/with_database.js'
import { keptAddress } from '../service/service_address.js'
import { tell } from '../terminal/output.js'
import { checkProfilesWritable, type Profile, profilesPath, readProfiles, saveProfile } from './profiles.js'

/** The project that the first start creates. */
const PROJECT = 'default'

/** The local service's URL: from HOST and PORT if set, otherwise from its stored address. */
export function addressHere(env: NodeJS.ProcessEnv): string {
  // Whether a key is valid, the service says.
  const { host, port, database_url, data_dir } = readConfig({ ...env, ANNALS_API_KEY: undefined })
  const is_given = env.HOST || env.PORT || database_url !== undefined
  const kept = is_given ? undefined : keptAddress(data_dir)
  if (kept !== undefined) return kept
  return `http://${host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host}:${port || 8029}`
}

/**
 * The profile of the embedded database in this directory, with its name, if there is one. Anyone who can open the
 * directory may create keys, so the first use creates one and stores it, and nobody has to copy it. `url` is the
 * service's presumed address; the key is never sent to another machine.
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
    // The service's port may have changed.
    const profile = { ...kept, url: address }
    if (kept.url !== address) saveProfile(name, profile)
    return [name, profile]
  }
  checkProfilesWritable()
  const profile = { url: address, token: await makeToken(), made_for }
  saveProfile(name, profile)
  tell(
    `Created an API key for the project "${PROJECT}" of the embedded database in ${data_dir}, and stored it as the profile "${name}" in ${profilesPath()}.`,
  )
  return [name, profile]
}

export function isOnThisMachine(url: string): boolean {
  const hostname = URL.canParse(url) ? new URL(url).hostname : ''
  return isLoopback(hostname.replace(/^\[|\]$/g, ''))
}

/** A directory that was deleted and created again has the same name but another identity. */
function identityOf(path: string): string {
  const { dev, ino, birthtimeMs } = statSync(path)
  return `${dev}:${ino}:${birthtimeMs}`
}

async function makeToken(): Promise<string> {
  const { findProject, issueToken } = await import('annals/dist/projects/projects.js')
  const json = await withDatabase(async (database) =>
    issueToken(database, operatorName(), await findProject(database, PROJECT), {
      name: `command line of ${userInfo().username}@${hostname()}`,
      scopes: ['read', 'write'],
      expires_at: undefined,
    }),
  )
  return (JSON.parse(json) as { token: string }).token
}
