import type { Diagnosis, OpenDatabase, State } from '@annals/archive'
import { Command } from 'commander'
import { EXIT_CODES } from '../exit_codes.js'
import { parseWorkers } from '../service/serve.js'
import { painter } from '../terminal/paint.js'
import { visible, visibleJson } from '../terminal/visible.js'
import { tellProgress } from './with_database.js'

/** annals doctor */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description('Check the machine, the database and the settings, and explain how to fix each finding.')
    .option('--workers <count>', 'assume this many workers', parseWorkers)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Run it on the service's machine, as the same user and with the same environment. It changes nothing, and can run
while the service does. It exits with 1 if a check fails; warnings do not count as failures.

Examples:
  annals doctor
  annals doctor --workers 4
  annals doctor --json | jq '.checks[] | select(.state == "failure")'`,
    )
    .action(runDoctor)
}

/** Prints a diagnosis. */
interface DoctorOptions {
  json?: boolean
  workers?: number
}

/** Diagnoses, prints what was found, and sets the exit code. */
async function runDoctor(options: DoctorOptions): Promise<void> {
  const { diagnose } = await import('@annals/archive')
  const { workOnDatabase } = await import('./work_on_database.js')
  // The service's own limit; a diagnosis must end even if a catalogue is large.
  const limits = { schema: 'any', wait_ms_max: 10_000, statement_ms_max: 60_000 } as const
  const open: OpenDatabase = (config, work) => workOnDatabase(config, tellProgress, work, limits)
  const checks = await diagnose(process.env, open, options.workers)
  const countOf = (state: State) => checks.filter((check) => check.state === state).length
  const failures = countOf('failure')
  const warnings = countOf('warning')
  if (options.json) {
    const diagnosis = JSON.stringify({ healthy: failures === 0, failures, warnings, checks })
    process.stdout.write(`${visibleJson(diagnosis)}\n`)
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
