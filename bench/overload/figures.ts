import { median } from '../../lab/statistics.ts'
import type { CpuUsed } from '../cpu.ts'
import type { Answers, OfferResult } from './offer.ts'
import type { Line } from './report.ts'

/** How many times as long a quiet tenant may wait beside one at full speed as alone. */
const QUIET_TIMES_MAX = 2

/** What a run saw, as it came. */
export interface Seen {
  /** Connections that were open and hardly used, what became of their requests, and what a prober saw beside them. */
  idle: number
  held: OfferResult
  beyond: OfferResult
  idle_mb: number
  capacity: number
  /** Of each round. */
  alone: Answers[]
  beside: Answers[]
  /** Of the same without Annals, where that could be measured. */
  bareAlone: Answers[]
  bareBeside: Answers[]
  before: OfferResult[]
  after: OfferResult[]
  crowd: OfferResult[]
  /** The crowd's tenants, and the quiet one, as their probers saw the overload. */
  probed: OfferResult
  quietly: OfferResult
  used: CpuUsed | undefined
  rss_mb: number
  /** Of the overload's time, the share in which the service could have run and got no processor. */
  waited: number
}

/** The figures of a run, in the order in which they are told. */
export function lines(seen: Seen): Line[] {
  return [
    ...ofTheCrowd(seen),
    ...ofMemoryAndIdleConnections(seen),
    ...ofTheQuietTenant(seen),
    ...ofTheTimeAfter(seen),
    ...ofProcessors(seen),
  ]
}

function ofTheCrowd({ capacity, crowd, probed, quietly }: Seen): Line[] {
  const { seconds } = crowd[0]!
  const answered = (accepted: boolean) =>
    total(crowd, ({ answers }) =>
      Object.entries(answers).reduce(
        (sum, [status, { requests }]) => sum + ((status === '200') === accepted ? requests : 0),
        0,
      ),
    )
  const refused = Object.entries(probed.answers).filter(([status]) => status === '503' || status === '429')
  const odd = [...crowd, probed, quietly].flatMap(({ answers }) =>
    Object.entries(answers).filter(([status]) => !['200', '429', '503'].includes(status)),
  )
  return [
    { name: 'what it can take', unit: '/s', value: capacity },
    { name: 'due', unit: '/s', value: total(crowd, ({ due }) => due) / seconds },
    { name: 'sent, as connections were free', unit: '/s', value: total(crowd, ({ sent }) => sent) / seconds },
    { name: 'accepted', unit: '/s', value: answered(true) / seconds },
    { name: 'refused', unit: '/s', value: answered(false) / seconds },
    { name: 'p99 of what was accepted', unit: 'ms', value: p99([probed.answers['200']!]), at_most: 500 },
    {
      name: 'p99 until refused',
      unit: 'ms',
      value: refused.length > 0 ? p99(refused.map(([, answers]) => answers)) : 0,
      at_most: 100,
    },
    {
      name: `neither accepted nor refused${odd.length > 0 ? ` (${[...new Set(odd.map(([status]) => status))].join(', ')})` : ''}`,
      unit: '',
      value: odd.reduce((sum, [, { requests }]) => sum + requests, 0),
      at_most: 0,
    },
  ]
}

function ofMemoryAndIdleConnections(seen: Seen): Line[] {
  return [
    { name: 'highest RSS of the service', unit: 'MB', value: seen.rss_mb, at_most: 400 },
    {
      name: `beside ${seen.idle} idle connections, p99`,
      unit: 'ms',
      value: p99([seen.beyond.answers['200']!]),
      at_most: 500,
    },
    {
      name: 'their requests that were not answered with 200',
      unit: '',
      value: failures(seen.held),
      at_most: 0,
    },
    { name: 'RSS with them', unit: 'MB', value: seen.idle_mb, at_most: 400 },
  ]
}

function ofTheQuietTenant({ alone, beside, bareAlone, bareBeside, probed, quietly, waited }: Seen): Line[] {
  const bare = bareAlone.length > 0 ? aloneAndBeside('bare INSERTs', bareAlone, bareBeside) : []
  // Where PostgreSQL alone makes its callers wait many times as long, half of that is what can be asked for.
  const bare_times = bare.at(-1)?.value ?? 0
  return [
    ...aloneAndBeside('quiet tenant', alone, beside, Math.max(QUIET_TIMES_MAX, bare_times / 2)),
    ...bare,
    {
      name: 'the probers’ own wait for a processor in the overload, p99',
      unit: 'ms',
      value: probed.late_p99_ms,
    },
    { name: 'the service’s own, of the time', unit: '%', value: 100 * waited },
    { name: 'quiet tenant in the overload, p99', unit: 'ms', value: p99([quietly.answers['200']!]) },
    {
      name: 'quiet tenant in the overload, refused',
      unit: '%',
      value: 100 * (1 - quietly.answers['200']!.requests / quietly.sent),
    },
  ]
}

/** Whoever wants little: alone, beside somebody at full speed, and how many times as long it takes then. */
function aloneAndBeside(who: string, alone: Answers[], beside: Answers[], at_most?: number): Line[] {
  const p99s = (rounds: Answers[]) => rounds.map(({ p99_ms }) => p99_ms)
  const alone_ms = p99s(alone)
  const beside_ms = p99s(beside)
  return [
    { name: `${who} alone, p99 (${spread(alone_ms)})`, unit: 'ms', value: median(alone_ms) },
    { name: `… beside full speed, p99 (${spread(beside_ms)})`, unit: 'ms', value: median(beside_ms) },
    {
      name: '… ratio of the two',
      unit: '×',
      value: median(beside_ms) / median(alone_ms),
      ...(at_most !== undefined && { at_most }),
    },
  ]
}

function ofTheTimeAfter({ before, after }: Seen): Line[] {
  const rate = ([load]: OfferResult[]) => load!.answers['200']!.requests / load!.seconds
  return [
    {
      name: 'half of what it can take: p99 before',
      unit: 'ms',
      value: p99([before[1]!.answers['200']!]),
    },
    { name: 'p99 5 s after', unit: 'ms', value: p99([after[1]!.answers['200']!]) },
    { name: 'accepted before', unit: '/s', value: rate(before) },
    { name: 'accepted 5 s after', unit: '/s', value: rate(after) },
    { name: 'accepted before ÷ after', unit: '×', value: rate(before) / rate(after), at_most: 1.1 },
  ]
}

function ofProcessors({ used, crowd }: Seen): Line[] {
  if (!used) return []
  const share = (us: number) => (100 * us) / used.capacity_us
  const load_us = total(crowd, ({ cpu_us }) => cpu_us)
  return [
    { name: 'of all processors in the overload: service', unit: '%', value: share(used.service_us) },
    { name: '… PostgreSQL', unit: '%', value: share(used.postgres_us) },
    { name: '… the load', unit: '%', value: share(load_us) },
    {
      name: '… others',
      unit: '%',
      value: share(used.machine_us - used.service_us - used.postgres_us - load_us),
    },
  ]
}

function p99(answers: Answers[]): number {
  return Math.max(...answers.map(({ p99_ms }) => p99_ms))
}

function spread(values: number[]): string {
  const told = [Math.min(...values), Math.max(...values)].map((value) => value.toFixed(1))
  return `${told.join(' to ')} in ${values.length} rounds`
}

function total(offers: OfferResult[], count: (offered: OfferResult) => number): number {
  return offers.reduce((sum, offered) => sum + count(offered), 0)
}

function failures({ answers }: OfferResult): number {
  return Object.entries(answers).reduce(
    (sum, [status, { requests }]) => sum + (status === '200' ? 0 : requests),
    0,
  )
}
