import type { Probe } from './clients/probe.ts'

/** How requests were answered while the database was unavailable. */
export interface Away {
  /** 503, with Retry-After. */
  refused: number
  refused_ms_max: number
  /** The same without the time in which the node waited for a CPU. */
  refused_awake_ms_max: number
  /** The connection was closed: the request may have taken effect. */
  unanswered: number
  unanswered_ms_max: number
  /** Anything else, with counts. */
  wrong: Map<string, number>
}

/** A request that had this long before the database came back must have been answered in it. */
const ANSWER_MS_MAX = 2_000

/** Adds the probes' results of a time in which the database was unavailable. */
export function judgeAway({ from, to }: { from: number; to: number }, probes: Probe[], away: Away): void {
  const now = performance.now()
  for (const { what, started_at, ended_at = now, status, starved_ms = 0 } of probes.flatMap(
    ({ probed }) => probed,
  )) {
    if (started_at < from || started_at >= to) continue
    const ms = ended_at - started_at
    if (status === 503) {
      away.refused += 1
      away.refused_ms_max = Math.max(away.refused_ms_max, ms)
      away.refused_awake_ms_max = Math.max(away.refused_awake_ms_max, ms - starved_ms)
    } else if (status === undefined) {
      away.unanswered += 1
      away.unanswered_ms_max = Math.max(away.unanswered_ms_max, ms)
    } else if (ended_at < to || to - started_at > ANSWER_MS_MAX) {
      const name = ended_at < to ? `${what} answered ${status} meanwhile` : `${what} kept waiting`
      away.wrong.set(name, (away.wrong.get(name) ?? 0) + 1)
    }
  }
}
