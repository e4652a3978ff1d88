import { createHash, type Hash } from 'node:crypto'
import { notFound } from '../../errors.js'
import type { Queryable } from '../../postgres/database.js'
import { VERSION } from '../../version.js'
import { addCounts } from '../erase/dependents.js'
import type { Counts, Table } from '../table.js'
import { type ExportHeader, FORMAT_VERSION } from './export_format.js'
import type { ExportOutput } from './export_output.js'
import { FIND_EXPORTED_USER, MEASURE_EXPORT } from './export_queries.js'
import { type ExportScope, findExportedSession, type Place, walkExport } from './walk_export.js'

/** Lines and bytes of an export, and how many rows of what it has. */
export interface ExportCounts {
  rows: Counts
  lines: number
  bytes: number
}

/** Where an export can go on after an interruption: what is written, and where the walk stands. */
export interface Checkpoint {
  counts: ExportCounts
  place: Place
}

export interface ExportOptions {
  tables: readonly Table[]
  schema_version: number
  exported_at: string
  signal: AbortSignal
  /** Called after each piece with what was written so far. */
  onProgress: (counts: Readonly<ExportCounts>) => void
  /** Goes on from a checkpoint, of whose lines this is the hash. */
  from?: (Checkpoint & { hash: Hash }) | undefined
  onCheckpoint?: (checkpoint: Checkpoint) => Promise<void>
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
 * Writes an export, from its header to the line with the checksum.
 *
 * It is not one transaction, which would keep PostgreSQL from cleaning up all that time. The guarantee is that of a
 * log: each session as it was at one of its seqs, complete up to there.
 */
export async function writeExport(
  database: Queryable,
  scope: ExportScope,
  output: Pick<ExportOutput, 'write'>,
  options: ExportOptions,
): Promise<ExportCounts> {
  const { from } = options
  const counts = structuredClone(from?.counts) ?? { rows: {}, lines: 0, bytes: 0 }
  for (const { name, exported, own } of options.tables)
    if (exported) for (const counted of [name, ...(own?.further_counts ?? [])]) counts.rows[counted] ??= 0
  const hash = from?.hash ?? createHash('sha256')
  const write = async (lines: string[]) => {
    options.signal.throwIfAborted()
    const bytes = Buffer.from(`${lines.join('\n')}\n`)
    hash.update(bytes)
    await output.write(bytes)
    counts.lines += lines.length
    counts.bytes += bytes.length
    options.onProgress(counts)
  }
  if (!from) await write([JSON.stringify(headerOf(scope, options))])
  for await (const { lines, counts: found, place } of walkExport(
    database,
    scope,
    options.tables,
    from?.place,
  )) {
    addCounts(counts.rows, found)
    if (lines.length > 0) await write(lines)
    if (place) await options.onCheckpoint?.({ counts: structuredClone(counts), place })
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
