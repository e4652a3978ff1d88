import type { Counts } from '../table.js'
import type { Checkpoint } from '../transfer/export_project.js'

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
  pid: number
  header: BackupHeader
  header_bytes: number
  sections: BackupSection[]
  open?: { project_id: string; offset: number; checkpoint: Checkpoint } | undefined
}

/** Up to where the file of an unfinished backup is in order. */
export function bytesOf({ header_bytes, sections, open }: BackupState): number {
  const last = sections.at(-1)
  return open ? open.offset + open.checkpoint.counts.bytes : last ? last.offset + last.bytes : header_bytes
}
