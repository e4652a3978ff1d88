import { readFile } from 'node:fs/promises'
import { cpus, platform, release, totalmem } from 'node:os'
import { median } from '../lab/statistics.ts'
import type { Figure } from './part.ts'
import type { PostgresServer } from './postgres.ts'
import { ROOT } from './root.ts'

/** What a run leaves behind, as JSON. */
export interface Results {
  annals: string
  node: string
  postgres: { version: string; kind: string; settings: Record<string, string> }
  machine: { cpus: number; model: string; memory_gb: number; os: string }
  parts: Record<string, PartResult>
}

/** One part's share of them. */
export interface PartResult {
  ran_at: string
  took_s: number
  /** How much of the processors programs used that are no part of the benchmark; undefined where there is no /proc. */
  others_share?: number
  options: { quick: boolean; full: boolean; rounds: number; seconds: number }
  figures: MeasuredFigure[]
  details: Record<string, unknown>
}

/** A figure with what its values come to; undefined where there are none. */
export interface MeasuredFigure extends Figure {
  value?: number
  low?: number
  high?: number
  verdict: Verdict
}

export type Verdict = 'meets the aim' | 'holds' | 'MISSES' | 'not measured' | ''

/** Adds the median, the spread and the verdict. A short run gives no verdict. */
export function judge(figure: Figure, quick: boolean): MeasuredFigure {
  if (figure.values.length === 0) return { ...figure, verdict: 'not measured' }
  const value = median(figure.values)
  const spread = { low: Math.min(...figure.values), high: Math.max(...figure.values) }
  return { ...figure, value, ...spread, verdict: quick ? '' : verdictOf(figure, value) }
}

function verdictOf({ at_least, aim, better }: Figure, value: number): Verdict {
  const reaches = (bound: number) => (better === 'higher' ? value >= bound : value <= bound)
  if (aim !== undefined && reaches(aim)) return 'meets the aim'
  if (at_least === undefined) return ''
  return reaches(at_least) ? 'holds' : 'MISSES'
}

/** Where a run takes place. */
export async function describeRun(server: PostgresServer): Promise<Omit<Results, 'parts'>> {
  const { version } = JSON.parse(await readFile(`${ROOT}packages/server/package.json`, 'utf8'))
  return {
    annals: version,
    node: process.versions.node,
    postgres: await server.describe(),
    machine: {
      cpus: cpus().length,
      model: cpus()[0]?.model.trim() ?? 'unknown',
      memory_gb: Math.round(totalmem() / 2 ** 30),
      os: `${platform()} ${release()}`,
    },
  }
}
