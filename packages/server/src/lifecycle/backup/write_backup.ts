import { createHash } from 'node:crypto'
import { AnnalsError } from '../../errors.js'
import type { Queryable } from '../../postgres/database.js'
import { addCounts } from '../erase/dependents.js'
import type { TableRegistry } from '../registry.js'
import { backedUp, type Counts } from '../table.js'
import { writeExport } from '../transfer/export_project.js'
import type { BackupFile } from './backup_file.js'
import type { BackupCatalogue, BackupEnd, BackupState } from './backup_format.js'
import { CATALOGUE_ROWS_MAX, readCatalogue } from './backup_queries.js'

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

/** Writes what is missing of a backup. @throws whatever interrupts it; the file can be taken up again */
export async function writeBackup(
  database: Queryable,
  file: BackupFile,
  options: BackupOptions,
): Promise<Counts> {
  const rows: Counts = {}
  for (const section of file.state.sections) addCounts(rows, section.rows)
  // Projects that come meanwhile are found behind the last one.
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
  const end: BackupEnd = { kind: 'end_of_backup', finished_at, sections, catalogue }
  await file.write(Buffer.from(`${JSON.stringify(end)}\n`))
  await file.finish()
  return rows
}

async function writeSection(
  database: Queryable,
  file: BackupFile,
  project: NamedProject,
  before: Counts,
  options: BackupOptions,
): Promise<Counts> {
  for (;;) {
    const { open } = file.state
    const offset = open?.project_id === project.id ? open.offset : file.offset
    const from = open?.project_id === project.id ? open.checkpoint : undefined
    try {
      const counts = await writeExport(database, { project }, file, {
        tables: options.registry.tables,
        schema_version: file.state.header.schema_version,
        exported_at: new Date().toISOString(),
        signal: options.signal,
        onProgress: ({ rows }) => options.onProgress(sumOf(before, rows), file.offset),
        onCheckpoint: async (checkpoint) => {
          const is_next_part = file.state.open?.checkpoint.place.part !== checkpoint.place.part
          file.state = { ...file.state, open: { project_id: project.id, offset, checkpoint } }
          await file.save(is_next_part ? 'at_once' : 'now_and_then')
        },
        from: from && { ...from, hash: await file.hashFrom(offset) },
      })
      const section = {
        project_id: project.id,
        project: project.name,
        offset,
        bytes: counts.bytes,
        rows: counts.rows,
      }
      file.state = { ...file.state, sections: [...file.state.sections, section], open: undefined }
      await file.save()
      return counts.rows
    } catch (error) {
      // A session was deleted while it was written: it goes on before that, without it.
      if (!(error instanceof AnnalsError && error.error === 'session_not_found')) throw error
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
      // The project of a new key may have come behind what was read of projects.
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
export function isOfProjects({ sections, open }: BackupState, projects: readonly NamedProject[]): boolean {
  const ids = new Set(projects.map(({ id }) => id))
  return [...sections, ...(open ? [open] : [])].every(({ project_id }) => ids.has(project_id))
}

function sumOf(one: Readonly<Counts>, other: Readonly<Counts>): Counts {
  const sum = { ...one }
  addCounts(sum, other)
  return sum
}
