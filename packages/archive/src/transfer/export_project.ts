import { createHash } from 'node:crypto'
import { AnnalsError, invalidRequest, notFound, StartError } from '@annals/kits/errors.js'
import { parseId } from '@annals/kits/ids.js'
import { addCounts } from '@annals/kits/lifecycle/erase/erasure.js'
import type { Counts, Table } from '@annals/kits/lifecycle/table.js'
import { BEFORE_ALL } from '@annals/kits/lists/listed.js'
import type { DatabasePool, Queryable } from '@annals/kits/postgres/database.js'
import { VERSION } from '@annals/kits/version.js'
import { SESSIONS_BETWEEN } from '../sessions/export_session_queries.js'
import { ownOf } from '../tables.js'
import { type ExportHeader, FORMAT_VERSION } from './export_format.js'
import type { ExportOutput } from './export_output.js'
import { FIND_EXPORTED_USER, MEASURE_EXPORT } from './export_queries.js'
import { type ExportScope, findExportedSession, walkExport } from './walk_export.js'

/** Lines and bytes of an export, and how many rows of what it has. */
export interface ExportCounts {
  rows: Counts
  lines: number
  bytes: number
}

export interface ExportOptions {
  tables: readonly Table[]
  schema_version: number
  exported_at: string
  signal: AbortSignal
  /** Called after each piece with what was written so far. */
  onProgress: (counts: Readonly<ExportCounts>) => void
}

/**
 * Reads a project as it is at one moment, however long that takes: what is deleted meanwhile is seen, too, and kept where
 * it is not in the database. PostgreSQL cannot clean up what is deleted or replaced meanwhile, as with `pg_dump`.
 * @throws SnapshotLost
 */
export async function onSnapshot<T>(
  database: DatabasePool,
  project_id: string,
  tables: readonly Table[],
  work: (snapshot: Queryable) => Promise<T>,
): Promise<T> {
  const keepers = tables.flatMap((table) => ownOf(table).keepBeyond ?? [])
  if (!database.objects || keepers.length === 0) return database.snapshot(work)
  // Before the snapshot: what is deleted from then on is kept.
  return database.snapshot(async (holder) => {
    for (const keep of keepers) await keep({ database: holder, project_id })
    return database.snapshot(work)
  })
}

/**
 * The approximate number of entries of an export: its project is in use.
 * @throws AnnalsError user_not_found, session_not_found
 */
export async function measureExport(
  database: Queryable,
  scope: ExportScope,
  tables: readonly Table[],
): Promise<number> {
  const { project, user } = scope
  if (scope.session_id !== undefined)
    return Number((await findExportedSession(database, scope, tables)).last_seq)
  if (user === undefined)
    return Number((await database.query(MEASURE_EXPORT.project, [project.id]))[0]!.entries)
  const [found] = await database.query(FIND_EXPORTED_USER, [project.id, user])
  if (!found) throw notFound('user')
  return Number((await database.query(MEASURE_EXPORT.user, [project.id, found.id!]))[0]!.entries)
}

/**
 * The id of a session, given it or its beginning.
 * @throws AnnalsError session_not_found, invalid_request if several ids begin so
 */
export async function completeSessionId(
  database: Queryable,
  project_id: string,
  beginning: string,
): Promise<string> {
  const id = parseId(beginning)
  if (id !== undefined) return id
  const [first, last] = [BEFORE_ALL.asc.id, BEFORE_ALL.desc.id].map((end) =>
    parseId(beginning + end.slice(beginning.length)),
  )
  const range = first !== undefined && last !== undefined ? [project_id, first, last] : undefined
  const [found, other] = range ? await database.query(SESSIONS_BETWEEN, range) : []
  if (!found)
    throw new AnnalsError(
      'session_not_found',
      `No session of the project has an id that begins with ${beginning}. Check the id, or name another project with --project.`,
    )
  if (other)
    throw invalidRequest(
      `Several sessions begin with ${beginning}: ${found.id}, ${other.id}, … Pass more of the id.`,
    )
  return found.id!
}

/** What to do about a snapshot that the server ends each time. */
export function lostSnapshot(project: string, cause: Error): StartError {
  return new StartError(
    `Project ${JSON.stringify(project)} could not be read: the database ended the snapshot (${cause.message}). On a standby, set hot_standby_feedback to on, or max_standby_streaming_delay to longer than the project takes, and run the command again.`,
    { cause },
  )
}

/** Writes an export, from its header to the line with the checksum, of what `database` sees: a snapshot. */
export async function writeExport(
  database: Queryable,
  scope: ExportScope,
  output: Pick<ExportOutput, 'write'>,
  options: ExportOptions,
): Promise<ExportCounts> {
  const counts: ExportCounts = { rows: {}, lines: 0, bytes: 0 }
  for (const { name, exported, own } of options.tables)
    if (exported) for (const counted of [name, ...(own?.further_counts ?? [])]) counts.rows[counted] ??= 0
  const hash = createHash('sha256')
  const write = async (lines: string[]) => {
    options.signal.throwIfAborted()
    const bytes = Buffer.from(`${lines.join('\n')}\n`)
    hash.update(bytes)
    await output.write(bytes)
    counts.lines += lines.length
    counts.bytes += bytes.length
    options.onProgress(counts)
  }
  await write([JSON.stringify(headerOf(scope, options))])
  for await (const { lines, counts: found } of walkExport(database, scope, options.tables)) {
    addCounts(counts.rows, found)
    if (lines.length > 0) await write(lines)
  }
  const sha256 = hash.copy().digest('hex')
  await write([JSON.stringify({ kind: 'end', lines: counts.lines, sha256 })])
  return counts
}

function headerOf(scope: ExportScope, { exported_at, schema_version }: ExportOptions): ExportHeader {
  const { project, user, session_id } = scope
  return {
    annals_export: FORMAT_VERSION,
    what: session_id !== undefined ? 'session' : user !== undefined ? 'user' : 'project',
    project_id: project.id,
    project: project.name,
    ...(user !== undefined && { user }),
    ...(session_id !== undefined && { session_id }),
    exported_at,
    annals_version: VERSION,
    schema_version,
  }
}
