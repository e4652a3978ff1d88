import { switchConsumer } from '@annals/kits/changes/project_consumers.js'
import { type Check, LOST, type Table } from '@annals/kits/lifecycle/table.js'
import type { Row, Tenant } from '@annals/kits/postgres/database.js'
import { keepObjects } from 'annals/dist/blobs/discard_blobs.js'
import { LEARNING_CONSUMER } from 'annals/dist/learning/sessions/space_session_queries.js'
import {
  BLOB_LINE,
  BLOB_LINES,
  BlobFollower,
  exportBlobs,
  restoreBlobs,
  restoreReferences,
} from './blobs/transfer_blobs.js'
import { verifyBytes } from './blobs/verify_bytes.js'
import type { LineCheck, LineColumn } from './columns.js'
import { exportErased, exportSessions } from './sessions/export_pieces.js'
import { SESSION_LINE_SQL } from './sessions/export_session_queries.js'
import { restoreSessionLines } from './sessions/restore_sessions.js'
import { SESSION_CHECKS } from './sessions/session_check_queries.js'
import { FURTHER_LINES, LogFollower, SESSION_LINE } from './sessions/session_lines.js'
import { verifySessions } from './sessions/verify_sessions.js'
import { SKILL_FILE_FORMS, SKILL_FORMS } from './skills/skill_forms.js'
import type { ExportLine, ExportPiece, LineFollower } from './transfer/export_line.js'
import type { RestoreContext, Tallies } from './transfer/restore_context.js'
import { RESTORE_ORIGINS } from './transfer/restore_origin_queries.js'
import { RESTORE_RUNS } from './transfer/restore_run_queries.js'
import { restoreUsers } from './users/restore_users.js'
import { type CheckedPiece, STRAY_TERMS } from './verify/findings.js'

/** Functions in place of the statements that exports, imports and verifications make from what a table says of itself. */
export interface OwnFunctions {
  /** The members of a line, where they are not the table's columns. */
  line?: Readonly<Record<string, LineColumn>>
  /** Columns whose members older exports do not have. */
  absent_before?: readonly string[]
  /** What values of columns must be, beyond their types. */
  forms?: Readonly<Record<string, LineCheck>>
  /** SQL of a page of an export: the line, further columns, and what is joined to the row `t`; $1 is the project. */
  exported?: { line: string; columns: string; join: string }
  /** The lines of such a page, and of what belongs to its rows. */
  exportRows?(tenant: Tenant, rows: Row[]): AsyncGenerator<ExportPiece>
  /**
   * Called in a transaction that lasts as long as a snapshot that an export reads, and begins before it: keeps what belongs
   * to the project's rows and is not in the database, though they are deleted.
   */
  keepBeyond?(tenant: Tenant): Promise<void>
  /** Lines after all sessions, instead of the table's in their place or beside them; of one user or session, what these refer to. */
  exportLast?(
    tenant: Tenant,
    scope: { user?: string | undefined; session_id?: string | undefined },
  ): AsyncGenerator<ExportPiece>
  /** The kinds of lines beside the table's own, with their columns. */
  further_lines?: Readonly<
    Record<string, { columns: Readonly<Record<string, LineColumn>>; key: readonly string[] }>
  >
  /** Follows the lines of an export and compares them. */
  follow?(): LineFollower
  restore?(context: RestoreContext, lines: ExportLine[]): Promise<Tallies>
  /** Called in the transaction in which an import stored rows. */
  restored?(context: RestoreContext): Promise<void>
  /** The table and column whose row is locked while a row of a dependent is restored. */
  lock?: { table: string; column: string }
  /** Reads all of a project in bounded pieces. */
  verify?(tenant: Tenant): AsyncGenerator<CheckedPiece>
  /** The checks of `verify`, in place of those that are made from the table. */
  checks?: Readonly<Record<string, Check>>
  /** Checks beside those that are made from the table; the row is `t`. */
  further_checks?: Readonly<Record<string, Check>>
  /** Reads what belongs to the rows and no statement checks: bytes, wherever they are. */
  verifyBeyond?(tenant: Tenant): AsyncGenerator<CheckedPiece>
  /** The checks of `verifyBeyond`. */
  checked_beyond?: Readonly<Record<string, Pick<Check, 'means' | 'todo'>>>
  /** What else is counted before, for the progress: tables, and SQL of how many rows one (`t`) has. */
  measured?: Readonly<Record<string, string>>
}

/** By the names of tables. */
const OWN: Readonly<Record<string, OwnFunctions>> = {
  users: { restore: restoreUsers },
  sessions: {
    line: SESSION_LINE,
    exported: {
      line: SESSION_LINE_SQL,
      columns: 'h.last_seq, ',
      join: 'JOIN session_heads h ON h.project_id = $1 AND h.session_id = t.id',
    },
    exportRows: exportSessions,
    exportLast: exportErased,
    further_lines: FURTHER_LINES,
    follow: () => new LogFollower(),
    restore: restoreSessionLines,
    lock: { table: 'session_heads', column: 'session_id' },
    verify: verifySessions,
    checks: SESSION_CHECKS,
    measured: { session_heads: 'coalesce(sum(t.last_seq), 0) + count(*)', list_terms: 'count(*)' },
  },
  blobs: {
    line: BLOB_LINE,
    exportLast: exportBlobs,
    keepBeyond: keepObjects,
    follow: () => new BlobFollower(),
    further_lines: BLOB_LINES,
    restore: restoreBlobs,
    verifyBeyond: verifyBytes,
    checked_beyond: { blob_bytes: { means: "a blob's bytes are not those of its hash", todo: LOST } },
  },
  blob_references: { restore: restoreReferences },
  list_terms: { further_checks: STRAY_TERMS },
  // The sessions that an import has given to spaces are read.
  space_sessions: { restored: (tenant) => switchConsumer(tenant, LEARNING_CONSUMER, true) },
  skills: { forms: SKILL_FORMS },
  skill_files: { forms: SKILL_FILE_FORMS },
  statements: { absent_before: ['origins'] },
  learning_calls: {
    restored: async ({ database, project_id }) => void (await database.query(RESTORE_ORIGINS, [project_id])),
  },
  session_inbox: { restored: restoreRuns },
  session_requests: { restored: restoreRuns },
}

const NOTHING: OwnFunctions = {}

export function ownOf({ name }: Table): OwnFunctions {
  return OWN[name] ?? NOTHING
}

/** What is known of the runs of sessions whose inbox or requests an import has stored. */
async function restoreRuns({ database, project_id }: Tenant): Promise<void> {
  await database.query(RESTORE_RUNS.runs, [project_id])
  await database.query(RESTORE_RUNS.places, [project_id])
}
