import { chmod, chown, lchown, lstat, mkdir, open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type DataDirectory, move, passOver, syncPath } from './data_directory.js'
import type { Engine } from './engine.js'
import { EmbeddedPostgresError, FULL_DISK, fullDisk } from './failures.js'
import { type Account, isRoot, runProgram } from './run_program.js'
import { reasonIn } from './server_log.js'
import { SETTINGS } from './settings.js'
import { createPassword, PASSWORD } from './tcp.js'

// PGDATA's name while it is created. Only the holder of the lock creates one, so any other is a leftover.
const UNFINISHED = 'creating-'

/**
 * The path of PGDATA as given to PostgreSQL. For root on Linux it is the working directory, which spawn enters while
 * it is still root. So the account that runs PostgreSQL need not have access to the directories above it, and
 * /root/project/data works although /root is closed to everybody else.
 */
export function nameForServer(cluster: string): string {
  return isRoot() && process.platform === 'linux' ? '/proc/self/cwd' : cluster
}

/** Whether PGDATA exists. If it is damaged, or of another major version or user, this throws an EmbeddedPostgresError. */
export async function clusterExists(directory: DataDirectory, major: number): Promise<boolean> {
  const { cluster } = directory
  const names = await readdir(cluster).catch(passOver('ENOENT'))
  if (!names?.length) return false
  for (const part of ['PG_VERSION', 'global/pg_control']) {
    if (await stat(join(cluster, part)).catch(() => undefined)) continue
    throw new EmbeddedPostgresError(
      `The PostgreSQL data in ${cluster} is damaged (${part} is missing): restore it from a backup, ` +
        'or choose another data directory.',
    )
  }
  const found = (await readFile(join(cluster, 'PG_VERSION'), 'utf8')).trim()
  if (found !== `${major}`) {
    throw new EmbeddedPostgresError(
      `The data in ${cluster} was written by PostgreSQL ${found} and this is PostgreSQL ${major}: dump it with ` +
        `PostgreSQL ${found} and restore it here, use a PostgreSQL server that has it, or ` +
        'choose another data directory.',
    )
  }
  return true
}

/**
 * Creates PGDATA. It is complete and durable (initdb syncs it) before it gets its name, so an interruption leaves
 * either all of it or nothing that a later start would take for it.
 */
export async function createCluster(
  directory: DataDirectory,
  engine: Engine,
  account: Account | undefined,
): Promise<void> {
  for (const name of await readdir(directory.path)) {
    if (!name.startsWith(UNFINISHED)) continue
    // An initdb whose parent was killed may still be writing to it; then the next start removes it.
    await rm(join(directory.path, name), { recursive: true, force: true, maxRetries: 3 }).catch(() => {})
  }
  const fresh = join(directory.path, `${UNFINISHED}${process.pid}-${Date.now()}`)
  const isTcp = directory.transport === 'tcp'
  const password = `${fresh}.${PASSWORD}`
  try {
    await mkdir(fresh, { mode: 0o700 })
    if (account) await chown(fresh, account.uid, account.gid)
    if (isTcp) await createPassword(password, account)
    const { code, output } = await runProgram(
      engine.initdb,
      [
        ...['--pgdata', nameForServer(fresh), '--username', directory.name, ...INITDB_OPTIONS],
        ...(isTcp ? [...BY_PASSWORD, '--pwfile', join('..', basename(password))] : BY_SOCKET),
      ],
      { cwd: fresh, account },
    )
    if (code !== 0) throw failedInitdb(directory, output)
    if (isTcp) await move(password, join(fresh, PASSWORD))
    await move(fresh, directory.cluster)
    await syncPath(directory.path)
  } catch (error) {
    await rm(password, { force: true }).catch(() => {})
    await rm(fresh, { recursive: true, force: true, maxRetries: 3 }).catch(() => {})
    throw error
  }
}

// Only its owner and root can reach the socket, so there is nothing left to authenticate.
const BY_SOCKET = ['--auth-local=trust', '--auth-host=reject']
const BY_PASSWORD = ['--auth-local=reject', '--auth-host=scram-sha-256']
const INITDB_OPTIONS = [
  '--encoding=UTF8',
  '--locale=C',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
  '--data-checksums',
  '--no-instructions',
]

function failedInitdb(directory: DataDirectory, output: string): EmbeddedPostgresError {
  if (FULL_DISK.test(output)) return fullDisk(directory.path, output)
  const reason = reasonIn(output)
  const hint = /could not look up effective user ID/.test(output)
    ? 'give this user a name (a line in /etc/passwd)'
    : 'choose another data directory'
  return new EmbeddedPostgresError(
    `PostgreSQL could not create its data in ${directory.path} (${reason}): ${hint}, or use another PostgreSQL server.`,
    { cause: output },
  )
}

/** Sets the permissions and settings of PGDATA that this version needs. */
export async function prepareCluster(cluster: string, account: Account | undefined): Promise<void> {
  const { uid } = await lstat(cluster)
  // Data that root copied or restored belongs to root, and PostgreSQL would refuse it.
  if (account && uid === 0) await handOver(cluster, account)
  await chmod(cluster, 0o700)
  const fresh = join(cluster, 'postgresql.conf.new')
  await rm(fresh, { force: true })
  // Exclusive, and the owner is set by handle, so that root does not follow a link that was put in the way.
  const file = await open(fresh, 'wx', 0o600)
  try {
    await file.writeFile(SETTINGS)
    if (account) await file.chown(account.uid, account.gid)
    await file.sync()
  } finally {
    await file.close()
  }
  await move(fresh, join(cluster, 'postgresql.conf'))
}

async function handOver(path: string, account: Account): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const inner = join(path, entry.name)
    if (entry.isDirectory()) await handOver(inner, account)
    else await lchown(inner, account.uid, account.gid)
  }
  await lchown(path, account.uid, account.gid)
}
