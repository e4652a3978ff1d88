import type { ChangedEntry, ChangedSessions, Consumer, WordsOf } from '@annals/kits/changes/consumer.js'
import type { Queryable } from '@annals/kits/postgres/database.js'
import { plainArray, textArray } from '@annals/kits/postgres/statement.js'
import type { SearchedEntry } from '@annals/messages/search'
import { countBySegment, type IndexedRun, indexedLine, joinRuns, rebuiltFrom } from '@annals/recall'
import { ERASE_INDEX, FORGET_ENTRIES, INDEX_ENTRIES } from './search_queries.js'

/** Keeps the index of words. `wordsOf` may take the work elsewhere: a log has entries of any size. */
export function searchConsumer(wordsOf: WordsOf): Consumer {
  return {
    name: 'search',
    // A round reads 2,000 entries: leasing more would write marks twice for nothing.
    sessions_max: 200,
    readsEntries: true,
    erase: ERASE_INDEX,
    forget: [FORGET_ENTRIES],
    consume: async (work) => {
      const entries = work.sessions.flatMap(({ session_id, entries }) =>
        entries.map((entry) => ({ ...entry, session_id })),
      )
      if (entries.length === 0) return undefined
      const words = await wordsOf(work.project_id, entries.map(searchedEntry))
      const runs = entries.map(({ session_id, seq, created_at, occurred_at, type, role }, index) => {
        const line = indexedLine({ type, role }, words[index]!)
        const first_at = happenedAt({ created_at, occurred_at })
        return { session_id, seq, last_seq: seq, segment: 0, first_at, last_at: created_at, words: line }
      })
      return (connection) => indexRuns(connection, work, runs)
    },
  }
}

/** When an entry was stored or happened, whichever is earlier. */
export function happenedAt({
  created_at,
  occurred_at,
}: Pick<ChangedEntry, 'created_at' | 'occurred_at'>): string {
  return occurred_at !== null && occurred_at < created_at ? occurred_at : created_at
}

export function searchedEntry({ type, format, data }: ChangedEntry): SearchedEntry {
  return { type, format: format as SearchedEntry['format'], data }
}

/** Writes entries, each passed as a separate run, and finds their segments. */
async function indexRuns(connection: Queryable, work: ChangedSessions, entries: IndexedRun[]): Promise<void> {
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

/** Takes out the runs that the new entries are merged with. */
async function takeOut(
  connection: Queryable,
  { project_id, sessions }: ChangedSessions,
): Promise<IndexedRun[]> {
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
    ...(row as unknown as IndexedRun),
    seq: Number(row.seq),
    last_seq: Number(row.last_seq),
    segment: Number(row.segment),
  }))
}

async function writeRuns(connection: Queryable, project_id: string, runs: IndexedRun[]): Promise<void> {
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
