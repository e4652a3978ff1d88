import { type HandledTable, isHandled, isOwner, type Table, type TableOwner } from './table.js'

/** The tables of all modules, each after those that it refers to. */
export interface TableRegistry {
  readonly tables: readonly Table[]
  /** The same, and those that other tables' code handles. */
  readonly all_tables: readonly (Table | HandledTable)[]
}

/** Collects the tables of modules. @throws Error when what they say does not fit together */
export function registryOf(modules: readonly TableOwner[]): TableRegistry {
  const all_tables = modules.flatMap(({ tables }) => tables)
  const tables = all_tables.filter((table): table is Table => !isHandled(table))
  const wrong = modules.flatMap(({ name, tables: own }) =>
    own.flatMap((table) => wrongIn(name, table, tables)),
  )
  if (wrong.length > 0) throw new Error(wrong.join(' '))
  return { tables, all_tables }
}

/** Gaps and wrong references in a table's declaration, as sentences. */
function wrongIn(module: string, table: Table | HandledTable, tables: readonly Table[]): string[] {
  const what = `Table ${table.name} of module ${module}`
  if (isHandled(table)) return table.handled === '' ? [`${what} does not say how it is handled.`] : []
  const wrong: string[] = []
  for (const answer of ['kind', 'key', 'columns', 'erased_with', 'counted', 'exported', 'checks'] as const)
    if (table[answer] === undefined) wrong.push(`${what} does not say its ${answer}.`)
  if (wrong.length > 0) return wrong
  const { kind, key, columns, erased_with, also_erased_with } = table
  for (const owner_kind of [erased_with, also_erased_with?.kind ?? 'any']) {
    const owner = tables.find((other) => other.kind === owner_kind)
    if (!['user', 'project', 'any'].includes(owner_kind) && !(owner && isOwner(owner)))
      wrong.push(`${what} is erased with a ${owner_kind}, of which there are none.`)
  }
  if (tables.some((other) => other !== table && other.kind === kind))
    wrong.push(`${what}: another table has ${kind}s.`)
  for (const name of [...key, ...(table.order ?? [])])
    if (columns[name] === undefined)
      wrong.push(`${what} has no column ${name}, which its key or order names.`)
  return wrong
}
