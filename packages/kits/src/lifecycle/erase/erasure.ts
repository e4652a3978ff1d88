import { setTimeout as sleep } from 'node:timers/promises'
import { AnnalsError, notFound } from '../../errors.js'
import { dropTerms } from '../../lists/listed.js'
import { within } from '../../lists/tenant_resource.js'
import type { Database, Tenant } from '../../postgres/database.js'
import { isForeignKeyViolation } from '../../postgres/database_errors.js'
import { prepared, type Statement } from '../../postgres/statement.js'
import {
  type Counts,
  type Dependents,
  type ErasedStep,
  type EraseOptions,
  isOwner,
  orderOf,
  ownerColumn,
  type Table,
} from '../table.js'

/** Rows of one table that one statement erases at most: some ten milliseconds' work. */
export const ROWS_AT_ONCE_MAX = 2_000

type EraseSlice = Dependents['eraseSome']

export class DependentTables implements Dependents {
  private readonly slices: readonly EraseSlice[]

  constructor(tables: readonly Table[], kind: string) {
    this.slices = tables.map((table) => sliceOf(table, kind))
  }

  async eraseSome(tenant: Tenant, owner_ids: string[]) {
    const counts: Counts = {}
    let has_all = true
    for (const slice of this.slices) {
      const step = await slice(tenant, owner_ids)
      addCounts(counts, step.counts)
      has_all &&= step.has_all
    }
    return { counts, has_all }
  }
}

export function addCounts(counts: Counts, others: Counts): void {
  for (const [name, count] of Object.entries(others)) counts[name] = (counts[name] ?? 0) + count
}

function sliceOf(table: Table, kind: string): EraseSlice {
  const is_second = table.also_erased_with?.kind === kind
  const own = is_second ? table.also_erased_with?.eraseSomeOf : table.own?.eraseSomeOf
  if (typeof own === 'function') return own
  const of_owners = own ?? eraseRows(table, is_second ? `${kind}_id` : undefined).of_owners
  return async ({ database, project_id }, owner_ids) => {
    const [row] = await database.query(of_owners, [project_id, owner_ids, ROWS_AT_ONCE_MAX])
    const gone = Number(row!.gone)
    return { counts: table.counted ? { [table.name]: gone } : {}, has_all: gone < ROWS_AT_ONCE_MAX }
  }
}

/** Sessions, learning spaces and the like that one transaction erases at most: each may have 256 terms. */
const OWNERS_AT_ONCE_MAX = 100
const ATTEMPTS_MAX = 10
const PAUSE_MS = 120
const STILL_REFERRED_TO =
  'The project still has data: requests add to it, or a newer version of Annals stored what this one does not know. Erase it again, at a node of the newest version.'

interface Owner {
  table: Table
  erasure: ReturnType<typeof eraseOwners>
  dependents: Dependents
}

/**
 * Erases what the tables of all modules have: the one place that knows with what each row goes. Each session, space and
 * the like is there or gone as a whole for everybody; all work is done in short transactions of a bounded number of
 * rows. What breaks off is taken up by erasing again, or by housekeeping.
 */
export class Erasure {
  /** Tables that refer to others come first. */
  private readonly tables: readonly Table[]
  private readonly owners = new Map<string, Owner>()
  private readonly rowsOfUser: Dependents

  /** @param tables each after those that it refers to */
  constructor(tables: readonly Table[]) {
    this.tables = tables.toReversed()
    for (const table of this.tables.filter(isOwner)) {
      const dependents = this.tables.filter(
        ({ erased_with, also_erased_with }) =>
          [table.kind, 'any'].includes(erased_with) || also_erased_with?.kind === table.kind,
      )
      const erasure = eraseOwners(table)
      this.owners.set(table.kind, { table, erasure, dependents: new DependentTables(dependents, table.kind) })
    }
    this.rowsOfUser = new DependentTables(
      this.tables.filter((table) => table.erased_with === 'user' && !isOwner(table)),
      'user',
    )
  }

  dependentsOf(kind: string): Dependents {
    return this.owners.get(kind)!.dependents
  }

  receiptNames(): string[] {
    return this.tables.flatMap(({ name, counted, own, also_erased_with }) =>
      counted ? [name, ...(own?.further_counts ?? []), ...(also_erased_with?.counts ?? [])] : [],
    )
  }

  /** Erases rows of a kind by their ids, those that exist. Returns what went, by the names of a receipt. */
  async erase(
    tenant: Tenant<Database>,
    kind: string,
    ids: string[],
    options: EraseOptions = {},
  ): Promise<Counts> {
    const owner = this.owners.get(kind)!
    const erased: Counts = {}
    const add = (counts: Counts) => {
      addCounts(erased, counts)
      options.onStep?.(counts)
    }
    for (let rest = ids; rest.length > 0; ) {
      const some = rest.slice(0, OWNERS_AT_ONCE_MAX)
      const step = await within(tenant, (inside) => eraseSome(inside, owner, some, options))
      add(step.counts)
      for (const id of step.remains) add(await eraseRemains(tenant, owner, id, options))
      rest = [...step.left, ...rest.slice(some.length)]
    }
    await this.settle(tenant)
    return erased
  }

  /** Deletes outside of the database what erasures have given up. Returns how much is left, for housekeeping. */
  async settle(tenant: Tenant): Promise<number> {
    let left = 0
    for (const { own } of this.tables) left += (await own?.settle?.(tenant)) ?? 0
    return left
  }

  /** Finishes erasures that crashed processes began in a project. */
  async eraseAllRemains(tenant: Tenant<Database>, signal?: AbortSignal): Promise<void> {
    for (const { table, dependents } of this.owners.values())
      await table.own?.eraseAllRemains?.(tenant, dependents, signal)
  }

  /**
   * Erases a user and everything of the user's; the user goes with the last transaction. When it breaks off, what is
   * left is still the user's, and erasing again goes on. @throws AnnalsError user_not_found
   */
  async eraseUser(tenant: Tenant<Database>, identifier: string): Promise<Counts> {
    const erased: Counts = Object.fromEntries(this.receiptNames().map((name) => [name, 0]))
    for (let isFirst = true; ; isFirst = false) {
      const step = await within(tenant, (inside) => this.eraseSomeOfUser(inside, identifier))
      // A concurrent erasure of the same user may have deleted the last of it.
      if (!step && isFirst) throw notFound('user')
      if (!step) return erased
      addCounts(erased, step.counts)
      for (const { owner, id } of step.remains) addCounts(erased, await eraseRemains(tenant, owner, id))
      if (step.isLast) return erased
    }
  }

  /**
   * Erases a project. Its keys go first, so that no new request gets in; then its data; what requests under way add
   * meanwhile keeps the project's row from going, and is erased in another round.
   * @throws AnnalsError project_not_found; unavailable, if there are rows of tables that only a newer version knows
   */
  async eraseProject(tenant: Tenant<Database>): Promise<void> {
    const { database, project_id } = tenant
    for (let attempt = 1; ; attempt++) {
      await database.query(ERASE.api_keys, [project_id])
      try {
        for (const owner of this.owners.values()) await this.eraseOwnersOfProject(tenant, owner)
        await this.eraseAllRemains(tenant)
        await this.eraseOtherRowsOfProject(tenant)
        await database.transaction(async (connection) => {
          if ((await connection.query(ERASE.project, [project_id])).length === 0) throw notFound('project')
          // What locked the project's row in the meantime may have written rows without a foreign key to it.
          await this.eraseOtherRowsOfProject({ database: connection, project_id })
        })
        await this.settle(tenant)
        return
      } catch (error) {
        if (!isForeignKeyViolation(error)) throw error
        if (attempt >= ATTEMPTS_MAX) throw new AnnalsError('unavailable', STILL_REFERRED_TO, { cause: error })
      }
      // All attempts together outlast the seconds in which nodes still take a key that is gone.
      await sleep(PAUSE_MS * attempt)
    }
  }

  private async eraseOtherRowsOfProject(tenant: Tenant): Promise<void> {
    for (const table of this.tables)
      if (!this.owners.has(table.kind)) await eraseRowsOfProject(tenant, eraseRows(table).of_project)
  }

  /**
   * A bounded piece of a user, and the user if that was all. While it holds the user's row, nobody can make anything
   * new for the user: each round finds less than the one before. Undefined: there is no such user.
   */
  private async eraseSomeOfUser(tenant: Tenant, identifier: string) {
    const { database, project_id } = tenant
    const [user] = await database.query(ERASE.lock_user, [project_id, identifier])
    if (!user) return undefined
    const counts: Counts = {}
    const remains: Array<{ owner: Owner; id: string }> = []
    let isLast = true
    for (const owner of this.owners.values()) {
      if (owner.table.erased_with !== 'user') continue
      const ids = await findIds(tenant, owner.erasure.find_of_owner, user.id!)
      const step = await eraseSome(tenant, owner, ids, {})
      addCounts(counts, step.counts)
      remains.push(...step.remains.map((id) => ({ owner, id })))
      if (ids.length === OWNERS_AT_ONCE_MAX || step.left.length > 0) isLast = false
    }
    const rows = await this.rowsOfUser.eraseSome(tenant, [user.id!])
    addCounts(counts, rows.counts)
    isLast &&= rows.has_all
    if (isLast) await database.query(ERASE.user, [project_id, user.id!])
    return { counts, remains, isLast }
  }

  private async eraseOwnersOfProject(tenant: Tenant<Database>, owner: Owner): Promise<void> {
    for (;;) {
      const ids = await findIds(tenant, owner.erasure.find_of_project)
      if (ids.length === 0) return
      await this.erase(tenant, owner.table.kind, ids)
    }
  }
}

async function findIds({ database, project_id }: Tenant, statement: Statement, ...owner: string[]) {
  const rows = await database.query(statement, [project_id, ...owner, OWNERS_AT_ONCE_MAX])
  return rows.map((row) => row.id!)
}

function eraseRemains(
  tenant: Tenant<Database>,
  { table, dependents }: Owner,
  id: string,
  { onSlice }: EraseOptions = {},
): Promise<Counts> {
  return table.own!.eraseRemains!(tenant, id, dependents, onSlice)
}

async function eraseSome(
  tenant: Tenant,
  { table, erasure, dependents }: Owner,
  ids: string[],
  options: EraseOptions,
): Promise<ErasedStep> {
  if (table.own?.eraseSome) return table.own.eraseSome(tenant, ids, dependents, options)
  if (ids.length === 0) return { counts: {}, remains: [], left: [] }
  const { database, project_id } = tenant
  await database.query(erasure.lock, [project_id, ids])
  const { counts, has_all } = await dependents.eraseSome(tenant, ids)
  if (!has_all) return { counts, remains: [], left: ids }
  if (erasure.terms) await database.query(erasure.terms, [project_id, ids])
  const gone = (await database.query(erasure.rows, [project_id, ids])).length
  if (table.counted) counts[table.name] = gone
  return { counts, remains: [], left: [] }
}

async function eraseRowsOfProject({ database, project_id }: Tenant, of_project: Statement): Promise<void> {
  for (let gone = ROWS_AT_ONCE_MAX; gone === ROWS_AT_ONCE_MAX; ) {
    const [row] = await database.query(of_project, [project_id, ROWS_AT_ONCE_MAX])
    gone = Number(row!.gone)
  }
}

/**
 * Erasing rows of a table in slices. These are found by ctid, which needs no index but the one that finds the owner.
 * Nobody changes the rows meanwhile: their owner is deleted already, or locked.
 */
export function eraseRows(
  table: Table,
  further_owner?: string,
): { of_owners: Statement; of_project: Statement } {
  const { name, key } = table
  const slice = (suffix: string, condition: string) =>
    prepared(
      `erase_${name}_${suffix}`,
      `
WITH gone AS (
  DELETE FROM ${name} AS t WHERE t.project_id = $1 AND t.ctid = ANY (ARRAY(
    SELECT o.ctid FROM ${name} o WHERE o.project_id = $1 ${condition}))
  RETURNING 1 AS one
)
SELECT count(*) AS gone FROM gone`,
    )
  return {
    of_owners: slice(
      further_owner === undefined ? 'of_owners' : `of_${further_owner}s`,
      `AND o.${further_owner ?? ownerColumn(table)} = ANY ($2::uuid[]) LIMIT $3`,
    ),
    of_project: slice('of_project', `ORDER BY ${key.map((column) => `o.${column}`).join(', ')} LIMIT $2`),
  }
}

export function eraseOwners(table: Table) {
  const { name, document } = table
  const find = (suffix: string, condition: string, order: readonly string[], limit: string) =>
    prepared(
      `find_${name}_${suffix}`,
      `SELECT t.id FROM ${name} t WHERE t.project_id = $1${condition} ORDER BY ${order.map((column) => `t.${column}`).join(', ')} LIMIT ${limit}`,
    )
  return {
    find_of_owner: find('of_owner', ` AND t.${ownerColumn(table)} = $2`, orderOf(table), '$3'),
    find_of_project: find('of_project', '', ['id'], '$2'),
    lock: prepared(
      `lock_${name}_by_id`,
      `SELECT t.id FROM ${name} t WHERE t.project_id = $1 AND t.id = ANY ($2::uuid[]) ORDER BY t.id FOR UPDATE`,
    ),
    /** Found by the documents of the rows, and so before these are deleted. */
    terms: document && prepared(`erase_terms_of_${name}`, dropTerms({ table: name, document })),
    rows: prepared(
      `erase_${name}_by_id`,
      `DELETE FROM ${name} AS t WHERE t.project_id = $1 AND t.id = ANY ($2::uuid[]) RETURNING t.id`,
    ),
  }
}

/** Taking out a project and a user. */
export const ERASE = {
  /** Takes the user out of reach of new rows until the transaction ends. Parameters: $1 project, $2 identifier. */
  lock_user: prepared(
    'lock_user',
    'SELECT u.id FROM users u WHERE u.project_id = $1 AND u.identifier = $2 FOR UPDATE',
  ),
  user: prepared('delete_user', 'DELETE FROM users WHERE project_id = $1 AND id = $2'),
  api_keys: prepared('erase_project_api_keys', 'DELETE FROM api_keys WHERE project_id = $1'),
  /** Parameters: $1 project. Row: one if it was there. */
  project: prepared('erase_project', 'DELETE FROM projects AS p WHERE p.id = $1 RETURNING p.id'),
} as const
