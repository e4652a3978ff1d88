import { createHash } from 'node:crypto'
import { lstat, mkdir, readlink, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DataDirectory, passOver } from './data_directory.js'
import { EmbeddedPostgresError } from './failures.js'

// A socket's path may have 107 bytes on Linux and 103 on macOS; the longest name that we append to the data directory
// is `/clients/.new-<id>/<id>` with ids of up to 16.
const LONGEST_PATH = 103
const LONGEST_NAME_BELOW = 48
// Where there are no sockets: PostgreSQL's paths have 259 characters there, and initdb makes up to 75 below this one.
const LONGEST_ON_WINDOWS = 180

/**
 * A path to a data directory that is short enough for the sockets below it: the directory itself, or a symbolic link to it
 * in a private directory under the temporary one. The limit applies to the string, not to its target, so the sockets
 * stay with the data. That matters: whoever finds the data finds its server, and a cleaner of /tmp only removes a
 * link, which the next call creates again.
 */
export async function shortPathTo(
  place: Pick<DataDirectory, 'path' | 'name' | 'transport'>,
): Promise<string> {
  const { path: directory } = place
  if (place.transport === 'tcp') {
    if (directory.length > LONGEST_ON_WINDOWS) throw tooLong(directory)
    return directory
  }
  if (fits(directory)) return directory
  const hash = createHash('sha256').update(directory).digest('hex').slice(0, 16)
  const name = `${place.name}-${process.getuid?.() ?? 0}-${hash}`
  const home = [join(tmpdir(), name), join('/tmp', name)].find((path) => fits(join(path, 'd')))
  if (home === undefined) throw tooLong(directory)
  await makePrivate(home, directory)
  const link = join(home, 'd')
  await pointTo(link, directory)
  return link
}

function tooLong(directory: string): EmbeddedPostgresError {
  return new EmbeddedPostgresError(`The path ${directory} is too long: choose a shorter one.`)
}

function fits(path: string): boolean {
  return Buffer.byteLength(path) + LONGEST_NAME_BELOW <= LONGEST_PATH
}

/** Everybody can write to /tmp: only a directory that belongs to us alone may lead to our sockets. */
async function makePrivate(home: string, directory: string): Promise<void> {
  await mkdir(home, { mode: 0o700 }).catch(passOver('EEXIST'))
  const found = await lstat(home)
  if (found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o077) === 0) return
  throw new EmbeddedPostgresError(
    `${home}, through which the long path ${directory} is reached, is not a private directory of this user: ` +
      'remove it, or choose a shorter path.',
  )
}

async function pointTo(link: string, directory: string): Promise<void> {
  for (;;) {
    if ((await readlink(link).catch(() => undefined)) === directory) return
    try {
      await symlink(directory, link)
    } catch (error) {
      // Another process created the same link, or a link of an older directory is in the way.
      passOver('EEXIST')(error)
      if ((await readlink(link).catch(() => undefined)) !== directory) await rm(link, { force: true })
    }
  }
}
