import type { BenchDatabase } from './postgres.ts'
import type { Service } from './service.ts'

/** One part of the benchmark: a few figures about one thing. It stands in the list in `main.ts`. */
export interface Part {
  /** Its name on the command line and in the table. */
  name: string
  /** One line for `--help`. */
  describe: string
  run(ctx: BenchContext): Promise<Figure[]>
}

export type Unit = 'ratio' | 'µs' | 'ms' | 's' | 'MB' | '/s' | 'bytes of WAL'

/** One line of the table. */
export interface Figure {
  name: string
  unit: Unit
  better: 'higher' | 'lower'
  /** One value a round, none where it could not be measured; the table shows their median, lowest and highest. */
  values: number[]
  /** What must hold, and what we would like: bounds from below or above, as `better` says. */
  at_least?: number
  aim?: number
  /** What a reader must know, or why there are no values. */
  note?: string
  /** The docs' table and chart show the figures that have bounds; false leaves one to the JSON. */
  charted?: boolean
}

/** What a part works with. What it starts and creates ends with the part, also when the part throws. */
export interface BenchContext {
  /** Only to see that it works: little data, short runs, figures that mean nothing. */
  readonly quick: boolean
  /** Also what takes long: tens of millions of rows. */
  readonly full: boolean
  /** Whether by-hand is measured by wrk. */
  readonly wrk: boolean
  readonly rounds: number
  /** How long each measured run takes. */
  readonly seconds: number
  /** A private directory, for anything. */
  readonly directory: string
  /** A database of its own, migrated, on the server that all parts share. */
  createDatabase(): Promise<BenchDatabase>
  /** A process of the service on a database, with its default settings and `env`. Several may share one. */
  startService(database: BenchDatabase, env?: Record<string, string>): Promise<Service>
  /** How many to make where figures are wanted of this many: a twentieth of them if it only has to work. */
  some(count: number): number
  /** What the first rounds would otherwise measure. Nothing where figures mean nothing. */
  warmUp(work: () => Promise<unknown>): Promise<void>
  /** Registers what must happen when the part ends; last one first. */
  atEnd(step: () => unknown): void
  /** Says on stderr what is going on. */
  say(sentence: string): void
  /** Keeps details beside the figures, in the JSON only. */
  detail(name: string, value: unknown): void
}
