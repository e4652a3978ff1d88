import { createHash } from 'node:crypto'
import { addCounts } from '@annals/kits/lifecycle/erase/erasure.js'
import type { TableRegistry } from '@annals/kits/lifecycle/registry.js'
import type { Counts } from '@annals/kits/lifecycle/table.js'
import { type DatabasePool, type Queryable, SnapshotLost } from '@annals/kits/postgres/database.js'
import { lostSnapshot, onSnapshot, writeExport } from '../transfer/export_project.js'
import type { BackupFile } from './backup_file.js'
import { type BackupCatalogue, type BackupState, endLine } from './backup_format.js'
import { backedUp, CATALOGUE_ROWS_MAX, readCatalogue } from './backup_queries.js'

interface NamedProject {
  id: string
  name: string
}

export interface BackupOptions {
  registry: TableRegistry
  /** The projects that there are, or the only one. */
  projects: () => Promise<NamedProject[]>
  /** The only project; undefined: all, and what belongs to none. */
  only_id: string | undefined
  signal: AbortSignal
  onProgress: (rows: Readonly<Counts>, bytes: number) => void
}

/** Writes the missing part of a backup. @throws whatever interrupts it; it can be resumed */
export async function writeBackup(
  database: DatabasePool,
  file: BackupFile,
  options: BackupOptions,
): Promise<Counts> {
  const rows: Counts = {}
  for (const section of file.state.sections) addCounts(rows, section.rows)
  // Projects that come meanwhile are found after the last one.
  for (;;) {
    const done = new Set(file.state.sections.map(({ project_id }) => project_id))
    const project = (await options.projects()).find(({ id }) => !done.has(id))
    if (!project) break
    addCounts(rows, await writeSection(database, file, project, rows, options))
  }
  const { catalogue, project_ids } = await writeCatalogue(database, file, options)
  // Of a project that was erased meanwhile, nothing could be restored.
  const sections = file.state.sections.filter(({ project_id }) => project_ids.has(project_id))
  file.state = { ...file.state, sections }
  const finished_at = new Date().toISOString()
  const line = endLine(file.state.header, { kind: 'end_of_backup', finished_at, sections, catalogue })
  await file.write(Buffer.from(`${line}\n`))
  await file.finish()
  return rows
}

/** Of a project that begins anew as often as its snapshot is lost. */
const ATTEMPTS_MAX = 3

/** One project, on one snapshot. What was written of it before an interruption is of another moment, and written again. */
async function writeSection(
  database: DatabasePool,
  file: BackupFile,
  project: NamedProject,
  before: Counts,
  options: BackupOptions,
): Promise<Counts> {
  const { offset } = file
  const { tables } = options.registry
  for (let attempt = 1; ; attempt++) {
    try {
      const { bytes, rows } = await onSnapshot(database, project.id, tables, (snapshot) =>
        writeExport(snapshot, { project }, file, {
          tables,
          schema_version: file.state.header.schema_version,
          exported_at: new Date().toISOString(),
          signal: options.signal,
          onProgress: ({ rows }) => options.onProgress(sumOf(before, rows), file.offset),
        }),
      )
      const section = { project_id: project.id, project: project.name, offset, bytes, rows }
      file.state = { ...file.state, sections: [...file.state.sections, section] }
      await file.save()
      return rows
    } catch (error) {
      if (!(error instanceof SnapshotLost)) throw error
      if (attempt >= ATTEMPTS_MAX) throw lostSnapshot(project.name, error)
      await file.rewind()
    }
  }
}

async function writeCatalogue(
  database: Queryable,
  file: BackupFile,
  { registry, only_id, signal }: BackupOptions,
): Promise<{ catalogue: BackupCatalogue; project_ids: ReadonlySet<string> }> {
  const { offset } = file
  const project_ids = new Set<string>()
  const hash = createHash('sha256')
  for (const table of backedUp(registry.all_tables)) {
    const statement = readCatalogue(table)
    for (let after: string | null = null, found = CATALOGUE_ROWS_MAX; found === CATALOGUE_ROWS_MAX; ) {
      signal.throwIfAborted()
      const page = await database.query(statement, [only_id ?? null, after])
      if (table.name === 'projects') for (const { key } of page) project_ids.add(key!)
      // The project of a new key may have come after projects were read.
      const rows = page.filter(({ project }) => project === null || project_ids.has(project!))
      const bytes = Buffer.from(rows.map(({ line }) => `${line}\n`).join(''))
      hash.update(bytes)
      await file.write(bytes)
      found = page.length
      after = page.at(-1)?.key ?? null
    }
  }
  const catalogue = { offset, bytes: file.offset - offset, sha256: hash.digest('hex') }
  return { catalogue, project_ids }
}

/** Whether an unfinished backup is of this database: what it has of projects is still there. */
export function isOfProjects({ sections }: BackupState, projects: readonly NamedProject[]): boolean {
  const ids = new Set(projects.map(({ id }) => id))
  return sections.every(({ project_id }) => ids.has(project_id))
}

function sumOf(one: Readonly<Counts>, other: Readonly<Counts>): Counts {
  const sum = { ...one }
  addCounts(sum, other)
  return sum
}
