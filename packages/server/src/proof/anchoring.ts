import { type KeyObject, randomUUID } from 'node:crypto'
import { StartError } from '@annals/kits/errors.js'
import type { Database, Parameter, Queryable, Row } from '@annals/kits/postgres/database.js'
import { isForeignKeyViolation, isUnavailable } from '@annals/kits/postgres/database_errors.js'
import { type Anchor, after, type Before, FIRST, type Leaf, pathsOf, signAnchor } from './anchor.js'
import {
  ADD_ANCHOR,
  ADD_DESTINATION,
  ADD_LEAVES,
  FIND_CHANGED_HEADS,
  FIND_GONE_HEADS,
  FORGET_CHAIN,
  FORGET_HEADS,
  FORGET_LEAVES,
  HOLD,
  LIST_CHAINED_PROJECTS,
  SET_ANCHORED_HEADS,
  TAKE_DESTINATION,
} from './anchor_queries.js'
import type { Destination } from './destinations.js'

/** Leaves of one anchor: hashing them takes some milliseconds. */
const LEAVES_MAX = 1_000
/** Longer than sending one anchor takes. */
const HELD_S = 60
const FAILURE_LENGTH_MAX = 300

export interface AnchorParts {
  database: Database
  destination: Destination
  key: KeyObject
  signal: AbortSignal
  /** Least time after the last pass, whichever node made it. */
  rest_s?: number
  /** Waits after each anchor, for as long as that seems right. */
  pause?: (worked_ms: number) => Promise<unknown>
}

export interface Anchored {
  anchors: number
  heads: number
  projects: number
  /** Why heads of some projects are left for the next pass: their machine of the cluster is away. */
  left?: Error
}

/**
 * Anchors the heads that changed since the last pass. Of a destination there is one pass at a time, at whatever node or
 * command: its row is held, and a number is given to an anchor by the row's own. An anchor that may not have arrived is
 * sent again before the next one is made. Undefined: somebody else is at it, or was a moment ago.
 */
export async function anchorHeads(parts: AnchorParts): Promise<Anchored | undefined> {
  const { database, destination, rest_s = 0 } = parts
  await database.query(ADD_DESTINATION, [destination.name, randomUUID(), FIRST.previous])
  const holder = randomUUID()
  const [row] = await database.query(TAKE_DESTINATION, [destination.name, holder, HELD_S, rest_s])
  if (!row) return undefined
  const hold: Hold = async (connection, step, ...values) => {
    const [held] = await connection.query(HOLD[step], [destination.name, holder, ...values])
    if (!held) throw new StartError('Another process has taken over anchoring there, and continues.')
  }
  const fail = ({ cause, message }: Error) => {
    const reason = cause instanceof Error ? cause.message : message
    return hold(database, 'fail', reason.slice(0, FAILURE_LENGTH_MAX))
  }
  try {
    const anchored = await new Pass(parts, hold, row).run()
    await (anchored.left ? fail(anchored.left) : hold(database, 'leave'))
    return anchored
  } catch (error) {
    await fail(parts.signal.aborted ? new Error('it was stopped') : (error as Error)).catch(() => {})
    throw error
  }
}

/** Takes a step as the destination's holder. @throws StartError if it is that no more */
type Hold = (connection: Queryable, step: keyof typeof HOLD, ...values: Parameter[]) => Promise<void>

class Pass {
  private chain: string
  private before: Before
  private readonly done: Anchored = { anchors: 0, heads: 0, projects: 0 }
  private readonly projects = new Set<string>()

  constructor(
    private readonly parts: AnchorParts,
    private readonly hold: Hold,
    private readonly row: Row,
  ) {
    this.chain = row.chain!
    this.before = { nth: Number(row.nth), previous: row.previous! }
  }

  async run(): Promise<Anchored> {
    const { database, signal } = this.parts
    const pending = this.row.line == null ? undefined : (JSON.parse(this.row.line) as Anchor)
    await this.goOnAfter(pending)
    for (const { id } of await database.query(LIST_CHAINED_PROJECTS, [])) {
      signal.throwIfAborted()
      await this.anchorProject(id!)
    }
    return this.done
  }

  /** Sends what may not have arrived, unless the destination goes on differently: then after what it has. */
  private async goOnAfter(pending: Anchor | undefined): Promise<void> {
    const { destination, database } = this.parts
    const last = await destination.last?.()
    const knows = ({ nth, previous }: Before) =>
      last === undefined || (last.nth === nth && last.previous === previous)
    const hasAll = knows(this.before)
    if (pending && (hasAll || knows({ nth: pending.nth - 1, previous: pending.previous })))
      return this.send(this.row.line!, pending)
    if (hasAll && !pending) return
    const { nth, previous } = await destination.checkedLast!()
    const old = this.chain
    this.chain = randomUUID()
    this.before = { nth, previous }
    await this.hold(database, 'adopt', nth, previous, this.chain)
    for (const { id } of await database.query(LIST_CHAINED_PROJECTS, []))
      await this.unlessAway(() => database.query(FORGET_CHAIN, [id!, old]))
  }

  /** Work on one project's machine. Where that is away, other projects go on as long as the destination's row answers. */
  private async unlessAway(work: () => Promise<Row[]>): Promise<Row[]> {
    try {
      return await work()
    } catch (error) {
      if (!isUnavailable(error)) throw error
      await this.hold(this.parts.database, 'renew', HELD_S)
      this.done.left ??= error as Error
      return []
    }
  }

  private async anchorProject(project: string): Promise<void> {
    const { database } = this.parts
    let from: string | null = null
    do {
      const place = [project, this.chain, from, LEAVES_MAX]
      const rows: Row[] = await this.unlessAway(() => database.query(FIND_CHANGED_HEADS, place))
      await this.anchor(project, leavesOf(rows, 'live'))
      from = rows.length < LEAVES_MAX ? null : rows.at(-1)!.session_id!
    } while (from !== null)
    for (;;) {
      const place = [project, this.chain, LEAVES_MAX]
      const rows = await this.unlessAway(() => database.query(FIND_GONE_HEADS, place))
      await this.anchor(project, leavesOf(rows, 'erased'))
      if (rows.length < LEAVES_MAX) break
    }
  }

  private async anchor(project: string, leaves: Leaf[]): Promise<void> {
    if (leaves.length === 0) return
    const { database, key, pause } = this.parts
    const began = performance.now()
    const anchor = signAnchor(key, project, leaves, this.before)
    const line = JSON.stringify(anchor)
    const { nth, previous } = after(anchor)
    await this.hold(database, 'number', HELD_S, nth, previous, line)
    this.before = { nth, previous }
    await this.send(line, anchor)
    await pause?.(performance.now() - began)
  }

  private async send(line: string, anchor: Anchor): Promise<void> {
    const { destination, signal } = this.parts
    await destination.send(line, anchor, signal).catch((error: Error) => {
      signal.throwIfAborted()
      throw new StartError(
        `The anchor did not arrive (${error.message}). It is sent again, unchanged, by the next pass.`,
        { cause: error },
      )
    })
    await this.keep(anchor, true).catch((error) => {
      // Without the rows of its project, whose machine went away, the same heads are anchored once more later.
      if (isUnavailable(error)) this.done.left ??= error
      // Or the project was erased meanwhile, with all that it had.
      else if (!isForeignKeyViolation(error)) throw error
      return this.keep(anchor, false)
    })
    this.done.anchors += 1
    this.done.heads += anchor.size
    this.done.projects = this.projects.add(anchor.project).size
  }

  /** Notes that an anchor has arrived, with what a proof of one entry needs of it. */
  private keep({ leaves, ...stated }: Anchor, isThere: boolean): Promise<void> {
    return this.parts.database.transaction(async (connection) => {
      await this.hold(connection, 'arrived', stated.nth)
      if (!isThere) return
      const { project, nth } = stated
      const paths = pathsOf(leaves)
      const live = leaves.flatMap((leaf, place) => (leaf.state === 'live' ? [{ ...leaf, place }] : []))
      const [sessions, seqs, heads] = [
        live.map(({ session_id }) => session_id),
        live.map(({ seq }) => seq),
        live.map(({ head }) => head),
      ]
      await connection.query(ADD_ANCHOR, [project, this.chain, nth, JSON.stringify(stated)])
      await connection.query(ADD_LEAVES.statement, [
        ...[project, this.chain, nth, sessions, seqs, heads],
        live.map(({ place }) => paths[place]!.toString('hex')),
        live.map(({ place }) => place),
      ])
      await connection.query(SET_ANCHORED_HEADS.statement, [project, this.chain, sessions, seqs, heads])
      const erased = leaves.filter(({ state }) => state === 'erased').map(({ session_id }) => session_id)
      if (erased.length === 0) return
      await connection.query(FORGET_HEADS, [project, erased, this.chain])
      await connection.query(FORGET_LEAVES, [project, erased, this.chain])
    })
  }
}

function leavesOf(rows: readonly Row[], state: Leaf['state']): Leaf[] {
  return rows.map(({ session_id, seq, head }) => ({
    session_id: session_id!,
    seq: Number(seq),
    head: head!,
    state,
  }))
}
