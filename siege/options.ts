import { parseArgs } from 'node:util'
import { LabFailure } from '../lab/failure.ts'
import { ATTACKS } from './attacks/catalogue.ts'
import { TRIALS } from './trials/catalogue.ts'

/** What a run of `npm run siege` was asked to do. */
export interface Options {
  seed: number
  isShort: boolean
  /** Names of attacks, in the order in which they come. */
  attacks: string[]
  /** A file for all figures. */
  json: string | undefined
  /** The command of the build that is attacked, instead of this one. */
  bin: string | undefined
  keepLogs: boolean
}

const ALL = [...ATTACKS, ...TRIALS]
const NAMES = ALL.map(({ name }) => name)

const USAGE = `npm run siege -- [options]

Attacks a service of its own, with small limits, in every way in which it was once brought down, and watches another
tenant, the event loop, the memory, and what that tenant was told is stored.

  --short          3 minutes at most; by default each attack is longer and harder
  --attack <name>  only this one; may be given more than once
  --seed <n>       the same choices of the attackers as in an earlier run
  --json <file>    writes all figures there
  --bin <file>     attacks another build: the path of its packages/server/bin/annals.js
  --keep-logs      leaves the service's log and data where they are
  --help

Attacks:
${ALL.map(({ name, does }) => `  ${name}: ${does}`).join('\n')}

Exit code 1 when a bound was broken.
`

/** Reads the command line; undefined when it asked for help, which is printed. */
export function readOptions(args: string[]): Options | undefined {
  const { values } = parseArgs({
    args,
    options: {
      short: { type: 'boolean', default: false },
      attack: { type: 'string', multiple: true },
      seed: { type: 'string' },
      json: { type: 'string' },
      bin: { type: 'string' },
      'keep-logs': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(USAGE)
    return undefined
  }
  for (const name of values.attack ?? [])
    if (!NAMES.includes(name)) throw new LabFailure(`There is no attack ${name}; --help lists them.`)
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed)
  if (!Number.isSafeInteger(seed)) throw new LabFailure('--seed takes an integer.')
  return {
    seed,
    isShort: values.short,
    attacks: values.attack ?? NAMES,
    json: values.json,
    bin: values.bin,
    keepLogs: values['keep-logs'],
  }
}
