import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { StartError } from '@annals/kits/errors.js'
import type { TableRegistry } from '@annals/kits/lifecycle/registry.js'
import type { Counts, Table } from '@annals/kits/lifecycle/table.js'
import type { Database, Queryable } from '@annals/kits/postgres/database.js'
import { isRefusedData } from '@annals/kits/postgres/database_errors.js'
import { isJsonObject, isRefusal, readStorable } from '@annals/messages/json'
import {
  checkExport,
  type ImportOptions,
  type ImportTotals,
  importExport,
} from '../transfer/import_export.js'
import { LINE_BYTES_MAX, LineSplitter } from '../transfer/line_splitter.js'
import { ExportReader } from '../transfer/read_export.js'
import {
  type BackupEnd,
  type BackupHeader,
  type BackupSection,
  readBackupHeader,
  readEnd,
} from './backup_format.js'
import { type BackedUpTable, backedUp, findCatalogue, restoreCatalogue } from './backup_queries.js'

interface RestoreOptions extends Pick<ImportOptions, 'signal' | 'onConflict'> {
  registry: TableRegistry
  /** What the check found. */
  bad?: BadSections
  /** The byte of the file up to which all is done. */
  onProgress: (bytes: number) => void
}

/** Sections that cannot be restored, by their projects: why. */
export type BadSections = ReadonlyMap<string, StartError>

/**
 * Reads a whole backup and stores nothing. Returns the sections that are damaged: each is one project, and the others can be
 * restored. @throws StartError if the projects and keys are damaged, without which there is nothing
 */
export async function checkBackup(
  backup: Backup,
  { registry, signal, onProgress }: Omit<RestoreOptions, 'onConflict' | 'bad'>,
): Promise<BadSections> {
  const bad = new Map<string, StartError>()
  for await (const _ of readCatalogueRows(backup)) signal.throwIfAborted()
  for (const section of backup.end.sections) {
    const reader = readSection(backup, section, registry.tables)
    try {
      await checkExport(reader, signal, (bytes) => onProgress(section.offset + bytes))
    } catch (error) {
      bad.set(section.project_id, wrongSection(section, error))
    }
  }
  return bad
}

/** @throws what is no fault of the file */
function wrongSection({ project, offset }: BackupSection, error: unknown): StartError {
  if (!(error instanceof StartError)) throw error
  const where = `Project ${JSON.stringify(project)}, whose export begins at byte ${offset} of the file`
  return new StartError(`${where}: ${error.message}`, { cause: error })
}

/**
 * Restores projects and keys, all or none, and then the exports of the projects, as an import does: what is there already
 * is left as it is, so that an interrupted restore is completed by the next. Returns what was stored, by project, or why
 * only a part of it was; of those that are known to be `bad`, nothing is.
 * @throws StartError if there is another project or key in the place of one of the backup
 */
export async function restoreBackup(
  database: Database,
  backup: Backup,
  { registry, bad, onProgress, ...options }: RestoreOptions,
): Promise<Map<string, ImportTotals | StartError>> {
  const isGood = ({ backed_up }: BackedUpTable, { row }: CatalogueRow) =>
    !bad?.has(String(row[backed_up.project ?? backed_up.key]))
  await database
    .transaction(async (connection) => {
      // In the order of their tables, of which each refers only to those before it.
      for await (const read of readCatalogueRows(backup))
        for (const table of backedUp(registry.all_tables)) {
          const rows = read
            .filter((one) => one.table === table.name && isGood(table, one))
            .map(({ row }) => row)
          if (rows.length > 0) await storeRows(connection, table, rows)
        }
    })
    .catch((error: Error) => {
      if (!isRefusedData(error)) throw error
      throw new StartError(`The projects and keys of the backup cannot be stored (${error.message}).`, {
        cause: error,
      })
    })
  const totals = new Map<string, ImportTotals | StartError>(bad)
  for (const section of backup.end.sections.filter(({ project_id }) => !bad?.has(project_id))) {
    const reader = readSection(backup, section, registry.tables)
    const imported = importExport(database, reader, {
      ...options,
      tables: registry.tables,
      project_id: section.project_id,
      dry_run: false,
      onProgress: (bytes) => onProgress(section.offset + bytes),
    })
    totals.set(section.project_id, await imported.catch((error) => wrongSection(section, error)))
  }
  return totals
}

async function storeRows(
  connection: Queryable,
  table: BackedUpTable,
  rows: CatalogueRow['row'][],
): Promise<void> {
  const columns = Object.keys(rows[0]!).filter((name) => /^[a-z_]+$/.test(name))
  await connection.query(restoreCatalogue(table, columns), [JSON.stringify(rows)])
  const keys = rows.map((row) => String(row[table.backed_up.key]))
  const found = new Set(
    (await connection.query(findCatalogue(table), [keys])).map(({ key }) => key!.toLowerCase()),
  )
  const missing = rows.find((_, index) => !found.has(keys[index]!))
  if (missing)
    throw new StartError(
      `The database has a different row of ${table.name} in place of ${JSON.stringify(missing.name)}. Restore into a new database, or read the exports of its projects with \`annals import\`.`,
    )
}

/** What was neither stored nor there already, or is not in the database now: `rows` of `name`, in words. */
export function missingOf(rows: Counts, found: (name: string) => number | undefined): string[] {
  return Object.entries(rows).flatMap(([name, expected]) => {
    const there = found(name)
    return there === undefined || there >= expected ? [] : [`${expected - there} of ${expected} ${name}`]
  })
}

const READ_BYTES = 1024 * 1024
const LINE_FEED = 0x0a

interface CatalogueRow {
  table: string
  row: Record<string, unknown>
}

/** A complete backup. What is in it is checked only as it is read. */
interface Backup {
  path: string
  header: BackupHeader
  end: BackupEnd
}

/** Reads the first and the last line of a backup. @throws StartError if it is none, or not complete, or a newer one */
export async function openBackup(path: string, schema_version: number): Promise<Backup> {
  const { first, last, last_at } = await readEnds(path).catch((error: Error) => {
    throw new StartError(`${path} cannot be read (${error.message}).`, { cause: error })
  })
  const header = readBackupHeader(path, first, schema_version)
  return { path, header, end: readEnd(path, first, last, last_at) }
}

async function readEnds(path: string): Promise<{ first: string; last: string; last_at: number }> {
  const file = await open(path, 'r')
  try {
    return { first: (await firstLine(file)).toString(), ...(await lastLine(file)) }
  } finally {
    await file.close()
  }
}

function readSection(
  { path }: Backup,
  { offset, bytes }: BackupSection,
  tables: readonly Table[],
): ExportReader {
  return new ExportReader(rangeOf(path, offset, bytes), tables)
}

/** The rows of the installation, in the order of their tables. @throws StartError if they are damaged */
async function* readCatalogueRows({ path, end }: Backup): AsyncGenerator<CatalogueRow[]> {
  const { offset, bytes, sha256 } = end.catalogue
  const hash = createHash('sha256')
  const splitter = new LineSplitter()
  let isWhole = true
  for await (const chunk of rangeOf(path, offset, bytes)) {
    hash.update(chunk)
    const rows = splitter.push(chunk).map(parseRow)
    isWhole &&= rows.every((row) => row !== undefined)
    if (isWhole) yield rows as CatalogueRow[]
  }
  if (hash.digest('hex') !== sha256)
    throw new StartError(
      `${path}: the checksum of the projects and keys, from byte ${offset} on, does not match: the file was changed or damaged.`,
    )
  if (!isWhole)
    throw new StartError(`${path}: a line of the projects and keys, from byte ${offset} on, is not one.`)
}

async function* rangeOf(path: string, offset: number, bytes: number): AsyncGenerator<Buffer> {
  if (bytes === 0) return
  yield* createReadStream(path, { start: offset, end: offset + bytes - 1, highWaterMark: READ_BYTES })
}

async function firstLine(file: FileHandle): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(4_096), 0, 4_096, 0)
  return buffer.subarray(0, Math.max(buffer.subarray(0, bytesRead).indexOf(LINE_FEED), 0))
}

async function lastLine(file: FileHandle): Promise<{ last: string; last_at: number }> {
  const { size } = await file.stat()
  for (let length = READ_BYTES; ; length *= 2) {
    const from = Math.max(size - length, 0)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from)
    const at = buffer.subarray(0, Math.max(bytesRead - 1, 0)).lastIndexOf(LINE_FEED)
    if (at === -1 && from > 0 && length < LINE_BYTES_MAX) continue
    const last = buffer.subarray(at + 1, bytesRead).toString()
    return { last: last.endsWith('\n') ? last.slice(0, -1) : last, last_at: from + at + 1 }
  }
}

function parseRow(line: Buffer): CatalogueRow | undefined {
  const json = readStorable(line)
  if (isRefusal(json) || !isJsonObject(json.value)) return undefined
  const { table, row } = json.value as Partial<CatalogueRow>
  return typeof table === 'string' && isJsonObject(row) ? { table, row } : undefined
}
