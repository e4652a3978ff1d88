import { randomBytes } from 'node:crypto'
import { chown, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type DataDirectory, passOver } from './data_directory.js'
import { EmbeddedPostgresError } from './failures.js'
import type { Account } from './run_program.js'

/**
 * The way to a server without Unix sockets. It listens on a port that only this machine reaches, and lets in who knows
 * the password, which stands in PGDATA: whoever can read it can read the data as well.
 */
export const LOOPBACK = '127.0.0.1'

/** The file of the password, in PGDATA. */
export const PASSWORD = 'password'
// A server that is started again has the same port, because processes that use it know only that one.
const PORT = 'port'

/** Writes a new password to a file that initdb reads. */
export async function createPassword(file: string, account: Account | undefined): Promise<void> {
  await writeFile(file, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' })
  if (account) await chown(file, account.uid, account.gid)
}

export async function passwordIn(cluster: string): Promise<string> {
  const text = await readFile(join(cluster, PASSWORD), 'utf8').catch(passOver('ENOENT'))
  if (text !== undefined) return text.trim()
  throw new EmbeddedPostgresError(
    `The PostgreSQL data in ${cluster} has no file "${PASSWORD}": restore it, or choose another data directory.`,
  )
}

/** The server's port: chosen at its first start. */
export async function portIn({ cluster }: DataDirectory): Promise<number> {
  const kept = Number(await readFile(join(cluster, PORT), 'utf8').catch(passOver('ENOENT')))
  if (kept > 0) return kept
  const port = await freePort()
  await writeFile(join(cluster, PORT), `${port}\n`, { mode: 0o600 })
  return port
}

/** Makes the next start choose another port. */
export async function forgetPort({ cluster }: DataDirectory): Promise<void> {
  await rm(join(cluster, PORT), { force: true })
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject)
    server.listen({ port: 0, host: LOOPBACK, exclusive: true }, () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
