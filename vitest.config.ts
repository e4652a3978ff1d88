import { statfsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { LEASE_MS } from './tests/harness/lease.ts'

const MEMORY = '/dev/shm'
const MEMORY_BYTES_MIN = 8 * 2 ** 30
try {
  // In memory, where there is plenty, no test waits for a disk. What a server loses with its disk is for torture to find out.
  const { bavail, bsize } = statfsSync(MEMORY)
  if (bavail * bsize >= MEMORY_BYTES_MIN) process.env.TMPDIR ??= MEMORY
} catch {
  // This system has no such place.
}

// The sources of the server in place of what was built of them, as tests import them: a class must not be there twice.
const ALIAS = [
  { find: /^annals\/dist\/(.*)\.js$/, replacement: `${import.meta.dirname}/packages/server/src/$1.ts` },
  { find: /^@annals\/kits\/(.*)\.js$/, replacement: `${import.meta.dirname}/packages/kits/src/$1.ts` },
]

// What files import is half a second's work for each that has a process of its own.
const SHARED_PROCESS = {
  isolate: false,
  setupFiles: ['tests/harness/leaves_nothing_faked.ts', 'tests/harness/bounded_properties.ts'],
}

/**
 * A timeout ends what hangs. A busy machine may be twenty times slower than a quiet one, so no test has a shorter one of its
 * own; and where files share a database, a test may wait for what another file's node had taken up (patient_waits.ts).
 */
const PATIENCE = { testTimeout: 300_000, hookTimeout: 300_000 }

const EMBEDDED = 'packages/embedded-postgres/test/**/*.test.ts'
/** Runs of frameworks whose process is killed: they take long, and rarely fail. */
const KILLED_RUNS = 'packages/adapters/*/test/killed*.test.ts'

/** Begun first, because the run would wait at its end for a file that waits longer than it works. Of others, the larger are first. */
const LONG = [
  'recall_with_vectors',
  'runs_with_images',
  'event_loop',
  'search_killed',
  'client_tail',
  'import_interrupted',
  'webhooks',
  'search',
  'console_accessibility',
  'model_failures',
  'agent_examples',
  'demo',
  'embedded_database',
  'embedded-postgres/test',
  'check_patterns',
]

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const sorted = await super.sort(files)
    const names = [...new Set(sorted.map(({ project }) => project.name))]
    const rank = ({ project, moduleId }: TestSpecification) =>
      names.indexOf(project.name) + (LONG.some((part) => moduleId.includes(`/${part}`)) ? 0 : names.length)
    return sorted.sort((a, b) => rank(a) - rank(b))
  }
}

/** What speaks to a service, or to its database. */
const ON_A_DATABASE = {
  isolate: false,
  setupFiles: [
    ...SHARED_PROCESS.setupFiles,
    'tests/harness/patient_waits.ts',
    'tests/harness/commands_end.ts',
  ],
  globalSetup: ['tests/harness/global_setup.ts'],
  ...PATIENCE,
  expect: { poll: { timeout: 60_000 + LEASE_MS } },
}

/**
 * `npm test` runs `unit`, which needs nothing, and `acceptance`, whose files share one service on a database server that
 * the global setup starts, or takes from TEST_DATABASE_URL. `npm run test:gate` and `npm run test:nightly` run the others.
 * tests/README.md says where a test belongs.
 */
export default defineConfig({
  test: {
    // Tests wait for processes and clocks for two thirds of their time.
    maxWorkers: 2 * availableParallelism() + 2,
    teardownTimeout: 30_000,
    sequence: { sequencer: LongFirst },
    projects: [
      {
        resolve: { alias: ALIAS },
        test: {
          name: 'unit',
          ...SHARED_PROCESS,
          include: ['{packages/*,torture,fuzz,siege}/test/**/*.test.ts'],
          exclude: [EMBEDDED],
          ...PATIENCE,
        },
      },
      {
        resolve: { alias: ALIAS },
        test: { name: 'acceptance', ...ON_A_DATABASE, include: ['tests/{acceptance,database}/**/*.test.ts'] },
      },
      {
        resolve: { alias: ALIAS },
        test: {
          name: 'gate',
          ...ON_A_DATABASE,
          include: ['tests/{gate,console}/**/*.test.ts', 'packages/adapters/*/test/**/*.test.ts'],
          exclude: [KILLED_RUNS],
        },
      },
      {
        resolve: { alias: ALIAS },
        test: { name: 'nightly', ...ON_A_DATABASE, include: ['tests/nightly/**/*.test.ts', KILLED_RUNS] },
      },
      {
        test: {
          name: 'gate-embedded',
          ...SHARED_PROCESS,
          include: [EMBEDDED],
          globalSetup: ['packages/embedded-postgres/test/prepared_clusters.ts'],
          ...PATIENCE,
        },
      },
    ],
  },
})
