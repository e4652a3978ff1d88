import { appendFile } from 'node:fs/promises'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServiceNode } from './node.ts'
import type { World } from './world.ts'

const LOOK_MS = 1_000
const TELLING =
  /^annals_(append_|flush_troubles|database_|statement_errors|event_loop)|^nodejs_eventloop_lag_(mean|max)/

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
  const [cpu, metrics, backends] = await Promise.all([
    node.cpuWithin(LOOK_MS),
    metricsOf(node),
    Promise.race([world.postgres.ask(BACKENDS), sleep(5_000, [{ backends: 'no answer in 5 s' }])]).catch(
      (error: unknown) => [{ backends: String(error) }],
    ),
  ])
  const lines = [
    `${at} ${node.name} did not write for ${waited}`,
    `  load ${loadavg().join(' ')}; the node had ${cpu ?? 'no'} ms of CPU within ${LOOK_MS} ms`,
    ...metrics.map((line) => `  ${line}`),
    ...backends.map((row) => `  ${JSON.stringify(row)}`),
  ]
  await appendFile(join(world.work, 'standstill.log'), `${lines.join('\n')}\n`).catch(() => {})
}

async function metricsOf(node: ServiceNode): Promise<string[]> {
  try {
    const response = await fetch(`${node.url}/metrics`, { signal: AbortSignal.timeout(5_000) })
    return (await response.text()).split('\n').filter((line) => TELLING.test(line))
  } catch (error) {
    return [`/metrics: ${error}`]
  }
}
