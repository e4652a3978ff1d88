import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { StartError } from '../../errors.js'
import type { Table } from '../table.js'
import { LineSplitter } from '../transfer/line_splitter.js'
import { ExportReader } from '../transfer/read_export.js'
import { BACKUP_VERSION, type BackupEnd, type BackupHeader, type BackupSection } from './backup_format.js'

const READ_BYTES = 1024 * 1024
const LINE_FEED = 0x0a

export interface CatalogueRow {
  table: string
  row: Record<string, unknown>
}

/** A complete backup. What is in it is checked only as it is read. */
export interface Backup {
  path: string
  header: BackupHeader
  end: BackupEnd
}

/** Reads the first and the last line of a backup. @throws StartError if it is none, or not complete, or a newer one */
export async function openBackup(path: string, schema_version: number): Promise<Backup> {
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (error) {
    throw new StartError(`${path} cannot be read (${(error as Error).message}).`, { cause: error })
  }
  try {
    const header = parse<BackupHeader>(await firstLine(file))
    if (header?.annals_backup === undefined)
      throw new StartError(
        `${path} is not a backup of Annals. An export is read by \`annals import\`, an unfinished backup by running \`annals backup\` again.`,
      )
    if (header.annals_backup !== BACKUP_VERSION || header.schema_version > schema_version)
      throw new StartError(
        `${path} was written by a newer Annals (${header.annals_version}). Use that version.`,
      )
    const end = parse<BackupEnd>(await lastLine(file))
    if (end?.kind !== 'end_of_backup') throw new StartError(`${path} is cut off: its last line is missing.`)
    return { path, header, end }
  } finally {
    await file.close()
  }
}

export function readSection(
  { path }: Backup,
  { offset, bytes }: BackupSection,
  tables: readonly Table[],
): ExportReader {
  return new ExportReader(rangeOf(path, offset, bytes), tables)
}

/** The rows of the installation, in the order of their tables. @throws StartError if they are damaged */
export async function* readCatalogueRows({ path, end }: Backup): AsyncGenerator<CatalogueRow[]> {
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
