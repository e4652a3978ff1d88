import {
  accessSync,
  chmodSync,
  constants,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { StartError } from '@annals/kits/errors.js'

/** A service and its key. */
export interface Profile {
  url: string
  token: string
  /** The database directory that it was created for; a recreated directory of the same name is another one. */
  made_for?: string
}

export const DEFAULT_PROFILE = 'default'

/** The path of the profiles' file. */
export function profilesPath(env: NodeJS.ProcessEnv = process.env): string {
  return join(env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'annals', 'profiles.json')
}

/** All profiles, by name. @throws StartError if others could read the file, or its content is invalid */
export function readProfiles(path: string = profilesPath()): Map<string, Profile> {
  let text: string
  try {
    const { mode } = statSync(path)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      throw new StartError(`${path} contains API keys and other users can read it. Run: chmod 600 ${path}`)
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Map()
    if (error instanceof StartError) throw error
    throw new StartError(`${path} cannot be read (${(error as Error).message}).`, { cause: error })
  }
  try {
    const { profiles } = JSON.parse(text) as { profiles: Record<string, Profile> }
    return new Map(Object.entries(profiles))
  } catch (error) {
    throw new StartError(`${path} was not written by \`annals login\`. Move it away and log in again.`, {
      cause: error,
    })
  }
}

/** Stores a profile under a name, replacing the previous one. */
export function saveProfile(name: string, profile: Profile, path: string = profilesPath()): void {
  writeProfiles(readProfiles(path).set(name, profile), path)
}

/** Removes a profile; returns whether it existed. */
export function removeProfile(name: string, path: string = profilesPath()): boolean {
  const profiles = readProfiles(path)
  const was_there = profiles.delete(name)
  if (was_there) writeProfiles(profiles, path)
  return was_there
}

/** Whether profiles can be stored, before there is one to be lost. @throws StartError */
export function checkProfilesWritable(): void {
  const path = profilesPath()
  orExplain(path, () => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    accessSync(dirname(path), constants.W_OK)
  })
}

function orExplain(path: string, write: () => void): void {
  try {
    write()
  } catch (error) {
    throw new StartError(
      `${path} cannot be written (${(error as Error).message}). Set XDG_CONFIG_HOME to a directory of your own, or set ANNALS_API_KEY, which needs no file.`,
      { cause: error },
    )
  }
}

/** The file appears complete or not at all, and is never readable by others, not even for a moment. */
function writeProfiles(profiles: Map<string, Profile>, path: string): void {
  const draft = `${path}.${process.pid}`
  orExplain(path, () => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    rmSync(draft, { force: true })
    writeFileSync(draft, `${JSON.stringify({ profiles: Object.fromEntries(profiles) }, null, 2)}\n`, {
      mode: 0o600,
      flag: 'wx',
    })
    chmodSync(draft, 0o600)
    renameSync(draft, path)
  })
}
