import { StartError } from '../../errors.js'
import type { Database, Queryable } from '../../postgres/database.js'
import type { TableRegistry } from '../registry.js'
import { type BackedUpTable, backedUp, type Counts } from '../table.js'
import {
  checkExport,
  type ImportOptions,
  type ImportTotals,
  importExport,
} from '../transfer/import_export.js'
import { CATALOGUE_ROWS_MAX, findCatalogue, restoreCatalogue } from './backup_queries.js'
import { type Backup, type CatalogueRow, readCatalogueRows, readSection } from './read_backup.js'

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
    for (const table of backedUp(registry.all_tables)) {
      let rows: CatalogueRow['row'][] = []
      const store = async () => {
        if (rows.length > 0) await storeRows(connection, table, rows)
        rows = []
      }
      for await (const read of readCatalogueRows(backup))
        for (const { row } of read.filter((one) => one.table === table.name))
          if (rows.push(row) === CATALOGUE_ROWS_MAX) await store()
      await store()
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
