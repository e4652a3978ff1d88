import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

const ASKED_TIMES_MAX = 20

/** A database server, as nodes and checks see it. */
export abstract class Server {
  abstract readonly port: number

  /** Where a node connects, possibly through a proxy at another port. */
  abstract url(database?: string, port?: number): string

  /** The superuser's way in. */
  abstract superuserUrl(database?: string): string

  /** Called when the run is over. */
  abstract stop(signal: 'SIGINT'): Promise<void>

  /** One statement of the superuser, on a connection of its own; a server that is busy is asked again. */
  async ask<Row extends pg.QueryResultRow>(
    statement: string,
    values: unknown[] = [],
    database = 'postgres',
  ): Promise<Row[]> {
    for (let attempt = 1; ; attempt++) {
      const client = await this.connect(database).catch((error: unknown) => {
        if (attempt >= ASKED_TIMES_MAX) throw error
      })
      if (!client) continue
      try {
        return (await client.query<Row>(statement, values)).rows
      } finally {
        await client.end().catch(() => {})
      }
    }
  }

  private async connect(database = 'postgres'): Promise<pg.Client> {
    const connectionString = this.superuserUrl(database)
    const client = new pg.Client({ connectionString, connectionTimeoutMillis: 2_000, query_timeout: 120_000 })
    client.on('error', () => {})
    try {
      await client.connect()
      return client
    } catch (error) {
      await client.end().catch(() => {})
      await sleep(50)
      throw error
    }
  }

  protected async answers(): Promise<boolean> {
    try {
      const client = await this.connect()
      await client.query('SELECT 1').finally(() => client.end())
      return true
    } catch {
      return false
    }
  }
}

/** Signals a postmaster and every process that it has started. */
export async function signalAll(pid: number, signal: 'SIGSTOP' | 'SIGCONT'): Promise<void> {
  process.kill(pid, signal)
  for (const child of await childrenOf(pid)) {
    try {
      process.kill(child, signal)
    } catch {
      // It ended meanwhile.
    }
  }
}

async function childrenOf(parent: number): Promise<number[]> {
  const children: number[] = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '')
    // The second field is the program's name in parentheses; the fourth is the parent.
    if (Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent) children.push(Number(name))
  }
  return children
}
