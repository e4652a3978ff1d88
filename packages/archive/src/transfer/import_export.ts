import { StartError } from '@annals/kits/errors.js'
import { Erasure } from '@annals/kits/lifecycle/erase/erasure.js'
import { isOwner, ownerColumn, type Table } from '@annals/kits/lifecycle/table.js'
import type { Database, Tenant } from '@annals/kits/postgres/database.js'
import {
  isForeignKeyViolation,
  isRefusedData,
  isUniqueViolation,
} from '@annals/kits/postgres/database_errors.js'
import type { Statement } from '@annals/kits/postgres/statement.js'
import { ownOf } from '../tables.js'
import { type LineKind, lineKinds } from './export_format.js'
import { type ExportLine, wrongLine } from './export_line.js'
import type { ExportReader } from './read_export.js'
import { type Conflict, differenceOf, jsonOf, type RestoreContext, type Tallies } from './restore_context.js'
import { restoreStatements } from './restore_row_queries.js'

/** Limits of one transaction: a larger one is no faster, and an interruption would lose more. */
const BATCH_LINES_MAX = 2_000
const BATCH_CHARACTERS_MAX = 4 * 1024 * 1024
const ATTEMPTS_MAX = 5
/** Conflicts that are kept in mind for the lines that belong to them, which follow within a page of an export. */
const REFUSED_MAX = 1_000

export interface ImportTotals {
  tallies: Tallies
  conflicts: number
}

export interface ImportOptions {
  tables: readonly Table[]
  project_id: string
  dry_run: boolean
  signal: AbortSignal
  /** Called after each transaction with the byte of the file up to which everything is stored. */
  onProgress: (bytes: number) => void
  onConflict: (conflict: Conflict) => void
  /** Told what each transaction stored. */
  onStored?: (tallies: Tallies) => void
}

/** Reads a whole export and stores nothing. @throws StartError that names the line and what is wrong with it */
export async function checkExport(
  reader: ExportReader,
  signal: AbortSignal,
  onProgress: (bytes: number) => void,
): Promise<void> {
  for await (const lines of reader.read()) {
    signal.throwIfAborted()
    onProgress(lines.at(-1)!.end_offset)
  }
}

/**
 * Restores an export, one bounded batch per transaction. If it is interrupted, it has stored the beginning of the
 * export, each log without gaps; run again, it stores the rest. While one batch is stored, the next one is read.
 * @throws StartError that names the line and what is wrong with it; the lines before it may be stored by then
 */
export async function importExport(
  database: Database,
  reader: ExportReader,
  options: ImportOptions,
): Promise<ImportTotals> {
  const kinds = lineKinds(options.tables)
  const restoring = new Restoring(database, kinds, options)
  let running = Promise.resolve()
  try {
    for await (const lines of batchesOf(reader, kinds)) {
      await running
      running = restoring.store(lines)
      // It is thrown where it is waited for.
      running.catch(() => {})
      options.signal.throwIfAborted()
    }
  } finally {
    await running
  }
  // What was being erased when the file was written.
  if (!options.dry_run)
    await new Erasure(options.tables).eraseAllRemains(
      { database, project_id: options.project_id },
      options.signal,
    )
  return restoring.totals
}

/** Lines that fit into one transaction, none twice: a repeated line is to find itself in the database. */
async function* batchesOf(
  reader: ExportReader,
  kinds: ReadonlyMap<string, LineKind>,
): AsyncGenerator<ExportLine[]> {
  let batch = new Map<string, ExportLine>()
  let characters = 0
  for await (const lines of reader.read())
    for (const line of lines) {
      const { table, key } = kinds.get(line.kind)!
      const id = `${table!.name}/${key.map((name) => line.record[name]).join('/')}`
      const is_full = batch.size === BATCH_LINES_MAX || characters + line.text.length > BATCH_CHARACTERS_MAX
      if (batch.has(id) || (batch.size > 0 && is_full)) {
        yield [...batch.values()]
        batch = new Map()
        characters = 0
      }
      batch.set(id, line)
      characters += line.text.length
    }
  if (batch.size > 0) yield [...batch.values()]
}

class Restoring {
  readonly totals: ImportTotals
  /** What was in conflict lately, as kind and id: the lines that belong to it are passed over. */
  private readonly refused = new Set<string>()

  constructor(
    private readonly database: Database,
    private readonly kinds: ReadonlyMap<string, LineKind>,
    private readonly options: ImportOptions,
  ) {
    const names = options.tables
      .filter(({ exported }) => exported)
      .flatMap(({ name, own }) => [name, ...(own?.further_counts ?? [])])
    const nothing = () => ({ stored: 0, known: 0 })
    this.totals = { tallies: Object.fromEntries(names.map((name) => [name, nothing()])), conflicts: 0 }
  }

  async store(lines: ExportLine[]): Promise<void> {
    const { tallies, conflicts } = await this.restore(lines)
    for (const [name, { stored, known }] of Object.entries(tallies)) {
      this.totals.tallies[name]!.stored += stored
      this.totals.tallies[name]!.known += known
    }
    if (!this.options.dry_run) this.options.onStored?.(tallies)
    this.totals.conflicts += conflicts.length
    for (const conflict of conflicts) {
      this.options.onConflict(conflict)
      this.refused.add(`${conflict.kind}/${conflict.id}`)
    }
    for (const oldest of this.refused) {
      if (this.refused.size <= REFUSED_MAX) break
      this.refused.delete(oldest)
    }
    this.options.onProgress(lines.at(-1)!.end_offset)
  }

  /** Retries a transaction if another one created the same user or session at the same moment. */
  private async restore(lines: ExportLine[]): Promise<{ tallies: Tallies; conflicts: Conflict[] }> {
    const { project_id, dry_run } = this.options
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.database.transaction((database) =>
          this.restoreBatch({ database, project_id, dry_run, conflicts: [] }, lines),
        )
      } catch (error) {
        const isTaken = isUniqueViolation(error) || isForeignKeyViolation(error)
        if (isTaken && attempt < ATTEMPTS_MAX) continue
        if (!isRefusedData(error)) throw error
        const { message, detail = message } = error as { message: string; detail?: string }
        throw new StartError(
          `Lines ${lines[0]!.number} to ${lines.at(-1)!.number}: they cannot be stored (${detail}).`,
          { cause: error },
        )
      }
    }
  }

  /** Table by table, each after those that it refers to. What belongs to what is in conflict is not stored. */
  private async restoreBatch(context: RestoreContext, lines: ExportLine[]) {
    const tallies: Tallies = {}
    for (const table of this.options.tables) {
      const refused = new Set([...this.refused, ...context.conflicts.map(({ kind, id }) => `${kind}/${id}`)])
      const own = lines.filter(
        (line) => this.kinds.get(line.kind)!.table === table && !refused.has(ownerOf(table, line)),
      )
      if (own.length === 0) continue
      const { restore, restored } = ownOf(table)
      const owner = this.options.tables.find((other) => other.kind === table.erased_with && isOwner(other))
      const stored = await (restore?.(context, own) ?? restoreRows(context, table, own, owner))
      Object.assign(tallies, stored)
      if (!context.dry_run && stored[table.name]!.stored > 0) await restored?.(context)
    }
    return { tallies, conflicts: context.conflicts }
  }
}

/** What a line belongs to, as kind and id. */
function ownerOf(table: Table, { kind, record }: ExportLine): string {
  return kind === table.kind
    ? `${table.erased_with}/${record[ownerColumn(table)]}`
    : `${table.kind}/${record[`${table.kind}_id`]}`
}

/**
 * Restores lines of a table as the table says: what the target has already is compared and left as it is; what it has
 * otherwise is a conflict. A row whose owner is not there is refused, and nothing of the batch is stored.
 * @param owner the table whose rows take these with them, users and projects aside
 * @throws StartError
 */
async function restoreRows(
  { database, project_id, dry_run, conflicts }: RestoreContext,
  table: Table,
  lines: ExportLine[],
  owner: Table | undefined,
): Promise<Tallies> {
  const statements = restoreStatements(table, owner)
  const keyOf = (record: Record<string, unknown>) => table.key.map((name) => record[name]).join(', ')
  const found = new Map(
    (await database.query(statements.find, [project_id, jsonOf(lines)])).map((row) => [keyOf(row), row]),
  )
  const fresh = lines.filter(({ record }) => !found.has(keyOf(record)))
  if (fresh.length > 0 && !dry_run) {
    await requireOwners({ database, project_id }, table, fresh, statements.lock)
    const rows = await database.query(statements.restore, [project_id, jsonOf(fresh)])
    const stored = new Set(rows.map(keyOf))
    const lost = fresh.find(({ record }) => !stored.has(keyOf(record)))
    if (lost)
      throw wrongLine(
        lost.number,
        `no earlier line is that of its user, ${JSON.stringify(lost.record.user)}.`,
      )
  }
  let known = 0
  for (const { record } of lines) {
    const row = found.get(keyOf(record))
    const reason = row && differenceOf(record, row, table.unchanging ?? [])
    if (reason) conflicts.push({ kind: table.kind, id: keyOf(record), reason })
    else if (row) known += 1
  }
  return { [table.name]: { stored: fresh.length, known } }
}

/** Locks what new rows belong to, so that it is not erased meanwhile. */
async function requireOwners(
  { database, project_id }: Tenant,
  table: Table,
  lines: ExportLine[],
  lock: Statement | undefined,
): Promise<void> {
  if (!lock) return
  const idOf = ({ record }: ExportLine) => record[ownerColumn(table)] as string
  const rows = await database.query(lock, [project_id, [...new Set(lines.map(idOf))]])
  const locked = new Set(rows.map((row) => row.id))
  const lost = lines.find((line) => !locked.has(idOf(line)))
  if (lost)
    throw wrongLine(lost.number, `no earlier line is that of its ${table.erased_with}, ${idOf(lost)}.`)
}
