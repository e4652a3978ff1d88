import { Command } from 'commander'
import { parseWorkers } from '../service/serve.js'
import type { DoctorOptions } from './doctor_run.js'

/** annals doctor */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description('Check the machine, the database and the settings, and say how to fix each finding.')
    .option('--workers <count>', 'assume this many workers', parseWorkers)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Run it on the service's machine, as the same user and with the same environment. It changes nothing and can run
beside the service. It exits with 1 if a check fails; warnings do not count as failures.

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
