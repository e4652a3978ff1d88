import type { Statement } from '../../postgres/statement.js'
import { ownerColumn, type Table } from '../table.js'
import { type ExportLine, wrongLine } from './export_line.js'
import { differenceOf, jsonOf, type RestoreContext, type Tallies } from './restore_context.js'
import { restoreStatements } from './restore_row_queries.js'

/**
 * Restores lines of a table as the table says: what the target has already is compared and left as it is; what it has
 * otherwise is a conflict. A row whose owner is not there is refused, and nothing of the batch is stored.
 * @param owner the table whose rows take these with them, users and projects aside
 * @throws StartError
 */
export async function restoreRows(
  { connection, project_id, dry_run, conflicts }: RestoreContext,
  table: Table,
  lines: ExportLine[],
  owner: Table | undefined,
): Promise<Tallies> {
  const statements = restoreStatements(table, owner)
  const keyOf = (record: Record<string, unknown>) => table.key.map((name) => record[name]).join(', ')
  const found = new Map(
    (await connection.query(statements.find, [project_id, jsonOf(lines)])).map((row) => [keyOf(row), row]),
  )
  const fresh = lines.filter(({ record }) => !found.has(keyOf(record)))
  if (fresh.length > 0 && !dry_run) {
    await requireOwners({ connection, project_id }, table, fresh, statements.lock)
    const rows = await connection.query(statements.restore, [project_id, jsonOf(fresh)])
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
  { connection, project_id }: Pick<RestoreContext, 'connection' | 'project_id'>,
  table: Table,
  lines: ExportLine[],
  lock: Statement | undefined,
): Promise<void> {
  if (!lock) return
  const idOf = ({ record }: ExportLine) => record[ownerColumn(table)] as string
  const rows = await connection.query(lock, [project_id, [...new Set(lines.map(idOf))]])
  const locked = new Set(rows.map((row) => row.id))
  const lost = lines.find((line) => !locked.has(idOf(line)))
  if (lost)
    throw wrongLine(lost.number, `no earlier line is that of its ${table.erased_with}, ${idOf(lost)}.`)
}
