import { killsOf } from './bounds.ts'
import type { Findings } from './check/compare.ts'
import type { editFigures } from './check/edits.ts'
import type { Learning } from './check/learning.ts'
import type { Traffic } from './clients/http.ts'
import type { Rounds } from './rounds.ts'

const SHOWN_MAX = 10

/** The results of a run. */
export interface Result {
  seed: number
  took_ms: number
  rounds: Rounds
  traffic: Traffic
  acknowledged: { appends: number; entries: number; sessions: number }
  refused: number
  in_doubt: number
  /** Entries read by tails, and the connections that they took for it. */
  tailed: { entries: number; connections: number }
  /** How long the consumer of changes took to see everything after the last write. */
  consumed_ms: number
  learnt: ReturnType<Learning['figures']>
  edited: ReturnType<typeof editFigures>
  findings: Findings
  /** Other violations. */
  problems: string[]
  rss_max_mb: Record<string, number>
}

/** Whether there was no violation. */
export function passed({ findings, problems }: Result): boolean {
  return problems.length === 0 && Object.values(findings).every((list) => list.length === 0)
}

/** The report of a run, as text. */
export function report(result: Result): string {
  const { rounds, traffic, findings, acknowledged, tailed, learnt, edited } = result
  const { away } = rounds
  const kills = killsOf(rounds)
  const width = Math.max(...rounds.tallies.map(({ kind }) => kind.length))
  const back = Math.max(0, ...rounds.tallies.map(({ recovery_ms_max }) => recovery_ms_max))
  const awake = Math.max(0, ...rounds.tallies.map(({ awake_ms_max }) => awake_ms_max))
  const start = Math.max(0, ...rounds.tallies.map(({ start_ms_max }) => start_ms_max))
  const ms = (time: number) => (time > 0 ? `${Math.round(time)} ms` : '').padStart(8)
  const lines = [
    '',
    `${'fault'.padEnd(width)}  times  back after   with a CPU  a node started again (at most)`,
    ...rounds.tallies.map((tally) =>
      tally.skipped
        ? `${tally.kind.padEnd(width)}  skipped: ${tally.skipped}`
        : `${tally.kind.padEnd(width)}  ${String(tally.struck).padStart(5)}  ${ms(tally.recovery_ms_max).padStart(10)}  ${ms(tally.awake_ms_max).padStart(11)}  ${ms(tally.start_ms_max)}${
            tally.missed ? `  (${tally.missed} without an effect that was seen)` : ''
          }`,
    ),
    '',
    row('rounds', `${rounds.count} in ${Math.round(result.took_ms / 1_000)} s, ${kills} kills`),
    row('requests', `${traffic.requests} (${counts(traffic.by_status)})`),
    row(
      'acknowledged',
      `${acknowledged.appends} appends with ${acknowledged.entries} entries, ${acknowledged.sessions} sessions`,
    ),
    row('refused', `${result.refused} appends, ${result.in_doubt} in doubt and not sent again`),
    row('tailed', `${tailed.entries} entries over ${tailed.connections} connections`),
    row('consumed', `${Math.round(result.consumed_ms)} ms after the last write`),
    row(
      'learnt',
      `${learnt.sessions} sessions, with ${learnt.inputs} inputs in ${learnt.calls} calls of the model and ${learnt.versions} versions, ${Math.round(learnt.took_ms)} ms after the last write`,
    ),
    row(
      'edited',
      `${edited.retractions} retractions, ${edited.forks} forks, ${edited.blobs} blobs in ${edited.objects ? 'an object store' : 'the database'}, ${edited.expiring} sessions that expire`,
    ),
    row('lost', findings.lost.length),
    row('duplicated', findings.duplicated.length),
    row('reordered', findings.reordered.length),
    row('unasked', findings.unasked.length),
    row('broken', findings.broken.length),
    row(
      'back after',
      `${Math.round(back)} ms at most, ${Math.round(awake)} ms without the time in which no CPU was free; a node that was started again wrote ${Math.round(start)} ms after it was ready`,
    ),
    row(
      'database away',
      `${away.refused} answers 503, the slowest after ${Math.round(away.refused_ms_max)} ms, ${Math.round(away.refused_awake_ms_max)} ms with a CPU; ${away.unanswered} left unanswered, the slowest after ${Math.round(away.unanswered_ms_max)} ms${
        away.wrong.size > 0 ? `; ${counts(away.wrong)}` : ''
      }`,
    ),
    row(
      'memory',
      Object.entries(result.rss_max_mb)
        .map(([node, mb]) => `${node} ${mb} MB at most`)
        .join(', '),
    ),
    row('seed', `${result.seed}: --seed ${result.seed} runs it again`),
    ...Object.values(findings).flatMap(shown),
    ...shown(result.problems),
    passed(result) ? 'Everything that was acknowledged is there, once, in order.' : 'FAILED',
    '',
  ]
  return lines.join('\n')
}

function row(name: string, value: string | number): string {
  return `${name.padEnd(14)} ${value}`
}

function counts(map: Map<string, number>): string {
  return [...map]
    .sort()
    .map(([name, count]) => `${count} ${name}`)
    .join(', ')
}

function shown(list: string[]): string[] {
  const more = list.length - SHOWN_MAX
  return [...list.slice(0, SHOWN_MAX), ...(more > 0 ? [`… and ${more} more like these`] : [])].map(
    (line) => `! ${line}`,
  )
}
