import { setTimeout as sleep } from 'node:timers/promises'
import type { SearchedEntry } from '@annals/messages/search'
import { READ_CHANGED_ENTRIES } from '../../changes/change_queries.js'
import type { WordsOf } from '../../changes/consumer.js'
import { each, insist, pausesForRequests, repeat } from '../../changes/repeat.js'
import type { Kits } from '../../module.js'
import { plainArray, textArray } from '../../postgres/array_literal.js'
import { describeError } from '../../postgres/database_errors.js'
import { indexedLine } from '../search_consumer.js'
import { INDEX_ENTRIES } from '../search_queries.js'
import { FIND_REFILLS, REFILL } from './recall_queries.js'

const POLL_MS = 10_000
const LEASE_S = 60
/** What is read at once: runs of entries, and bytes. One run is read whole. */
const PIECE = { runs: 32, bytes: 1024 * 1024 }
/** A run that its consumer wrote meanwhile is read again; one that is written all the time is left as it is. */
const TRIES = 5

interface Place {
  session_id: string
  seq: number
}

/**
 * Writes the lines of an index anew that an older version wrote, at each node: a project's lease is taken, and its runs
 * are read, written and passed piece by piece, until none is left. Whoever is killed leaves the rest to others.
 */
export class Refill {
  private readonly polling: Promise<void>
  private readonly pauseAfter = pausesForRequests()

  constructor(
    private readonly parts: Kits['background'] & Pick<Kits, 'logger'>,
    private readonly wordsOf: WordsOf,
    poll_ms = POLL_MS,
  ) {
    const { signal, logger } = parts
    this.polling = repeat(
      () => this.look(),
      poll_ms,
      signal,
      (error) => logger.warn({ err: describeError(error) }, 'the index of words will be refilled later'),
    )
  }

  ended(): Promise<void> {
    return this.polling
  }

  private async look(): Promise<void> {
    const { database, signal } = this.parts
    const projects = await database.query(FIND_REFILLS, [])
    await each(projects, signal, ({ project_id }) => this.refillProject(project_id!))
  }

  private async refillProject(project_id: string): Promise<void> {
    const { database, signal } = this.parts
    const [taken] = await database.query(REFILL.take, [project_id, LEASE_S])
    if (!taken) return
    let leased_until = taken.leased_until!
    let place: Place = { session_id: taken.session_id!, seq: Number(taken.seq) }
    try {
      while (!signal.aborted) {
        const began = performance.now()
        const piece = await this.refillPiece(project_id, place)
        if (!piece) {
          await database.query(REFILL.finish, [project_id, leased_until])
          return
        }
        place = piece.last
        const moved = [project_id, leased_until, place.session_id, place.seq, piece.entries, LEASE_S]
        const [kept] = await database.query(REFILL.advance, moved)
        if (!kept) return
        leased_until = kept.leased_until!
        const pause_ms = this.pauseAfter(performance.now() - began)
        await sleep(pause_ms, undefined, { signal, ref: false }).catch(() => undefined)
      }
    } finally {
      await insist(() => database.query(REFILL.leave, [project_id, leased_until]), LEASE_S * 1_000, signal)
    }
  }

  /** Writes the runs after a place anew; undefined if there are none. */
  private async refillPiece(
    project_id: string,
    after: Place,
  ): Promise<{ last: Place; entries: number } | undefined> {
    for (let tried = 1; ; tried++) {
      const owned = [project_id, after.session_id, after.seq]
      let runs = await this.readRuns([...owned, PIECE.runs])
      if (runs.length === 0) return undefined
      let lines = await this.linesOf(project_id, runs, PIECE.bytes)
      // What was read may end within a run.
      while (lines.length > 0 && lines.at(-1)!.length < entriesOf(runs[lines.length - 1]!)) lines.pop()
      if (lines.length === 0) {
        runs = runs.slice(0, 1)
        lines = await this.linesOf(project_id, runs, Number.MAX_SAFE_INTEGER)
      }
      const read = runs.slice(0, lines.length)
      const written = read.flatMap((run, index) =>
        lines[index]!.length === entriesOf(run) ? [{ ...run, words: lines[index]!.join('\n') }] : [],
      )
      const count = await this.parts.database.transaction(async (connection) => {
        await connection.query(INDEX_ENTRIES.lock, [project_id])
        const rows = await connection.query(REFILL.write, [
          project_id,
          plainArray(written.map(({ session_id }) => session_id)),
          plainArray(written.map(({ seq }) => seq)),
          plainArray(written.map(({ last_seq }) => last_seq)),
          textArray(written.map(({ words }) => words)),
        ])
        return rows.length
      })
      const entries = read.reduce((sum, run) => sum + entriesOf(run), 0)
      const last = read.at(-1)!
      if (count === read.length || tried === TRIES) return { last, entries }
    }
  }

  private async readRuns(values: (string | number)[]): Promise<RunPlace[]> {
    const rows = await this.parts.database.query(REFILL.runs, values)
    return rows.map(({ session_id, seq, last_seq }) => ({
      session_id: session_id!,
      seq: Number(seq),
      last_seq: Number(last_seq),
    }))
  }

  /** The lines of runs, up to the last one that was read. */
  private async linesOf(project_id: string, runs: readonly RunPlace[], bytes: number): Promise<string[][]> {
    const rows = await this.parts.database.query(READ_CHANGED_ENTRIES, [
      project_id,
      runs.map(({ session_id }) => session_id),
      runs.map(({ seq }) => seq - 1),
      runs.map(({ last_seq }) => last_seq),
      bytes,
    ])
    const words = await this.wordsOf(project_id, rows as unknown as SearchedEntry[])
    const lines: string[][] = Array.from({ length: Number(rows.at(-1)?.place ?? 0) }, () => [])
    for (const [index, { place, type, role }] of rows.entries())
      lines[Number(place) - 1]!.push(indexedLine({ type: type ?? null, role: role ?? null }, words[index]!))
    // Those of runs whose session was deleted meanwhile.
    return rows.length === 0 && runs.length > 0 ? [[]] : lines
  }
}

interface RunPlace extends Place {
  last_seq: number
}

function entriesOf({ seq, last_seq }: RunPlace): number {
  return last_seq - seq + 1
}
