export { BackupFile } from './backup/backup_file.js'
export { BACKUP_VERSION } from './backup/backup_format.js'
export { checkBackup, missingOf, openBackup, restoreBackup } from './backup/restore_backup.js'
export { isOfProjects, writeBackup } from './backup/write_backup.js'
export { diagnose, type OpenDatabase } from './doctor/diagnose.js'
export type { Diagnosis, State } from './doctor/diagnosis.js'
export { FORMAT_VERSION } from './transfer/export_format.js'
export { fileOutput, OutputClosed, streamOutput } from './transfer/export_output.js'
export {
  completeSessionId,
  type ExportCounts,
  lostSnapshot,
  measureExport,
  onSnapshot,
  writeExport,
} from './transfer/export_project.js'
export { checkExport, importExport } from './transfer/import_export.js'
export { ExportReader } from './transfer/read_export.js'
export type { Conflict, Tallies } from './transfer/restore_context.js'
export type { ExportScope } from './transfer/walk_export.js'
export {
  allChecks,
  type ReportedFinding,
  type Verification,
  type VerifiedProject,
  verifyDatabase,
} from './verify/verify_database.js'
