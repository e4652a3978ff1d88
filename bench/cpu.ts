import { readdir, readFile } from 'node:fs/promises'
import { isCluster, withConnection } from './postgres.ts'

/** Which processes' time is counted. */
export interface CpuOf {
  services?: Array<{ pid: number }>
  /** Any database of the PostgreSQL server, whose time is counted where it runs on this machine. */
  database?: { url: string }
}

export interface CpuUsed {
  service_us: number
  postgres_us: number
  /** Of all processors of the machine: how much anybody used, in microseconds, and how much there was. */
  machine_us: number
  capacity_us: number
}

// What the kernel counts in: USER_HZ, 100 on every Linux that Node runs on.
const US_PER_TICK = 10_000

/**
 * Begins to count CPU time; the function that it gives ends it. Linux only: it reads /proc, and counts nothing
 * elsewhere.
 */
export async function measureCpu({
  services = [],
  database,
}: CpuOf): Promise<() => Promise<CpuUsed | undefined>> {
  if (process.platform !== 'linux') return async () => undefined
  const postmasters = database ? await findPostmasters(database.url) : []
  const pids = services.map(({ pid }) => pid)
  const look = async () => {
    const stats = (await Promise.all((await processIds()).map(readStat))).filter((stat) => stat !== undefined)
    return {
      service: ticksOfTrees(stats, pids, postmasters),
      postgres: ticksOfTrees(stats, postmasters),
      machine: await machineTicks(),
    }
  }
  const before = await look()
  return async () => {
    const after = await look()
    const idle = after.machine.idle - before.machine.idle
    const total = after.machine.total - before.machine.total
    return {
      service_us: (after.service - before.service) * US_PER_TICK,
      postgres_us: (after.postgres - before.postgres) * US_PER_TICK,
      machine_us: (total - idle) * US_PER_TICK,
      capacity_us: total * US_PER_TICK,
    }
  }
}

/** The process ids of the first processes of all of the server's machines, without those that are not this machine. */
async function findPostmasters(url: string): Promise<number[]> {
  const found = (await machinesOf(url)).map((machine) =>
    withConnection(machine, async (client) => {
      const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
      const backend = await readStat(rows[0]!.pid)
      return backend?.name === 'postgres' ? [backend.parent] : []
    }),
  )
  return (await Promise.all(found)).flat()
}

/** The URLs of a server, or of all machines of a cluster. */
async function machinesOf(url: string): Promise<string[]> {
  if (!(await isCluster(url))) return [url]
  return withConnection(url, async (client) => {
    const { rows } = await client.query('SELECT nodename AS hostname, nodeport AS port FROM pg_dist_node')
    return rows.map((machine) => Object.assign(new URL(url), machine).href)
  })
}

/** Processes with their descendants other than `except` and their own, those that ended and were waited for included. */
function ticksOfTrees(stats: Stat[], roots: number[], except: number[] = []): number {
  const tree = new Set(roots)
  for (let size = 0; size !== tree.size; ) {
    size = tree.size
    for (const { pid, parent } of stats) if (tree.has(parent) && !except.includes(pid)) tree.add(pid)
  }
  return stats.reduce((ticks, stat) => ticks + (tree.has(stat.pid) ? stat.ticks : 0), 0)
}

async function processIds(): Promise<number[]> {
  return (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
}

interface Stat {
  pid: number
  name: string
  parent: number
  /** User and system time, its own and that of its children that ended. */
  ticks: number
}

async function readStat(pid: number): Promise<Stat | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  const match = text && /^\d+ \((.*)\) (.*)$/s.exec(text)
  if (!match) return undefined
  const fields = match[2]!.split(' ').map(Number)
  return {
    pid,
    name: match[1]!,
    parent: fields[1]!,
    ticks: fields[11]! + fields[12]! + fields[13]! + fields[14]!,
  }
}

async function machineTicks(): Promise<{ total: number; idle: number }> {
  const [line = ''] = (await readFile('/proc/stat', 'utf8')).split('\n')
  const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number)
  // Idle, and idle while a disk is waited for.
  return { total: ticks.reduce((a, b) => a + b, 0), idle: ticks[3]! + ticks[4]! }
}
