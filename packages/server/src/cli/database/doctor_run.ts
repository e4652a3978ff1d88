import { diagnose, type OpenDatabase } from '../../doctor/diagnose.js'
import type { Diagnosis, State } from '../../doctor/diagnosis.js'
import { workOnDatabase } from '../../service/work_on_database.js'
import { EXIT_CODES } from '../exit_codes.js'
import { painter } from '../terminal/paint.js'
import { visible } from '../terminal/visible.js'
import { tellProgress } from './with_database.js'

/** What the command line says of a diagnosis. */
export interface DoctorOptions {
  json?: boolean
  workers?: number
}

/** What the service has as well; a diagnosis must end even if a catalogue is large. */
const open: OpenDatabase = (config, work) =>
  workOnDatabase(config, tellProgress, work, { schema: 'any', wait_ms_max: 10_000, statement_ms_max: 60_000 })

/** Diagnoses, prints what was found, and sets the exit code. */
export async function runDoctor(options: DoctorOptions): Promise<void> {
  const checks = await diagnose(process.env, open, options.workers)
  const countOf = (state: State) => checks.filter((check) => check.state === state).length
  const failures = countOf('failure')
  const warnings = countOf('warning')
  if (options.json) {
    process.stdout.write(`${JSON.stringify({ healthy: failures === 0, failures, warnings, checks })}\n`)
  } else {
    print(checks)
    process.stdout.write(`\n${checks.length} checks: ${failures} failures, ${warnings} warnings.\n`)
  }
  if (failures > 0) process.exitCode = EXIT_CODES.failed
}

const STYLE = { ok: 'green', warning: 'yellow', failure: 'red', skipped: 'dim' } as const

/** One line per check, followed by what to do, if anything. */
function print(checks: Diagnosis[]): void {
  const paint = painter(process.stdout)
  const width = Math.max(...checks.map(({ check }) => check.length))
  const indent = ' '.repeat('failure'.length + 2 + width + 2)
  for (const { check, state, found, todo } of checks) {
    const label = paint(STYLE[state], state.padEnd('failure'.length))
    process.stdout.write(`${label}  ${check.padEnd(width)}  ${visible(found)}\n`)
    if (todo !== undefined) process.stdout.write(`${indent}→ ${visible(todo)}\n`)
  }
}
