import { createReadStream, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { type Conflict, checkExport, ExportReader, importExport, type Tallies } from '@annals/archive'
import { StartError } from '@annals/kits/errors.js'
import { registryOf } from '@annals/kits/lifecycle/registry.js'
import type { Database } from '@annals/kits/postgres/database.js'
import { findProject } from 'annals/dist/projects/projects.js'
import type { UsageDays } from 'annals/dist/projects/usage.js'
import { MODULES } from 'annals/dist/service/modules.js'
import { EXIT_CODES } from '../exit_codes.js'
import { countsOf } from '../terminal/count.js'
import { withProgress } from '../terminal/progress.js'

/** Prints the result of an import. */
export interface ImportOptions {
  project?: string
  dryRun?: boolean
}

const READ_BYTES = 1024 * 1024

/** Runs `annals import`. */
export async function runImport(
  { database, usage }: { database: Database; usage: UsageDays },
  file: string,
  { project, dryRun: dry_run = false }: ImportOptions,
  signal: AbortSignal,
  stdin?: AsyncIterable<Buffer>,
): Promise<void> {
  const project_id = await findProject(database, project)
  const { tables } = registryOf(MODULES)
  // A pipe can only be read once; a file is read to its end before anything of it is stored.
  if (await isRegularFile(file))
    await over('Checking', file, stdin, (source, onProgress) =>
      checkExport(new ExportReader(source, tables), signal, onProgress),
    )
  let conflicts = 0
  const tallies = await over(
    dry_run ? 'Comparing' : 'Importing',
    file,
    stdin,
    async (source, onProgress, say) => {
      const options = { project_id, dry_run, signal, onProgress }
      const onConflict = ({ kind, id, reason }: Conflict) =>
        say(`annals: conflict: ${kind} ${id}: ${reason}. It is left unchanged.`)
      const reader = new ExportReader(source, tables)
      const onStored = (tallies: Tallies) => usage.addImported(project_id, tallies)
      const totals = await importExport(database, reader, { ...options, tables, onConflict, onStored })
      conflicts = totals.conflicts
      return totals.tallies
    },
  )
  const what = (key: 'stored' | 'known') =>
    countsOf(Object.fromEntries(Object.entries(tallies).map(([name, tally]) => [name, tally[key]]))).join(
      ', ',
    )
  const verb = dry_run ? 'Would import' : 'Imported'
  process.stdout.write(`${verb} ${what('stored')}.\nAlready there: ${what('known')}.\n`)
  if (conflicts === 0) return
  process.stderr.write(
    `annals: ${conflicts} of the file exist with different content and were not imported.\n`,
  )
  process.exitCode = EXIT_CODES.failed
}

async function over<T>(
  task: string,
  file: string,
  stdin: AsyncIterable<Buffer> | undefined,
  work: (
    source: AsyncIterable<Buffer>,
    onProgress: (bytes: number) => void,
    say: (sentence: string) => void,
  ) => Promise<T>,
): Promise<T> {
  const { source, bytes } = await openSource(file, stdin)
  return withProgress(task, 'bytes', bytes, ({ update, say }) =>
    work(source, (done) => update(done, done), say),
  )
}

/** A file's bytes, and how many they are; 0 if unknown. */
async function openSource(
  file: string,
  stdin: AsyncIterable<Buffer> | undefined,
): Promise<{ source: AsyncIterable<Buffer>; bytes: number }> {
  if (file === '-') return { source: stdin ?? process.stdin, bytes: 0 }
  const found = await describe(file)
  return {
    source: createReadStream(file, { highWaterMark: READ_BYTES }),
    bytes: found.isFile() ? found.size : 0,
  }
}

async function isRegularFile(file: string): Promise<boolean> {
  return file !== '-' && (await describe(file)).isFile()
}

/** @throws StartError if it is not there, or is a directory */
export async function describe(file: string): Promise<Stats> {
  try {
    const found = await stat(file)
    if (found.isDirectory()) throw new Error('it is a directory')
    return found
  } catch (error) {
    throw new StartError(`${file} cannot be read (${(error as Error).message}).`, { cause: error })
  }
}
