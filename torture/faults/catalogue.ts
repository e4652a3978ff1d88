import { CLOCK_FAULTS } from './clocks.ts'
import type { Fault } from './fault.ts'
import { MIGRATION_FAULTS } from './migrations.ts'
import { NETWORK_FAULTS } from './network.ts'
import { PRESSURE_FAULTS } from './pressure.ts'
import { PROCESS_FAULTS } from './processes.ts'
import { RESTART_FAULTS } from './restarts.ts'

/** Every fault that there is, by the name under which it is reported and chosen. */
export const FAULTS: Fault[] = [
  ...PROCESS_FAULTS,
  ...RESTART_FAULTS,
  ...PRESSURE_FAULTS,
  ...NETWORK_FAULTS,
  ...CLOCK_FAULTS,
  ...MIGRATION_FAULTS,
]
