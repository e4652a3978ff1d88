import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** A directory that goes with the run, for clusters that tests copy; see `Trial.prepare`. */
    preparedClusters: string
  }
}

export default async function providePreparedClusters(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'annals-prepared-'))
  project.provide('preparedClusters', directory)
  return () => rm(directory, { recursive: true, force: true })
}
