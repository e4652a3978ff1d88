import { createReadStream, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { StartError } from '../../errors.js'
import { registryOf } from '../../lifecycle/registry.js'
import { checkExport, importExport } from '../../lifecycle/transfer/import_export.js'
import { ExportReader } from '../../lifecycle/transfer/read_export.js'
import type { Tally } from '../../lifecycle/transfer/restore_context.js'
import type { Appender } from '../../log/append/appender.js'
import type { Database } from '../../postgres/database.js'
import { findNamedProject } from '../../projects/projects.js'
import { MODULES } from '../../service/modules.js'
import { checkOpenAiRuns, importOpenAiRuns } from '../../sessions/transfer/import_openai_runs.js'
import { EXIT_CODES } from '../exit_codes.js'
import { countsOf } from '../terminal/count.js'
import { type Progress, showProgress } from '../terminal/progress.js'

/** What the command line says of an import. */
export interface ImportOptions {
  project?: string
  format: 'annals' | 'openai-runs'
  dryRun?: boolean
}

const READ_BYTES = 1024 * 1024

/** One run of `annals import`. */
export class ImportJob {
  constructor(
    private readonly database: Database,
    private readonly appender: Appender,
    private readonly file: string,
    private readonly options: ImportOptions,
    private readonly signal: AbortSignal,
  ) {}

  /** annals import --format annals */
  async importExport(): Promise<void> {
    const { id: project_id } = await findNamedProject(this.database, this.options.project)
    const { tables } = registryOf(MODULES)
    await this.check((source, onProgress) =>
      checkExport(new ExportReader(source, tables), this.signal, onProgress),
    )
    const totals = await this.import((source, progress) =>
      importExport(this.database, new ExportReader(source, tables), {
        tables,
        ...this.common(project_id, progress),
        onConflict: ({ kind, id, reason }) =>
          progress.say(`annals: conflict: ${kind} ${id}: ${reason}. It is left unchanged.`),
      }),
    )
    const { tallies, conflicts } = totals
    this.summarize(tallies)
    if (conflicts > 0) {
      process.stderr.write(
        `annals: ${conflicts} of the file exist with different content and were not imported.\n`,
      )
      process.exitCode = EXIT_CODES.failed
    }
  }

  /** annals import --format openai-runs */
  async importRuns(): Promise<void> {
    const { id: project_id } = await findNamedProject(this.database, this.options.project)
    await this.check((source, onProgress) => checkOpenAiRuns(source, this.signal, onProgress))
    const { database, appender } = this
    const totals = await this.import((source, progress) =>
      importOpenAiRuns({ database, appender }, source, this.common(project_id, progress)),
    )
    this.summarize({ ...totals })
  }

  private common(project_id: string, progress: Progress) {
    return {
      project_id,
      dry_run: this.options.dryRun ?? false,
      signal: this.signal,
      onProgress: (bytes: number) => progress.update(bytes, bytes),
    }
  }

  /** Reads a whole file before anything of it is stored. A pipe can only be read once. */
  private async check(
    work: (source: AsyncIterable<Buffer>, onProgress: (bytes: number) => void) => Promise<void>,
  ): Promise<void> {
    if (!(await isRegularFile(this.file))) return
    await this.over('Checking', (source, progress) => work(source, (bytes) => progress.update(bytes, bytes)))
  }

  private import<T>(work: (source: AsyncIterable<Buffer>, progress: Progress) => Promise<T>): Promise<T> {
    return this.over(this.options.dryRun ? 'Comparing' : 'Importing', work)
  }

  private async over<T>(
    task: string,
    work: (source: AsyncIterable<Buffer>, progress: Progress) => Promise<T>,
  ): Promise<T> {
    const { source, bytes } = await openSource(this.file)
    const progress = showProgress(task, 'bytes', bytes)
    try {
      return await work(source, progress)
    } finally {
      progress.stop()
    }
  }

  private summarize(tallies: Record<string, Tally>): void {
    const what = (key: keyof Tally) =>
      countsOf(Object.fromEntries(Object.entries(tallies).map(([name, tally]) => [name, tally[key]]))).join(
        ', ',
      )
    const verb = this.options.dryRun ? 'Would import' : 'Imported'
    process.stdout.write(`${verb} ${what('stored')}.\nThere already: ${what('known')}.\n`)
  }
}

/** A file's bytes, and how many they are; 0 if unknown. */
async function openSource(file: string): Promise<{ source: AsyncIterable<Buffer>; bytes: number }> {
  if (file === '-') return { source: process.stdin, bytes: 0 }
  const found = await describe(file)
  return {
    source: createReadStream(file, { highWaterMark: READ_BYTES }),
    bytes: found.isFile() ? found.size : 0,
  }
}

async function isRegularFile(file: string): Promise<boolean> {
  return file !== '-' && (await describe(file)).isFile()
}

async function describe(file: string): Promise<Stats> {
  try {
    const found = await stat(file)
    if (found.isDirectory()) throw new Error('it is a directory')
    return found
  } catch (error) {
    throw new StartError(`${file} cannot be read (${(error as Error).message}).`, { cause: error })
  }
}
