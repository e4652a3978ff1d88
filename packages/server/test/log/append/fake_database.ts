import type { Database, Parameter, Row } from '../../../../kits/src/postgres/database.ts'
import type { Statement } from '../../../../kits/src/postgres/statement.ts'
import { APPEND_ENTRIES } from '../../../src/log/append/append_queries.ts'

/** One flush as the database got it. */
export interface Flush {
  project_id: string
  /** Of each entry, in order. */
  session_ids: string[]
  /** The data of each entry. */
  bodies: unknown[]
  /** What the database answers when all goes well: every If-Match held. */
  rows: Row[]
}

/** A database whose answers a test writes: `answer` is asked for each flush, in order. */
export class FakeDatabase implements Database {
  readonly flushes: Flush[] = []
  inFlight = 0
  inFlightMax = 0

  constructor(
    private readonly answer: (flush: Flush, number: number) => Promise<Row[]> | Row[] = ({ rows }) => rows,
    /** Waited for before the answer to what a flush looks up: nothing was stored before, under whatever key or id. */
    private readonly lookUp: () => Promise<void> = async () => {},
  ) {}

  async query(statement: Statement, parameters: readonly Parameter[], onSent?: () => void): Promise<Row[]> {
    if (statement !== APPEND_ENTRIES.statement) {
      await this.lookUp()
      return []
    }
    onSent?.()
    const flush = readFlush(parameters)
    this.flushes.push(flush)
    this.inFlight += 1
    this.inFlightMax = Math.max(this.inFlightMax, this.inFlight)
    try {
      return await this.answer(flush, this.flushes.length)
    } finally {
      this.inFlight -= 1
    }
  }

  transaction<T>(): Promise<T> {
    throw new Error('appends use no transactions')
  }

  async close(): Promise<void> {}

  usage(): { total: number; idle: number; waiting: number } {
    return { total: 0, idle: 0, waiting: 0 }
  }
}

/** Where append_entries.sql has what is read here; see it for the rest. */
function readFlush(parameters: readonly Parameter[]): Flush {
  const session_ids = elements(parameters[1])
  const if_matches = elements(parameters[12])
  const places = elements(parameters[4])
  const last_seqs = session_ids.map((_, index) => (/^\d+$/.exec(if_matches[index] ?? '') ?? ['0'])[0])
  return {
    project_id: parameters[0] as string,
    session_ids: places.map((place) => session_ids[Number(place) - 1]!),
    bodies: JSON.parse(parameters[9] as string) as unknown[],
    rows: [{ answer: `${last_seqs.join(',')}\n\n2026-11-21T00:00:00.000000Z\n\n` }],
  }
}

function elements(literal: Parameter | undefined): string[] {
  return ((literal as string | null) ?? '{}').slice(1, -1).split(',')
}
