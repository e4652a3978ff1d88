import { setTimeout as sleep } from 'node:timers/promises'
import type { DatabasePool, Parameter, Row } from '../database.js'
import { planned, type Statement, textArray } from '../statement.js'
import { call, storedFunctionIn } from '../stored_function.js'

export const ASK_MACHINE = storedFunctionIn('#citus/ask_machine.sql')

/**
 * A project that each machine has, whether it exists or not: of so many ids for each shard, one falls on every shard. Rows:
 * address, project_id.
 */
const LIST_MACHINES = planned(
  'list_machines',
  `
WITH ids AS MATERIALIZED (
  SELECT get_shard_id_for_distribution_column('users', md5(i.n::text)::uuid) AS shardid, min(md5(i.n::text)) AS id
  FROM generate_series(1, 50 * (SELECT count(*) FROM pg_dist_shard s WHERE s.logicalrelid = 'users'::regclass)) AS i (n)
  GROUP BY 1
)
SELECT n.nodename || ':' || n.nodeport AS address, min(ids.id)::uuid AS project_id
FROM ids JOIN pg_dist_placement p ON p.shardid = ids.shardid JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
GROUP BY 1`,
)

/** How long it is believed which machines have shards. */
const BELIEVED_MS = 30_000
/** How long a look-up waits for a machine. A later answer counts for the next look-up. */
const MACHINE_MS_MAX = 5_000

interface Machine {
  readonly address: string
  readonly project_id: string
}

/** A machine, which may be away. */
interface State {
  /** Look-ups that it has not answered in time. */
  readonly late: Set<string>
  /** Answers that came late. */
  readonly kept: Map<string, Row[][]>
  /** It was said that it is away. */
  isTold: boolean
}

/**
 * A pool of a cluster that asks each machine for itself for what concerns every project, so that a machine that is away
 * delays only its own projects. Citus would ask all of them in one statement, which fails if any is away.
 *
 * @param onAway called once when a machine does not answer, or not in time
 */
export function machineByMachine(
  pool: DatabasePool,
  onAway: (machine: string, error: unknown) => void,
  ms_max = MACHINE_MS_MAX,
): DatabasePool {
  const machines = new Machines(pool, onAway, ms_max)
  // All else is the pool's own.
  return Object.assign(Object.create(pool) as DatabasePool, {
    query: (statement: Statement, parameters: readonly Parameter[], onSending?: () => void) =>
      statement.on_shards
        ? machines.ask(statement, parameters)
        : pool.query(statement, parameters, onSending),
  })
}

class Machines {
  private readonly states = new Map<string, State>()
  private listed: { machines: Promise<Machine[]>; until: number } | undefined

  constructor(
    private readonly pool: DatabasePool,
    private readonly onAway: (machine: string, error: unknown) => void,
    private readonly ms_max: number,
  ) {}

  /** The rows of every machine that answers, by turns, since each may have more than fit. */
  async ask(statement: Statement, parameters: readonly Parameter[]): Promise<Row[]> {
    const machines = await this.list()
    // The extension is there, and the tables are not distributed.
    if (machines.length === 0) return this.pool.query(statement, parameters)
    const { name, on_shards } = statement
    const values = [textArray(on_shards!.tables), on_shards!.text, textArray(parameters.map(asText))]
    const look = { name, values }
    const found: Row[][] = []
    const failures: Array<{ machine: Machine; error: unknown }> = []
    // One after the other, on one connection.
    for (const machine of machines)
      await this.askOne(machine, look).then(
        (rows) => found.push(...rows),
        (error: unknown) => failures.push({ machine, error }),
      )
    // None of them is to blame: the coordinator is away, or this is the end.
    if (failures.length === machines.length) throw failures[0]!.error
    for (const { machine, error } of failures) this.away(machine, error)
    return byTurns(found)
  }

  private async list(): Promise<Machine[]> {
    const now = performance.now()
    if (!this.listed || this.listed.until < now) {
      const machines = this.pool
        .query(LIST_MACHINES, [])
        .then((rows) => rows.map((row) => ({ address: row.address!, project_id: row.project_id! })))
      const listed = { machines, until: now + BELIEVED_MS }
      this.listed = listed
      machines.catch(() => {
        if (this.listed === listed) this.listed = undefined
      })
    }
    return this.listed.machines
  }

  /** The rows of each of its shards. */
  private async askOne(machine: Machine, { name, values }: Look): Promise<Row[][]> {
    const state = this.stateOf(machine)
    const kept = state.kept.get(name)
    if (kept) {
      state.kept.delete(name)
      return kept
    }
    // One that hangs holds a connection, and not another one for each look.
    if (state.late.size > 0) return []
    const asked = call(this.pool, ASK_MACHINE, machine.project_id, ...values).then(rowsOfShards)
    const late = new AbortController()
    const isLate = sleep(this.ms_max, undefined, { signal: late.signal, ref: false })
    isLate.catch(() => {})
    const rows = await Promise.race([asked, isLate])
    late.abort()
    if (rows) {
      state.isTold = false
      return rows
    }
    state.late.add(name)
    asked
      .then(
        (found) => state.kept.set(name, found),
        () => {},
      )
      .finally(() => state.late.delete(name))
    throw new Error('it does not answer in time')
  }

  private away({ address }: Machine, error: unknown): void {
    const state = this.stateOf({ address })
    if (!state.isTold) this.onAway(address, error)
    state.isTold = true
    // Its shards may be elsewhere by now.
    this.listed = undefined
  }

  private stateOf({ address }: Pick<Machine, 'address'>): State {
    const state = this.states.get(address) ?? { late: new Set(), kept: new Map(), isTold: false }
    this.states.set(address, state)
    return state
  }
}

interface Look {
  name: string
  /** Its tables, the query and its parameters, as ASK_MACHINE takes them. */
  values: string[]
}

/** As the driver sends it. */
function asText(value: Parameter): string | null {
  if (value === null) return null
  return Array.isArray(value) ? `{${value.join(',')}}` : String(value)
}

/** Values as the driver has them. */
function rowsOfShards(answer: string | null): Row[][] {
  const shards = JSON.parse(answer!) as Array<Array<Record<string, unknown>>>
  return shards.map((rows) =>
    rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, textOf(value)]))),
  )
}

function textOf(value: unknown): string | null {
  if (typeof value === 'boolean') return value ? 't' : 'f'
  return value === null ? null : String(value)
}

/** The first of each, then the second of each, and so on. */
function byTurns(lists: readonly Row[][]): Row[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length))
  const turns = Array.from({ length: longest }, (_, place) =>
    lists.flatMap((list) => list.slice(place, place + 1)),
  )
  return turns.flat()
}
