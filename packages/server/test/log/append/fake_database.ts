import {
  APPEND_ENTRIES,
  APPEND_ENTRIES_AND_KEYS,
  APPEND_EVENTS,
} from '../../../src/log/append/append_queries.ts'
import type { Database, Parameter, Row } from '../../../src/postgres/database.ts'
import type { Statement } from '../../../src/postgres/statement.ts'

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
  readonly keepsPlans = true
  inFlight = 0
  inFlightMax = 0

  constructor(
    private readonly answer: (flush: Flush, number: number) => Promise<Row[]> | Row[] = ({ rows }) => rows,
    /** Waited for before the answer to what a flush looks up: nothing was stored before, under whatever key or id. */
    private readonly lookUp: () => Promise<void> = async () => {},
  ) {}

  async query(statement: Statement, parameters: readonly Parameter[], onSent?: () => void): Promise<Row[]> {
    if (![APPEND_EVENTS, APPEND_ENTRIES, APPEND_ENTRIES_AND_KEYS].includes(statement)) {
      await this.lookUp()
      return []
    }
    onSent?.()
    const flush = readFlush(statement, parameters)
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

/** Where the statements have what is read here; see them for the rest. */
function readFlush(statement: Statement, parameters: readonly Parameter[]): Flush {
  const isOfEvents = statement === APPEND_EVENTS
  const session_ids = elements(parameters[1])
  const if_matches = isOfEvents ? [] : elements(parameters[2])
  const places = elements(parameters[isOfEvents ? 4 : 8])
  return {
    project_id: parameters[0] as string,
    session_ids: places.map((place) => session_ids[Number(place) - 1]!),
    bodies: JSON.parse(parameters[isOfEvents ? 9 : 19] as string) as unknown[],
    rows: [
      {
        last_seqs: session_ids
          .map((_, index) => (/^\d+$/.exec(if_matches[index] ?? '') ?? ['0'])[0])
          .join(','),
        times: session_ids.map(() => '').join(','),
        now: '2026-11-21T00:00:00.000000Z',
        last_message_ids: session_ids.map(() => '').join(','),
        untracked: session_ids.map(() => 'f').join(''),
        place: null,
        data: null,
        meta: null,
      },
    ],
  }
}

function elements(literal: Parameter | undefined): string[] {
  return (literal as string).slice(1, -1).split(',')
}
