import type { ClusterWorld } from '../world/world.ts'
import { CLOCK_FAULTS } from './clocks.ts'
import type { Fault } from './fault.ts'
import { MIGRATION_FAULTS } from './migrations.ts'
import { NETWORK_FAULTS } from './network.ts'
import { PRESSURE_FAULTS } from './pressure.ts'
import { NODE_FAULTS, PROCESS_FAULTS } from './processes.ts'
import { RESTART_FAULTS } from './restarts.ts'
import { WORKER_FAULTS } from './workers.ts'

/** Every fault of a run with a PostgreSQL of its own, by the name under which it is reported and chosen. */
export const FAULTS: Fault[] = [
  ...NODE_FAULTS,
  ...PROCESS_FAULTS,
  ...RESTART_FAULTS,
  ...PRESSURE_FAULTS,
  ...NETWORK_FAULTS,
  ...CLOCK_FAULTS,
  ...MIGRATION_FAULTS,
]

/** Those of a run on a Citus cluster, which kills no coordinator. */
export const CLUSTER_FAULTS: Fault<ClusterWorld>[] = [...WORKER_FAULTS, ...NODE_FAULTS, ...NETWORK_FAULTS]
