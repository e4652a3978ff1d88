import { type Parameter, type Row, runPrepared } from '@annals/pg-pipeline'
import type { ClientBase } from 'pg'
import { brokeConnection } from './database_errors.js'
import type { Statement } from './statement.js'

/** Fewer are not divided among connections. */
const TOGETHER_MIN = 4
/** More would have each wait for too many others. */
const TOGETHER_MAX = 16

export interface GroupedRead {
  statement: Statement
  parameters: readonly Parameter[]
  /** Called when it is about to be sent; if it throws, it is not. */
  onSending?: (() => void) | undefined
  resolve(rows: Row[]): void
  reject(error: unknown): void
}

/**
 * Gathers the reads that are asked for in one turn of the event loop, and sends those of one project together: half of what
 * a small read costs is to wake the other side. One that is slow keeps only others of its project waiting. The same read is
 * sent once, as for all tails of a session, or for callers who ask for the same page.
 */
export class GroupedReads {
  private readonly waiting = new Map<Parameter | undefined, GroupedRead[]>()

  /**
   * @param send sends reads on one connection, and settles each
   * @param free how many connections there are that nothing is under way on
   */
  constructor(
    private readonly send: (reads: readonly GroupedRead[]) => void,
    private readonly free: () => number,
  ) {}

  /** The first parameter is the project, as it is of nearly all statements. */
  run(statement: Statement, parameters: readonly Parameter[], onSending?: () => void): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      if (this.waiting.size === 0) setImmediate(() => this.sendAll())
      const [project] = parameters
      const { only_if } = statement
      const key = only_if ? `${project} ${only_if.parameters[0]}` : project
      const reads = this.waiting.get(key) ?? []
      this.waiting.set(key, reads)
      reads.push({ statement, parameters, onSending, resolve, reject })
    })
  }

  private sendAll(): void {
    const groups = [...this.waiting.values()]
    this.waiting.clear()
    for (const group of groups) {
      const reads = group.length === 1 ? group : eachOnce(group)
      const shared = Math.ceil(reads.length / Math.max(1, this.free()))
      const size = Math.min(Math.max(shared, TOGETHER_MIN), TOGETHER_MAX)
      for (let from = 0; from < reads.length; from += size) this.send(reads.slice(from, from + size))
    }
  }
}

function eachOnce(reads: readonly GroupedRead[]): GroupedRead[] {
  const same = new Map<string, GroupedRead[]>()
  for (const read of reads) {
    const asked = JSON.stringify([read.statement.name, read.parameters])
    const others = same.get(asked)
    if (others) others.push(read)
    else same.set(asked, [read])
  }
  return [...same.values()].map((all) => (all.length === 1 ? all[0]! : together(all)))
}

/** Each gets rows of its own: whoever reads a row may give its values away, see columnsOf. */
function together(reads: readonly GroupedRead[]): GroupedRead {
  return {
    ...reads[0]!,
    onSending: () => {
      for (const { onSending } of reads) onSending?.()
    },
    resolve: (rows) => {
      for (const { resolve } of reads) resolve(rows.map((row) => ({ ...row })))
    },
    reject: (error) => {
      for (const { reject } of reads) reject(error)
    },
  }
}

/** Says that it is about to be sent; false if it may not be. */
export function isSent({ onSending, reject }: GroupedRead): boolean {
  try {
    onSending?.()
    return true
  } catch (error) {
    reject(error)
    return false
  }
}

/** What a statement depends on found nothing. */
export class NotFulfilled extends Error {
  override readonly name = 'NotFulfilled'
}

/** Runs prepared statements at once, in one transaction, after what they depend on, which is the same for all. */
export function runTogether(
  client: ClientBase,
  executions: ReadonlyArray<Pick<GroupedRead, 'statement' | 'parameters'>>,
): Promise<Row[]>[] {
  const only_if = executions[0]?.statement.only_if
  if (!only_if) return executions.length === 0 ? [] : runPrepared(client, executions, brokeConnection)
  const [first, ...answers] = runPrepared(client, [only_if, ...executions], brokeConnection)
  const found = first!.catch(() => [])
  return answers.map(async (answer) => {
    const rows = await answer
    if ((await found).length === 0) throw new NotFulfilled()
    return rows
  })
}
