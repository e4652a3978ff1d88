import { setTimeout as sleep } from 'node:timers/promises'
import { type Fault, lull } from './fault.ts'

/** PostgreSQL restarted, and PostgreSQL paused. */
export const RESTART_FAULTS: Fault[] = [
  restart('database restarted, fast', 'SIGINT'),
  restart('database restarted, immediate', 'SIGQUIT'),
  { ...pause('database paused for 5 s', 5_000), times: 10 },
  { ...pause('database paused for 60 s', 60_000), times: 10, long: true },
]

function restart(kind: string, signal: 'SIGINT' | 'SIGQUIT'): Fault {
  return {
    kind,
    times: 10,
    strike: async ({ postgres, nodes }, random) => {
      const from = performance.now()
      await postgres.stop(signal)
      await lull(random, 0, 500)
      const to = await postgres.start()
      return { returned_at: to, nodes, away: { from, to } }
    },
  }
}

function pause(kind: string, ms: number): Omit<Fault, 'times'> {
  return {
    kind,
    strike: async ({ postgres, nodes }) => {
      await postgres.signalAll('SIGSTOP')
      const from = performance.now()
      await sleep(ms)
      const to = performance.now()
      await postgres.signalAll('SIGCONT')
      return { returned_at: performance.now(), nodes, away: { from, to } }
    },
  }
}
