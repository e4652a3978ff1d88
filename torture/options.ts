import { parseArgs } from 'node:util'
import { CLUSTER_FAULTS, FAULTS } from './faults/catalogue.ts'
import type { Fault } from './faults/fault.ts'
import type { World } from './world/world.ts'

/** The options of `npm run torture`. */
export interface Options {
  seed: number
  /** When the last fault begins, from the start; undefined: each occurs as often as a full run requires. */
  minutes: number | undefined
  /** Every fault, as often as it is meant to come: then the bounds of a full run hold. */
  isFull: boolean
  faults: Fault<World>[]
  keepLogs: boolean
  /** The folder of PostgreSQL's programs; undefined: those that npm installed. */
  bin: string | undefined
  /** A superuser's URL of a fresh database on the coordinator of a Citus cluster; undefined: a PostgreSQL of its own. */
  cluster: string | undefined
}

/** What follows the last fault (its recovery, the comparison, annals verify) takes the rest of the 2 minutes. */
const SHORT_MINUTES = 1.75

const USAGE = `npm run torture -- [options]

  --short         2 minutes, without the faults that take long
  --minutes <n>   no fault begins after so many minutes; without it, until each has come as often as it is meant to
  --seed <n>      the same faults in the same order, and the same choices of the clients, as an earlier run
  --faults <a,b>  only faults whose names contain one of these
  --bin <folder>  PostgreSQL's programs, such as /usr/lib/postgresql/15/bin; without it, those that npm installed
  --cluster <url> on a Citus cluster whose workers are processes of this machine, which it kills and starts again: a
                  superuser's URL of a fresh database on the coordinator; run it as root
  --keep-logs     leaves the logs of nodes and database where they are
  --help

Faults: ${FAULTS.map(({ kind }) => kind).join('; ')}.
On a cluster: ${CLUSTER_FAULTS.map(({ kind }) => kind).join('; ')}.
`

/** Reads the command line; undefined when it asked for help, which is printed. */
export function readOptions(args: string[]): Options | undefined {
  const { values } = parseArgs({
    args,
    options: {
      short: { type: 'boolean', default: false },
      minutes: { type: 'string' },
      seed: { type: 'string' },
      faults: { type: 'string' },
      bin: { type: 'string' },
      cluster: { type: 'string' },
      'keep-logs': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(USAGE)
    return undefined
  }
  const { short, bin, cluster } = values
  if (bin && cluster) throw new Error('--bin is for a PostgreSQL of the run, not for a cluster')
  const minutes = values.minutes === undefined ? (short ? SHORT_MINUTES : undefined) : number(values.minutes)
  return {
    seed: values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : number(values.seed),
    minutes,
    isFull: minutes === undefined && values.faults === undefined && cluster === undefined,
    faults: chosen(cluster ? CLUSTER_FAULTS : FAULTS, values.faults).filter(({ long }) => !(short && long)),
    keepLogs: values['keep-logs'],
    bin,
    cluster,
  }
}

function number(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value) || value < 0) throw new Error(`${text} is not a number`)
  return value
}

function chosen(all: Fault<World>[], names: string | undefined): Fault<World>[] {
  if (names === undefined) return all
  const words = names.split(',').map((word) => word.trim())
  const faults = all.filter(({ kind }) => words.some((word) => kind.includes(word)))
  if (faults.length === 0) throw new Error(`No fault is named like ${names}; --help lists them`)
  return faults
}
