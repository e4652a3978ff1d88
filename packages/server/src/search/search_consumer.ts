import { indexedLabel, type SearchedEntry } from '@annals/messages/search'
import type { ChangedEntry, ChangedSessions, Consumer, WordsOf } from '../changes/consumer.js'
import type { Queryable } from '../postgres/database.js'
import { plainArray, textArray } from '../postgres/statement.js'
import { ERASE_INDEX, INDEX_ENTRIES } from './search_queries.js'

/** Keeps the index of words. `wordsOf` may take the work elsewhere: a log has entries of any size. */
export function searchConsumer(wordsOf: WordsOf): Consumer {
  return {
    name: 'search',
    // A round reads 2,000 entries: what is leased besides is written twice for nothing.
    sessions_max: 200,
    readsEntries: true,
    erase: ERASE_INDEX,
    consume: async (work) => {
      const entries = work.sessions.flatMap(({ session_id, entries }) =>
        entries.map((entry) => ({ ...entry, session_id })),
      )
      if (entries.length === 0) return undefined
      const words = await wordsOf(work.project_id, entries.map(searchedEntry))
      const runs = entries.map(({ session_id, seq, created_at, occurred_at, type, role }, index) => {
        const line = indexedLine({ type, role }, words[index]!)
        const first_at = occurred_at !== null && occurred_at < created_at ? occurred_at : created_at
        return { session_id, seq, last_seq: seq, segment: 0, first_at, last_at: created_at, words: line }
      })
      return (connection) => indexRuns(connection, work, runs)
    },
  }
}

/** The line of an entry: its label, and its words. */
export function indexedLine({ type, role }: Pick<ChangedEntry, 'type' | 'role'>, words: string): string {
  return `${indexedLabel(type, role)} ${words}`
}

function searchedEntry({ type, format, data }: ChangedEntry): SearchedEntry {
  return { type, format: format as SearchedEntry['format'], data }
}

/** Writes entries, each given as a run of its own. Their segments are found here. */
async function indexRuns(connection: Queryable, work: ChangedSessions, entries: Run[]): Promise<void> {
  const { project_id } = work
  if ((await connection.query(INDEX_ENTRIES.lock, [project_id])).length === 0) {
    await connection.query(INDEX_ENTRIES.first_segments, [project_id])
    await connection.query(INDEX_ENTRIES.lock, [project_id])
  }
  const times = plainArray(entries.map(({ last_at }) => last_at))
  const segments = await connection.query(INDEX_ENTRIES.segments, [project_id, times])
  for (const [index, entry] of entries.entries()) entry.segment = Number(segments[index]!.segment)
  await writeRuns(connection, project_id, joinRuns([...(await takeOut(connection, work)), ...entries]))
  for (const [segment, { count, first_at, last_at }] of countBySegment(entries)) {
    const counted = [project_id, segment, count, last_at, first_at]
    const [row] = await connection.query(INDEX_ENTRIES.count, counted)
    if (row?.is_full === 't') await connection.query(INDEX_ENTRIES.next_segment, [project_id, segment])
  }
}

/** Takes out the runs that what is new is put together with. */
async function takeOut(connection: Queryable, { project_id, sessions }: ChangedSessions): Promise<Run[]> {
  const rebuilt = sessions
    .map(({ session_id, after_seq, last_seq }) => ({
      session_id,
      after_seq,
      seq: rebuiltFrom(after_seq, last_seq),
    }))
    .filter(({ after_seq, seq }) => seq <= after_seq)
  if (rebuilt.length === 0) return []
  const rows = await connection.query(INDEX_ENTRIES.take_out, [
    project_id,
    plainArray(rebuilt.map(({ session_id }) => session_id)),
    plainArray(rebuilt.map(({ seq }) => seq)),
  ])
  return rows.map((row) => ({
    ...(row as unknown as Run),
    seq: Number(row.seq),
    last_seq: Number(row.last_seq),
    segment: Number(row.segment),
  }))
}

async function writeRuns(connection: Queryable, project_id: string, runs: Run[]): Promise<void> {
  await connection.query(INDEX_ENTRIES.runs, [
    project_id,
    plainArray(runs.map(({ session_id }) => session_id)),
    plainArray(runs.map(({ seq }) => seq)),
    plainArray(runs.map(({ last_seq }) => last_seq)),
    plainArray(runs.map(({ segment }) => segment)),
    plainArray(runs.map(({ first_at }) => first_at)),
    plainArray(runs.map(({ last_at }) => last_at)),
    textArray(runs.map(({ words }) => words)),
  ])
}

interface Counted {
  count: number
  first_at: string
  last_at: string
}

function countBySegment(entries: readonly Run[]): Map<number, Counted> {
  const counts = new Map<number, Counted>()
  for (const { segment, first_at, last_at } of entries) {
    const counted = counts.get(segment) ?? { count: 0, first_at, last_at }
    counts.set(segment, counted)
    counted.count += 1
    if (last_at > counted.last_at) counted.last_at = last_at
    if (first_at < counted.first_at) counted.first_at = first_at
  }
  return counts
}

/** Entries of a run: the more, the smaller the index, and the more lines are looked at for one that matches. */
const RUN_ENTRIES = 16
/** After this many entries, the rows of a session that were written one by one are joined for now. */
const PART_ENTRIES = 4
/** Characters of words in a run: what is looked at for one entry is bounded, and so is what PostgreSQL reads as a tsvector. */
const RUN_LENGTH_MAX = 32 * 1024

/** A row of the index: entries of a session that follow each other, in one segment. `words`: a line of each. */
export interface Run {
  session_id: string
  seq: number
  last_seq: number
  segment: number
  /** The earliest time at which one of them was stored or happened. */
  first_at: string
  /** When the last one was stored. */
  last_at: string
  words: string
}

/**
 * The seq from which on the runs of a session are put together anew when it has been indexed up to `after_seq` and is
 * now up to `last_seq`. Each entry is so written three times at most.
 */
export function rebuiltFrom(after_seq: number, last_seq: number): number {
  for (const entries of [RUN_ENTRIES, PART_ENTRIES]) {
    const whole = Math.floor(after_seq / entries)
    if (Math.floor(last_seq / entries) > whole) return whole * entries + 1
  }
  return after_seq + 1
}

/** Puts runs together, as far as they belong together: by session, and in the order of seq. */
export function joinRuns(runs: readonly Run[]): Run[] {
  const joined: Run[] = []
  const sorted = runs.toSorted((a, b) =>
    a.session_id === b.session_id ? a.seq - b.seq : a.session_id < b.session_id ? -1 : 1,
  )
  for (const run of sorted) {
    const before = joined.at(-1)
    if (!before || !isContinued(before, run)) {
      joined.push({ ...run })
      continue
    }
    before.last_seq = run.last_seq
    before.last_at = run.last_at
    if (run.first_at < before.first_at) before.first_at = run.first_at
    before.words += `\n${run.words}`
  }
  return joined
}

function isContinued(run: Run, next: Run): boolean {
  return (
    run.session_id === next.session_id &&
    run.last_seq + 1 === next.seq &&
    groupOf(run.seq) === groupOf(next.last_seq) &&
    run.segment === next.segment &&
    run.words.length + next.words.length < RUN_LENGTH_MAX
  )
}

function groupOf(seq: number): number {
  return Math.floor((seq - 1) / RUN_ENTRIES)
}
