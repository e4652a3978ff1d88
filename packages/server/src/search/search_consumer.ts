import type { SearchedEntry } from '@annals/messages/search'
import type { ChangedEntry, ChangedSessions, Consumer, WordsOf } from '../changes/consumer.js'
import { plainArray, textArray } from '../postgres/array_literal.js'
import type { Queryable } from '../postgres/database.js'
import { ERASE_INDEX, INDEX_ENTRIES } from './search_queries.js'

/** Keeps the index of words. `wordsOf` may take the work elsewhere: a log has entries of any size. */
export function searchConsumer(wordsOf: WordsOf): Consumer {
  return {
    name: 'search',
    sessions_max: 1_000,
    readsEntries: true,
    erase: ERASE_INDEX,
    consume: async (work) => {
      const entries = work.sessions.flatMap((session) => session.entries.map((entry) => ({ session, entry })))
      if (entries.length === 0) return undefined
      const words = await wordsOf(
        work.project_id,
        entries.map(({ entry }) => searchedEntry(entry)),
      )
      const columns = [
        plainArray(entries.map(({ session }) => session.session_id)),
        plainArray(entries.map(({ entry }) => entry.seq)),
        plainArray(entries.map(({ entry }) => entry.created_at)),
        textArray(entries.map(({ entry }) => entry.type)),
        textArray(entries.map(({ entry }) => entry.role)),
        textArray(words),
      ]
      return (connection) => indexEntries(connection, work, columns)
    },
  }
}

function searchedEntry({ type, format, data }: ChangedEntry): SearchedEntry {
  return { type, format: format as SearchedEntry['format'], data }
}

async function indexEntries(
  connection: Queryable,
  { project_id }: ChangedSessions,
  columns: string[],
): Promise<void> {
  if ((await connection.query(INDEX_ENTRIES.lock, [project_id])).length === 0) {
    await connection.query(INDEX_ENTRIES.first_segments, [project_id])
    await connection.query(INDEX_ENTRIES.lock, [project_id])
  }
  const added = await connection.query(INDEX_ENTRIES.rows, [project_id, ...columns])
  for (const { segment, entries, last_at } of added) {
    const [row] = await connection.query(INDEX_ENTRIES.count, [project_id, segment!, entries!, last_at!])
    if (row?.is_full === 't') await connection.query(INDEX_ENTRIES.next_segment, [project_id, segment!])
  }
}
