import {
  BACKUP_VERSION,
  BackupFile,
  checkBackup,
  isOfProjects,
  measureExport,
  missingOf,
  openBackup,
  restoreBackup,
  writeBackup,
} from '@annals/archive'
import { StartError } from '@annals/kits/errors.js'
import { registryOf } from '@annals/kits/lifecycle/registry.js'
import type { Counts } from '@annals/kits/lifecycle/table.js'
import type { Database, DatabasePool } from '@annals/kits/postgres/database.js'
import { schemaVersion } from '@annals/kits/postgres/migrations.js'
import { VERSION } from '@annals/kits/version.js'
import {
  changeProject,
  findNamedProject,
  listNamedProjects,
  listProjects,
  noteAct,
} from 'annals/dist/projects/projects.js'
import { MODULES } from 'annals/dist/service/modules.js'
import { EXIT_CODES } from '../exit_codes.js'
import { countOf, countsOf } from '../terminal/count.js'
import { withProgress } from '../terminal/progress.js'
import { visible } from '../terminal/visible.js'
import { describe } from './import_run.js'
import { runVerify } from './verify.js'
import { operatorName, tellProgress } from './with_database.js'

/** Prints the result of a backup. */
export interface BackupCommandOptions {
  project?: string
}

/** Runs `annals backup`. */
export async function runBackup(
  database: DatabasePool,
  path: string,
  { project: wanted }: BackupCommandOptions,
  signal: AbortSignal,
): Promise<void> {
  const registry = registryOf(MODULES)
  const only = wanted === undefined ? undefined : await findNamedProject(database, wanted)
  const projects = async () => (only ? [only] : await listNamedProjects(database))
  const found = await projects()
  let entries = 0
  for (const project of found) entries += await measureExport(database, { project }, registry.tables)
  const header = {
    annals_backup: BACKUP_VERSION,
    what: only ? ('project' as const) : ('database' as const),
    begun_at: new Date().toISOString(),
    annals_version: VERSION,
    schema_version: schemaVersion(),
  }
  const file = await BackupFile.open(path, header, (state) => isOfProjects(state, found))
  if (file.is_resumed)
    tellProgress(`Going on with the backup that was begun at ${file.state.header.begun_at}.`)
  const options = { registry, projects, only_id: only?.id, signal }
  const rows = await withProgress('Backing up', 'entries', entries, ({ update }) => {
    const onProgress = (counts: Counts, bytes: number) => update(counts.entries ?? 0, bytes)
    return writeBackup(database, file, { ...options, onProgress })
  }).catch(async (error) => {
    // The first error is the one to report.
    await file.leave().catch(() => {})
    throw error
  })
  process.stdout.write(
    `Backed up ${countOf(file.state.sections.length, 'projects')}: ${countsOf(rows).join(', ')} (${file.offset} bytes).\n`,
  )
  tellLost(rows)
}

/** Says that the bytes of blobs were not to be read: the file has the rest, and names them. */
export function tellLost({ lost_blobs }: Counts): void {
  if (!lost_blobs) return
  process.stderr.write(
    `annals: the bytes of ${countOf(lost_blobs, 'blobs')} could not be read and are not in the file. Run \`annals verify\`, which names them.\n`,
  )
  process.exitCode = EXIT_CODES.failed
}

/** Runs `annals restore`. */
export async function runRestore(database: Database, path: string, signal: AbortSignal): Promise<void> {
  const registry = registryOf(MODULES)
  await describe(path)
  const backup = await openBackup(path, schemaVersion())
  const { sections, catalogue } = backup.end
  const over = <T>(task: string, work: (onProgress: (bytes: number) => void) => Promise<T>) =>
    withProgress(task, 'bytes', catalogue.offset, ({ update }) => work((bytes) => update(bytes, bytes)))
  const bad = await over('Checking', (onProgress) => checkBackup(backup, { registry, signal, onProgress }))
  let conflicts = 0
  const onConflict = ({ kind, id, reason }: { kind: string; id: string; reason: string }) => {
    conflicts += 1
    tellProgress(`annals: conflict: ${kind} ${id}: ${reason}. It is left unchanged.`)
  }
  const totals = await over('Restoring', (onProgress) =>
    restoreBackup(database, backup, { registry, bad, signal, onProgress, onConflict }),
  )
  const missing: string[] = []
  for (const { project_id, project, rows } of sections) {
    const total = totals.get(project_id)!
    if (total instanceof StartError) {
      const much = bad.has(project_id) ? 'nothing of it was restored' : 'the rest of it was not restored'
      missing.push(`project ${JSON.stringify(project)}: ${much}. ${total.message}`)
      continue
    }
    const { tallies } = total
    const lost = missingOf(rows, (name) => tallies[name] && tallies[name].stored + tallies[name].known)
    missing.push(...lost.map((what) => `not restored: project ${JSON.stringify(project)}: ${what}.`))
    await finishProject(database, project_id)
    const stored = countsOf(
      Object.fromEntries(Object.entries(tallies).map(([name, { stored }]) => [name, stored])),
    )
    process.stdout.write(visible(`Restored project ${JSON.stringify(project)}: ${stored.join(', ')}.\n`))
  }
  for (const { project_id, project } of sections)
    if (!bad.has(project_id)) await runVerify(database, { project })
  process.stderr.write(missing.map((what) => `annals: ${visible(what)}\n`).join(''))
  if (missing.length > 0 || conflicts > 0) process.exitCode = EXIT_CODES.failed
}

/** Notes the restore, and begins to index a project that searches. */
async function finishProject(database: Database, project_id: string): Promise<void> {
  const actor = operatorName()
  await noteAct(database, actor, 'project.restore', project_id)
  const settings = (await listProjects(database)).map((json) => JSON.parse(json))
  if (settings.some(({ id, search }) => id === project_id && search))
    await changeProject(database, actor, project_id, { search: true })
}
