import { appendFile, readFile } from 'node:fs/promises'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServiceNode } from './node.ts'
import type { World } from './world.ts'

const LOOK_MS = 1_000
const TELLING =
  /^annals_(append_|flush_troubles|database_|statement_errors|event_loop|memory_|requests_shed|tails)|^nodejs_eventloop_lag_(mean|max)/

const BACKENDS = `
SELECT pid, application_name, backend_type, state, wait_event_type, wait_event, age(clock_timestamp(), state_change) AS for_as_long,
  pg_blocking_pids(pid)::text AS blocked_by, left(query, 60) AS query
FROM pg_stat_activity WHERE usename IS NOT NULL AND pid <> pg_backend_pid() ORDER BY state, pid`

/**
 * Records in standstill.log what a node that does not write is doing: whether it gets CPU time, what waits in it, and
 * what its statements wait for in the database. Never throws.
 */
export async function noteStandstill(world: World, node: ServiceNode, waited: string): Promise<void> {
  const at = new Date().toISOString()
  const [cpu, unaccepted, metrics, backends] = await Promise.all([
    node.cpuWithin(LOOK_MS),
    unacceptedBy(node.line.target),
    metricsOf(node),
    Promise.race([world.postgres.ask(BACKENDS), sleep(5_000, [{ backends: 'no answer in 5 s' }])]).catch(
      (error: unknown) => [{ backends: String(error) }],
    ),
  ])
  const lines = [
    `${at} ${node.name} did not write for ${waited}`,
    `  load ${loadavg().join(' ')}; the node had ${cpu ?? 'no'} ms of CPU within ${LOOK_MS} ms`,
    `  connections that it has not accepted: ${unaccepted ?? 'unknown'}`,
    ...metrics.map((line) => `  ${line}`),
    ...backends.map((row) => `  ${JSON.stringify(row)}`),
  ]
  await appendFile(join(world.work, 'standstill.log'), `${lines.join('\n')}\n`).catch(() => {})
}

const LISTENING = '0A'

/** The connections in a listening socket's queue, as Linux counts them. */
async function unacceptedBy(port = 0): Promise<number | undefined> {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const lines = (await readFile('/proc/net/tcp', 'utf8').catch(() => '')).split('\n')
  const [, , , , queues] =
    lines
      .map((line) => line.trim().split(/\s+/))
      .find(([, address, , state]) => address?.endsWith(local) && state === LISTENING) ?? []
  return queues === undefined ? undefined : Number.parseInt(queues.split(':')[1]!, 16)
}

async function metricsOf(node: ServiceNode): Promise<string[]> {
  try {
    const response = await fetch(`${node.url}/metrics`, { signal: AbortSignal.timeout(5_000) })
    return (await response.text()).split('\n').filter((line) => TELLING.test(line))
  } catch (error) {
    return [`/metrics: ${error}`]
  }
}
