import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

// What files import is half a second's work for each that has a process of its own.
const SHARED_PROCESS = { isolate: false, setupFiles: ['tests/harness/leaves_nothing_faked.ts'] }

/**
 * Two suites in one run. The unit suite needs nothing; the acceptance suite needs a database server, which
 * its global setup starts once, or takes from TEST_DATABASE_URL.
 */
export default defineConfig({
  test: {
    // Tests wait for processes and clocks most of their time.
    maxWorkers: 2 * availableParallelism(),
    teardownTimeout: 30_000,
    projects: [
      {
        test: {
          name: 'unit',
          ...SHARED_PROCESS,
          globalSetup: ['packages/server/test/postgres/embedded/prepared_clusters.ts'],
          include: [
            'packages/*/test/**/*.test.ts',
            'torture/test/**/*.test.ts',
            'fuzz/test/**/*.test.ts',
            'siege/test/**/*.test.ts',
          ],
          testTimeout: 30_000,
          hookTimeout: 90_000,
        },
      },
      {
        test: {
          name: 'acceptance',
          ...SHARED_PROCESS,
          include: ['tests/**/*.test.ts', 'packages/adapters/*/test/**/*.test.ts'],
          globalSetup: ['tests/harness/global_setup.ts'],
          testTimeout: 30_000,
          hookTimeout: 90_000,
          expect: { poll: { timeout: 15_000 } },
        },
      },
    ],
  },
})
