import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { StartError } from '../../errors.js'
import type { Database, Queryable } from '../../postgres/database.js'
import type { TableRegistry } from '../registry.js'
import { type BackedUpTable, backedUp, type Counts, type Table } from '../table.js'
import {
  checkExport,
  type ImportOptions,
  type ImportTotals,
  importExport,
} from '../transfer/import_export.js'
import { LineSplitter } from '../transfer/line_splitter.js'
import { ExportReader } from '../transfer/read_export.js'
import { BACKUP_VERSION, type BackupEnd, type BackupHeader, type BackupSection } from './backup_format.js'
import { findCatalogue, restoreCatalogue } from './backup_queries.js'

interface RestoreOptions extends Pick<ImportOptions, 'signal' | 'onConflict'> {
  registry: TableRegistry
  /** The byte of the file up to which all is done. */
  onProgress: (bytes: number) => void
}

/** Reads a whole backup and stores nothing. @throws StartError that names what is wrong with it */
export async function checkBackup(
  backup: Backup,
  { registry, signal, onProgress }: Omit<RestoreOptions, 'onConflict'>,
): Promise<void> {
  for await (const _ of readCatalogueRows(backup)) signal.throwIfAborted()
  for (const section of backup.end.sections) {
    const reader = readSection(backup, section, registry.tables)
    try {
      await checkExport(reader, signal, (bytes) => onProgress(section.offset + bytes))
    } catch (error) {
      if (!(error instanceof StartError)) throw error
      throw new StartError(`Project ${JSON.stringify(section.project)}: ${error.message}`, { cause: error })
    }
  }
}

/**
 * Restores projects and keys, all or none, and then the exports of the projects, as an import does: what is there already
 * is left as it is, so that an interrupted restore is completed by the next. Gives what was stored, by project.
 * @throws StartError if there is another project or key in the place of one of the backup
 */
export async function restoreBackup(
  database: Database,
  backup: Backup,
  { registry, onProgress, ...options }: RestoreOptions,
): Promise<Map<string, ImportTotals>> {
  await database.transaction(async (connection) => {
    // In the order of their tables, of which each refers only to those before it.
    for await (const read of readCatalogueRows(backup))
      for (const table of backedUp(registry.all_tables)) {
        const rows = read.filter((one) => one.table === table.name).map(({ row }) => row)
        if (rows.length > 0) await storeRows(connection, table, rows)
      }
  })
  const totals = new Map<string, ImportTotals>()
  for (const section of backup.end.sections) {
    const reader = readSection(backup, section, registry.tables)
    totals.set(
      section.project_id,
      await importExport(database, reader, {
        ...options,
        tables: registry.tables,
        project_id: section.project_id,
        dry_run: false,
        onProgress: (bytes) => onProgress(section.offset + bytes),
      }),
    )
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
      `The database has another row of ${table.name} in the place of ${JSON.stringify(missing.name)}. Restore into a new database, or read the exports of its projects with \`annals import\`.`,
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
  const { first, last } = await readEnds(path).catch((error: Error) => {
    throw new StartError(`${path} cannot be read (${error.message}).`, { cause: error })
  })
  const header = parse<BackupHeader>(first)
  if (header?.annals_backup === undefined)
    throw new StartError(
      `${path} is not a backup of Annals. An export is read by \`annals import\`, an unfinished backup by running \`annals backup\` again.`,
    )
  if (header.annals_backup !== BACKUP_VERSION || header.schema_version > schema_version)
    throw new StartError(
      `${path} was written by a newer Annals (${header.annals_version}). Use that version.`,
    )
  const end = parse<BackupEnd>(last)
  if (end?.kind !== 'end_of_backup') throw new StartError(`${path} is cut off: its last line is missing.`)
  return { path, header, end }
}

async function readEnds(path: string): Promise<{ first: Buffer; last: Buffer }> {
  const file = await open(path, 'r')
  try {
    return { first: await firstLine(file), last: await lastLine(file) }
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
  for await (const chunk of rangeOf(path, offset, bytes)) {
    hash.update(chunk)
    const rows = splitter.push(chunk).map((line) => parse<CatalogueRow>(line))
    if (rows.some((row) => typeof row?.table !== 'string' || typeof row.row !== 'object')) break
    yield rows as CatalogueRow[]
  }
  if (hash.digest('hex') !== sha256)
    throw new StartError(`${path}: the checksum of the projects and keys does not match: it was damaged.`)
}

async function* rangeOf(path: string, offset: number, bytes: number): AsyncGenerator<Buffer> {
  if (bytes === 0) return
  yield* createReadStream(path, { start: offset, end: offset + bytes - 1, highWaterMark: READ_BYTES })
}

async function firstLine(file: FileHandle): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(4_096), 0, 4_096, 0)
  return buffer.subarray(0, Math.max(buffer.subarray(0, bytesRead).indexOf(LINE_FEED), 0))
}

async function lastLine(file: FileHandle): Promise<Buffer> {
  const { size } = await file.stat()
  for (let length = READ_BYTES; ; length *= 2) {
    const from = Math.max(size - length, 0)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from)
    const at = buffer.subarray(0, bytesRead - 1).lastIndexOf(LINE_FEED)
    if (at !== -1 || from === 0) return buffer.subarray(at + 1, bytesRead)
  }
}

function parse<T>(line: Buffer): T | undefined {
  try {
    return JSON.parse(line.toString()) as T
  } catch {
    return undefined
  }
}
