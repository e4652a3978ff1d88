import { Command } from 'commander'
import { parseWorkers } from './serve.js'

/** What the command line says of a diagnosis. */
export interface DoctorOptions {
  json?: boolean
  workers?: number
}

/** annals doctor */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description('Check what Annals stands on, and say what to do about each finding.')
    .option('--workers <count>', 'count the connections of a node that is run so', parseWorkers)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Run it where and as whom the service runs, with the same environment. It changes nothing, and may run beside the
service. Ends with 0 unless something fails, with 1 if so; a warning is no failure.

Examples:
  annals doctor
  annals doctor --workers 4
  annals doctor --json | jq '.checks[] | select(.state == "failure")'`,
    )
    .action(async (options: DoctorOptions) => {
      const { runDoctor } = await import('./doctor_run.js')
      await runDoctor(options)
    })
}
