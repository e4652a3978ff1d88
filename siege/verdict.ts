import { percentile } from '../lab/statistics.ts'
import type { Allowed } from './attackers/attack.ts'
import type { Answers } from './attackers/ground.ts'
import type { Deed } from './victim/victim.ts'

/** The limits that must hold under every attack. */
export const BOUNDS = {
  success_min: 0.99,
  loop_ms_max: 100,
  // As docs/operations.md promises: the heap, and what lies outside of it: sockets, buffers, code, the heap of the thread for large bodies.
  rss_mb_max: 550,
  /** What may remain after an attack, in memory and open files: caches fill, pools open connections. */
  kept_mb_more_max: 48,
  files_more_max: 32,
}

/** What was observed during an attack and until the service had recovered. */
export interface Seen {
  attack: string
  deeds: Deed[]
  /** For each block of the event loop: its duration, and how long its thread ran on a processor meanwhile, in ms. */
  stood: Array<{ stood_ms: number; cpu_ms: number; waited_ms: number }>
  rss_max_mb: number
  /** More than before all attacks; undefined where it could not be seen. */
  kept_mb_more: number | undefined
  files_more: number
  answers: Answers
  allowed: readonly Allowed[]
  /** ms after the attack until everything was as before; undefined if never. */
  recovered_ms: number | undefined
  /** Errors in the service's log, by message: an attack over connections should cause none. */
  errors: Record<string, number>
  /** The process ended by itself. */
  hasFallen: boolean
  /** What else went wrong, in a sentence each. */
  problems: string[]
}

/** An attack's figures, and the limits that were exceeded, in words. */
export interface Judged {
  attack: string
  success: number
  asked: number
  p50_ms: number
  p99_ms: number
  /** The same without what the machine cost. */
  p99_awake_ms: number
  loop_ms: number
  loop_stood_ms: number
  rss_max_mb: number
  recovered_ms: number | undefined
  answers: Answers
  failures: Record<string, number>
  broken: string[]
}

export function judge(seen: Seen): Judged {
  const { deeds } = seen
  const good = deeds.filter(({ isGood }) => isGood)
  const success = deeds.length === 0 ? 0 : good.length / deeds.length
  const times = Float64Array.from(deeds.map(({ took_ms }) => took_ms)).sort()
  const awake = Float64Array.from(
    deeds.map(({ took_ms, starved_ms }) => Math.max(0, took_ms - starved_ms)),
  ).sort()
  const loop_ms = Math.max(0, ...seen.stood.map(({ cpu_ms }) => cpu_ms))
  return {
    attack: seen.attack,
    success,
    asked: deeds.length,
    p50_ms: times.length > 0 ? percentile(times, 0.5) : 0,
    p99_ms: times.length > 0 ? percentile(times, 0.99) : 0,
    p99_awake_ms: awake.length > 0 ? percentile(awake, 0.99) : 0,
    loop_ms,
    loop_stood_ms: Math.max(0, ...seen.stood.map(({ stood_ms }) => stood_ms)),
    rss_max_mb: seen.rss_max_mb,
    recovered_ms: seen.recovered_ms,
    answers: seen.answers,
    failures: failuresOf(deeds),
    broken: brokenBounds(seen, success, loop_ms),
  }
}

/**
 * Whether only the loop stood, and not for long: a full collection of the heap may come at a bad moment, but an attack
 * that causes it causes it again.
 */
export function mayBeChance({ broken, loop_ms }: Pick<Judged, 'broken' | 'loop_ms'>): boolean {
  return broken.length === 1 && loop_ms >= BOUNDS.loop_ms_max && loop_ms < 2 * BOUNDS.loop_ms_max
}

function brokenBounds(seen: Seen, success: number, loop_ms: number): string[] {
  const broken: string[] = []
  if (seen.hasFallen) broken.push('the process ended')
  if (!(success >= BOUNDS.success_min))
    broken.push(
      `the other tenant had ${(success * 100).toFixed(1)} % success (${inWords(failuresOf(seen.deeds)) || 'it could not even ask'})`,
    )
  if (loop_ms >= BOUNDS.loop_ms_max) broken.push(`the event loop stood for ${Math.round(loop_ms)} ms`)
  if (seen.rss_max_mb > BOUNDS.rss_mb_max) broken.push(`${seen.rss_max_mb} MB of memory`)
  const unasked = Object.keys(seen.answers).filter((answer) => !isAllowed(answer, seen.allowed))
  for (const answer of unasked) broken.push(`attackers were answered ${answer} ${seen.answers[answer]} times`)
  for (const [message, count] of Object.entries(seen.errors))
    broken.push(`it logged ${count} times as an error: ${message.slice(0, 200)}`)
  if (seen.recovered_ms === undefined) broken.push('not itself again afterwards')
  if ((seen.kept_mb_more ?? 0) > BOUNDS.kept_mb_more_max) broken.push(`kept ${seen.kept_mb_more} MB`)
  if (seen.files_more > BOUNDS.files_more_max) broken.push(`kept ${seen.files_more} files and connections`)
  return [...broken, ...seen.problems]
}

function isAllowed(answer: string, allowed: readonly Allowed[]): boolean {
  // A client that disconnects before the answer has not been answered.
  return answer === 'unanswered' || allowed.some((each) => String(each) === answer)
}

function failuresOf(deeds: Deed[]): Record<string, number> {
  const failures: Record<string, number> = {}
  for (const { what, outcome, isGood } of deeds) {
    if (isGood) continue
    const failure = `${what} ${outcome === 200 ? 'late' : outcome}`
    failures[failure] = (failures[failure] ?? 0) + 1
  }
  return failures
}

/** Counts, the most frequent first. */
export function inWords(counts: Record<string, number>): string {
  return Object.entries(counts)
    .sort(([, one], [, other]) => other - one)
    .map(([name, count]) => `${count} × ${name}`)
    .join(', ')
}
