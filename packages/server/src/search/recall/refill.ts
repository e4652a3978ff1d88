import { READ_CHANGED_ENTRIES } from '@annals/kits/changes/change_queries.js'
import type { WordsOf } from '@annals/kits/changes/consumer.js'
import { type PassPlace, passThroughProjects } from '@annals/kits/changes/project_pass.js'
import type { Background, Loop } from '@annals/kits/lifecycle/background.js'
import { plainArray, textArray } from '@annals/kits/postgres/statement.js'
import type { SearchedEntry } from '@annals/messages/search'
import { indexedLine } from '@annals/recall'
import { INDEX_ENTRIES } from '../search_queries.js'
import { REFILL, REFILL_PASS } from './recall_queries.js'

/** Limits of one read: runs of entries, and bytes. One run is read whole. */
const PIECE = { runs: 32, bytes: 1024 * 1024 }
/** A run that its consumer rewrote in the meantime is read again; one that keeps changing is left as it is. */
const TRIES = 5

/** Writes the lines of an index anew that an older version wrote. */
export class Refill {
  private readonly loop: Loop

  constructor(
    private readonly background: Background,
    private readonly wordsOf: WordsOf,
  ) {
    this.loop = passThroughProjects(
      background,
      REFILL_PASS,
      'the index of words will be refilled later',
      (project_id, after) => this.refillPiece(project_id, after),
    )
  }

  ended(): Promise<void> {
    return this.loop.ended()
  }

  private async refillPiece(
    project_id: string,
    after: PassPlace,
  ): Promise<(PassPlace & { entries: number }) | undefined> {
    for (let tried = 1; ; tried++) {
      const owned = [project_id, after.session_id, after.seq]
      let runs = await this.readRuns([...owned, PIECE.runs])
      if (runs.length === 0) return undefined
      let lines = await this.linesOf(project_id, runs, PIECE.bytes)
      // The read may end within a run.
      while (lines.length > 0 && lines.at(-1)!.length < entriesOf(runs[lines.length - 1]!)) lines.pop()
      if (lines.length === 0) {
        runs = runs.slice(0, 1)
        lines = await this.linesOf(project_id, runs, Number.MAX_SAFE_INTEGER)
      }
      const read = runs.slice(0, lines.length)
      const written = read.flatMap((run, index) =>
        lines[index]!.length === entriesOf(run) ? [{ ...run, words: lines[index]!.join('\n') }] : [],
      )
      const count = await this.background.database.transaction(async (connection) => {
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
      if (count === read.length || tried === TRIES)
        return { session_id: last.session_id, seq: last.seq, entries }
    }
  }

  private async readRuns(values: (string | number)[]): Promise<RunPlace[]> {
    const rows = await this.background.database.query(REFILL.runs, values)
    return rows.map(({ session_id, seq, last_seq }) => ({
      session_id: session_id!,
      seq: Number(seq),
      last_seq: Number(last_seq),
    }))
  }

  /** The lines of runs, up to the last one that was read. */
  private async linesOf(project_id: string, runs: readonly RunPlace[], bytes: number): Promise<string[][]> {
    const rows = await this.background.database.query(READ_CHANGED_ENTRIES, [
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

interface RunPlace extends PassPlace {
  last_seq: number
}

function entriesOf({ seq, last_seq }: RunPlace): number {
  return last_seq - seq + 1
}
