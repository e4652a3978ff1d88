import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rename, rm, rmdir, stat, unlink, writeFile } from 'node:fs/promises'
import type { Server } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type DataDirectory, handToOwner, isBlocked, move, passOver } from './data_directory.js'
import { EmbeddedPostgresError } from './failures.js'
import { listenOn, presenceOf, someoneListensOn } from './presence.js'

/**
 * Tracks who uses the server of a data directory, and who may start or stop it now.
 *
 * A client is a directory named by a unique id that contains one listening Unix socket of the same name:
 *
 *   clients/.new-<id>/<id>   joining: created, not yet counted
 *   clients/<id>/<id>        a client
 *   lock/<id>                a client that holds the lock
 *   (nothing)                has left
 *
 * Every transition is one rename(2) or unlink(2), and so atomic:
 * - lock: clients/<id> → lock. The rename succeeds if `lock` is missing or empty, and fails if it has a file.
 * - unlock: lock → clients/<id>.
 * - leave: unlink lock/<id>, which ends the membership and frees the lock in one step. So nobody can arrive in
 *   between and take the leaver for a client that would stop the server later.
 *
 * The kernel tells whether a client is alive: the socket of a process that is gone refuses connections, however the
 * process ended. Unlike a process id in a file, this is safe against reused ids and restarted machines, and it works
 * between containers that share the directory. The remains of a dead client are removed by its unique name, so the
 * lock of a client that has meanwhile taken its place cannot be broken by mistake.
 *
 * Without Unix sockets, the file is empty and the client listens on a named pipe of that id. Windows renames a directory
 * only while nothing in it is open, and only to a name that is free; so whoever finds an empty `lock` removes it.
 *
 * Locking needs no disk space: on a full disk the server can still be stopped.
 */
export class Client {
  /** The lock is per client, so one process's operations with its client run one after the other. */
  private turn: Promise<unknown> = Promise.resolve()
  private left = false

  private constructor(
    private readonly id: string,
    private readonly directory: DataDirectory,
    /** A path to the data directory that is short enough for sockets. */
    private readonly reach: string,
    private readonly listener: Server,
  ) {}

  /** Becomes a client of the data directory; from now on nobody else stops its server. */
  static async join(directory: DataDirectory, reach: string): Promise<Client> {
    const id = `${process.pid}-${randomBytes(4).toString('hex')}`
    const fresh = join(directory.clients, `.new-${id}`)
    await mkdir(fresh, { mode: 0o700 })
    let listener: Server | undefined
    try {
      listener = await listenOn(presenceOf(directory, reach, join('clients', `.new-${id}`), id))
      if (directory.transport === 'tcp') await writeFile(join(fresh, id), '', { mode: 0o600 })
      await handToOwner(join(fresh, id), directory)
      await handToOwner(fresh, directory)
      // Only now that the socket listens may others ask whether it is alive.
      await move(fresh, join(directory.clients, id))
    } catch (error) {
      listener?.close()
      await rm(fresh, { recursive: true, force: true })
      throw error
    }
    return new Client(id, directory, reach, listener)
  }

  /** Runs `work` while no other client of the directory does such work; reports if it has to wait. */
  whileLocked<T>(work: () => Promise<T>, say: (sentence: string) => void): Promise<T> {
    return this.inTurn(async () => {
      await this.lock(say)
      try {
        return await work()
      } finally {
        await move(this.directory.lock, join(this.directory.clients, this.id)).catch(passOver('ENOENT'))
      }
    })
  }

  /** Ends the membership; calls `last`, under the lock, if no other client is left. */
  leave(last: () => Promise<void>, say: (sentence: string) => void): Promise<void> {
    return this.inTurn(async () => {
      this.left = true
      try {
        await this.lock(say)
        if (!(await this.hasCompany())) await last()
      } catch (error) {
        // The data directory was deleted: PostgreSQL notices that and ends by itself.
        passOver('ENOENT')(error)
      } finally {
        await unlink(join(this.directory.lock, this.id)).catch(() => {})
        await rmdir(this.directory.lock).catch(() => {})
        // Only there if the lock could not be acquired.
        await rm(join(this.directory.clients, this.id), { recursive: true, force: true }).catch(() => {})
        this.listener.close()
      }
    })
  }

  /**
   * Stops being alive for others at once, while this process ends: its threads may take longer to end than another
   * process needs to look who is left.
   */
  abandon(): void {
    this.listener.close()
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.turn.then(() => {
      if (this.left) throw new Error('This client has left its PostgreSQL server.')
      return work()
    })
    this.turn = turn.catch(() => {})
    return turn
  }

  private async lock(say: (sentence: string) => void): Promise<void> {
    const began = performance.now()
    let said = false
    let refusals = 0
    for (;;) {
      try {
        await rename(join(this.directory.clients, this.id), this.directory.lock)
        return
      } catch (error) {
        if (!isBlocked(error) || ++refusals === MOST_REFUSALS) passOver('ENOTEMPTY', 'EEXIST')(error)
      }
      const holder = await this.liveHolder()
      if (holder === undefined) {
        if (refusals > 1) await sleep(REFUSED_MS)
        continue
      }
      refusals = 0
      const waited = performance.now() - began
      const sentence = `Process ${holder.split('-')[0]} is starting or stopping the PostgreSQL in ${this.directory.path}`
      if (waited > LOCK_PATIENCE_MS) {
        throw new EmbeddedPostgresError(
          `${sentence} and has not finished for ${LOCK_PATIENCE_MS / 1000} s: check that process.`,
        )
      }
      if (waited > 1000 && !said) {
        said = true
        say(`${sentence}; waiting for it`)
      }
      // Slower with time: probes queue up unanswered at a stopped holder, and macOS refuses the 129th.
      await sleep((0.5 + Math.random()) * Math.min(10 + waited / 20, 400))
    }
  }

  /** The id of the client that holds the lock. A dead holder's file is removed, which frees the lock. */
  private async liveHolder(): Promise<string | undefined> {
    for (const id of await readdir(this.directory.lock).catch(() => [])) {
      if (await someoneListensOn(presenceOf(this.directory, this.reach, 'lock', id))) return id
      await unlink(join(this.directory.lock, id)).catch(
        (error) => isBlocked(error) || passOver('ENOENT')(error),
      )
    }
    await rmdir(this.directory.lock).catch(() => {})
    return undefined
  }

  /** Whether another client is alive; removes the remains of dead ones. Only under the lock. */
  private async hasCompany(): Promise<boolean> {
    for (const id of await readdir(this.directory.clients)) {
      const home = join(this.directory.clients, id)
      if (id.startsWith('.new-')) {
        // Not yet a client: it will wait for the lock and then check by itself whether the server runs.
        const made = (await stat(home).catch(() => undefined))?.mtimeMs
        if (made !== undefined && Date.now() - made > JOINING_MS)
          await rm(home, { recursive: true, force: true })
        continue
      }
      if (await someoneListensOn(presenceOf(this.directory, this.reach, join('clients', id), id))) return true
      await rm(home, { recursive: true, force: true })
    }
    return false
  }
}

// A start takes a second; recovery after a machine crash may take long, and says so in the log.
const LOCK_PATIENCE_MS = 300_000
// How often Windows may refuse a lock that nobody holds.
const MOST_REFUSALS = 500
const REFUSED_MS = 10
// Joining is three system calls; a process still in it after this time was killed in between.
const JOINING_MS = 60_000
