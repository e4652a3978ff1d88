import { registryOf } from '../../lifecycle/registry.js'
import {
  type ExportOutput,
  fileOutput,
  OutputClosed,
  streamOutput,
} from '../../lifecycle/transfer/export_output.js'
import { type ExportCounts, measureExport, writeExport } from '../../lifecycle/transfer/export_project.js'
import type { ExportScope } from '../../lifecycle/transfer/walk_export.js'
import type { Database } from '../../postgres/database.js'
import { schemaVersion } from '../../postgres/migrator.js'
import { findNamedProject } from '../../projects/projects.js'
import { MODULES } from '../../service/modules.js'
import { EXIT_CODES } from '../exit_codes.js'
import { countsOf } from '../terminal/count.js'
import { showProgress } from '../terminal/progress.js'

/** What the command line says of an export. */
export interface ExportOptions {
  project?: string
  user?: string
  session?: string
  output: string
}

/** Runs `annals export`. */
export async function runExport(
  database: Database,
  options: ExportOptions,
  signal: AbortSignal,
): Promise<void> {
  const project = await findNamedProject(database, options.project)
  const scope: ExportScope = { project, user: options.user, session_id: options.session }
  const { tables } = registryOf(MODULES)
  const entries = await measureExport(database, scope, tables)
  const output = options.output === '-' ? streamOutput(process.stdout) : await fileOutput(options.output)
  const progress = showProgress('Exporting', 'entries', entries)
  try {
    const counts = await writeExport(database, scope, output, {
      tables,
      schema_version: schemaVersion(),
      exported_at: new Date().toISOString(),
      signal,
      onProgress: (counts) => progress.update(counts.rows.entries ?? 0, counts.bytes),
    })
    await output.finish()
    progress.stop()
    process.stderr.write(summaryOf(counts))
  } catch (error) {
    progress.stop()
    await abandon(output)
    // As other programs do when `head` has closed the pipe: no message, and an exit code other than 0.
    if (error instanceof OutputClosed) process.exitCode = EXIT_CODES.pipe_closed
    else throw error
  }
}

async function abandon(output: ExportOutput): Promise<void> {
  // The first error is the one to report.
  await output.abandon().catch(() => {})
}

function summaryOf({ rows, bytes }: ExportCounts): string {
  const counted = countsOf(rows)
  return `Exported ${counted.slice(0, -1).join(', ')} and ${counted.at(-1)} (${bytes} bytes).\n`
}
