import { createHash } from 'node:crypto'
import { StartError } from '@annals/kits/errors.js'
import type { Counts } from '@annals/kits/lifecycle/table.js'
import { isJsonObject } from '@annals/messages/json'

/**
 * The format of a backup: JSON lines. A header; the export of each project, as `annals export` writes it; the rows of
 * what belongs to the installation (projects, keys); and one last line that says where all this stands.
 */
export const BACKUP_VERSION = 1

export interface BackupHeader {
  annals_backup: number
  what: 'database' | 'project'
  begun_at: string
  annals_version: string
  schema_version: number
}

/** The export of a project: its bytes in the file, and how many rows of what it has. */
export interface BackupSection {
  project_id: string
  project: string
  offset: number
  bytes: number
  rows: Counts
}

/** A line for each row of the installation's tables: `{ "table", "row" }`. */
export interface BackupCatalogue {
  offset: number
  bytes: number
  sha256: string
}

export interface BackupEnd {
  kind: 'end_of_backup'
  finished_at: string
  sections: BackupSection[]
  catalogue: BackupCatalogue
}

/** What is known of a backup that is not finished, so that it can be. */
export interface BackupState {
  /** The process that wrote it last, and its machine. */
  pid: number
  host?: string
  header: BackupHeader
  header_bytes: number
  sections: BackupSection[]
}

/** Up to where the file of an unfinished backup is in order: after its last complete project. */
export function bytesOf({ header_bytes, sections }: BackupState): number {
  const last = sections.at(-1)
  return last ? last.offset + last.bytes : header_bytes
}

const MEMBERS = ['kind', 'finished_at', 'sections', 'catalogue', 'sha256']
const CHECKSUM = /^(.*),"sha256":"([0-9a-f]{64})"\}$/s

/** The last line: what it says, and the hash of that and of the first line. */
export function endLine(header: BackupHeader, end: BackupEnd): string {
  const text = JSON.stringify(end).slice(0, -1)
  return `${text},"sha256":"${hashOf(JSON.stringify(header), text)}"}`
}

function hashOf(...lines: string[]): string {
  return createHash('sha256').update(lines.join('\n')).digest('hex')
}

/** Reads the first line. @throws StartError if it is none of a backup, or a newer Annals wrote it */
export function readBackupHeader(path: string, line: string, schema_version: number): BackupHeader {
  const header = parseObject(line)
  if (header?.annals_backup === undefined)
    throw new StartError(
      `${path} is not a backup of Annals: line 1 is not a backup's header. For an export, use \`annals import\`; to finish a backup, run \`annals backup\` again.`,
    )
  if (header.annals_backup !== BACKUP_VERSION || Number(header.schema_version) > schema_version)
    throw new StartError(
      `${path} was written by a newer Annals (${String(header.annals_version)}). Use that version.`,
    )
  return header as unknown as BackupHeader
}

/**
 * Reads the last line, which begins at a byte of the file. Those of older backups have no checksum.
 * @throws StartError if it is missing, or is not as it was written
 */
export function readEnd(path: string, first: string, last: string, last_at: number): BackupEnd {
  const end = parseObject(last)
  if (end?.kind !== 'end_of_backup')
    throw new StartError(`${path} is cut off or damaged: its last line is not the end of a backup.`)
  const [, text, sha256] = CHECKSUM.exec(last) ?? []
  const isChanged = sha256 === undefined ? 'sha256' in end : hashOf(first, text!) !== sha256
  const wrong = isChanged
    ? 'its checksum, which is also that of the first line, does not match'
    : wrongInEnd(end, Buffer.byteLength(first) + 1, last_at)
  if (wrong) throw new StartError(`${path} is damaged: its last line was changed: ${wrong}.`)
  return end as unknown as BackupEnd
}

/** What cannot be: a member that is none, or places that are not in the file, or not in order. */
function wrongInEnd(end: Record<string, unknown>, from: number, until: number): string | undefined {
  const { sections, catalogue } = end
  const unknown = Object.keys(end).find((name) => !MEMBERS.includes(name))
  if (unknown !== undefined) return `it has no ${JSON.stringify(unknown)}`
  if (!Array.isArray(sections)) return 'sections must be a list'
  let at = from
  for (const section of sections as unknown[]) {
    if (!isJsonObject(section)) return 'each section must be an object'
    const { project_id, project, rows } = section as Record<string, unknown>
    if (typeof project_id !== 'string' || typeof project !== 'string')
      return 'a section must have project_id and project'
    if (!isJsonObject(rows) || !Object.values(rows).every(isCount))
      return `rows of project ${JSON.stringify(project)} must be counts`
    const end = endOf(section, at)
    if (end === undefined) return `project ${JSON.stringify(project)} has no such place`
    at = end
  }
  if (!isJsonObject(catalogue) || typeof (catalogue as { sha256?: unknown }).sha256 !== 'string')
    return 'catalogue must have offset, bytes and sha256'
  return endOf(catalogue, at) === until ? undefined : 'the catalogue has no such place'
}

/** The end of a section that begins at or after a byte. */
function endOf(place: object, from: number): number | undefined {
  const { offset, bytes } = place as { offset?: unknown; bytes?: unknown }
  return isCount(offset) && isCount(bytes) && offset >= from ? offset + bytes : undefined
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function parseObject(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isJsonObject(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
