import type { Database, Parameter, Row } from '../../src/database/database.ts'
import type { Statement } from '../../src/database/statement.ts'

/** One flush as the database got it. */
export interface Flush {
  project_id: string
  session_ids: string[]
  bodies: unknown[]
  /** What the database answers when all goes well: every entry is stored, as seq 1. */
  rows: Row[]
}

/** A database whose answers a test writes: `answer` is asked for each flush, in order. */
export class FakeDatabase implements Database {
  readonly flushes: Flush[] = []
  inFlight = 0
  inFlightMax = 0

  constructor(
    private readonly answer: (flush: Flush, number: number) => Promise<Row[]> | Row[] = ({ rows }) => rows,
  ) {}

  async query(_statement: Statement, parameters: readonly Parameter[], onSent?: () => void): Promise<Row[]> {
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

function readFlush(parameters: readonly Parameter[]): Flush {
  const ords = parameters[7] as number[]
  return {
    project_id: parameters[0] as string,
    session_ids: parameters[1] as string[],
    bodies: JSON.parse(parameters[6] as string) as unknown[],
    rows: ords.map((ord) => ({
      ord: String(ord),
      head_seq: '0',
      past_hash: null,
      past_session_id: null,
      past_seqs: null,
      admitted: 't',
      differs: 'f',
      known_seq: null,
      seq: '1',
      json: '{}',
    })),
  }
}
