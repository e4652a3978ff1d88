import { expect, inject, it } from 'vitest'
import { FIND_RUNS_TO_RECALL } from '../../packages/server/src/search/recall/recall_queries.ts'
import { withConnection } from '../harness/sql.ts'
import { useLog } from './log_fixture.ts'

/* Runs of entries that have some of the words of a question. */

const log = useLog()

interface Head {
  runs: [session_id: string, seq: number, at: number][]
  complete: boolean
  weights: number[]
  counts: number[]
}

/** What an answer says of the runs, before their words. */
function headOf(answer: string): Head {
  return JSON.parse(answer.split('\x1e')[0]!)
}

it('finds the rarest words by the index, though nobody has analyzed the table and the time is over', async () => {
  const project = await log.newProject()
  const session = await log.newSession(project)
  await withConnection(log.url, async (connection) => {
    await connection.query('ALTER TABLE search_entries SET (autovacuum_enabled = off)')
    await connection.query(
      `INSERT INTO search_entries (project_id, session_id, seq, last_seq, segment, first_at, last_at, words)
       SELECT $1, $2, n, n, 0, now(), now(),
         '@user usual ' || (SELECT string_agg('word' || n || 'x' || m, ' ') FROM generate_series(1, 200) m)
         || CASE WHEN n % 100 = 0 THEN ' rare' ELSE '' END
       FROM generate_series(1, 300) n`,
      [project, session],
    )
    await connection.query(
      `INSERT INTO search_segments (project_id, segment, begins_at, entries, last_at) VALUES ($1, 0, '-infinity', 4800, now())`,
      [project],
    )
    const words = ["'usual'", "'rare'", "'nowhere'"]
    const { rows } = await connection.query(FIND_RUNS_TO_RECALL.statement.text, [
      ...[project, words, null, [], null, null, '-infinity', 'infinity', 100, 10, -1],
    ])
    const { runs, complete } = headOf(rows[0].answer)
    expect(runs.map(([, seq]) => seq)).toEqual([300, 200, 100])
    expect(complete).toBe(false)
    const strange = ["'usual'", "'nowhere'", "'never'", "'nothing'"]
    const found = await connection.query(FIND_RUNS_TO_RECALL.statement.text, [
      ...[project, strange, null, [], null, null, '-infinity', 'infinity', 100, 10, -1],
    ])
    // However many words of a question nobody has said.
    expect(headOf(found.rows[0].answer).runs).toHaveLength(10)
    // On a cluster, the index is another machine's.
    if (inject('testServer').mode === 'shared') return
    await connection.query('SELECT pg_stat_force_next_flush()')
    const scans = await connection.query(
      `SELECT idx_scan::int FROM pg_stat_user_indexes WHERE indexrelname = 'search_entries_words'`,
    )
    expect(scans.rows[0].idx_scan).toBeGreaterThan(0)
  })
})

it('reads no more of the primary key than there are runs to show, however many a project has', async () => {
  const [project, other] = [await log.newProject(), await log.newProject()]
  await withConnection(log.url, async (connection) => {
    for (const id of [project, other]) {
      await connection.query(
        `INSERT INTO search_entries (project_id, session_id, seq, last_seq, segment, first_at, last_at, words)
         SELECT $1, $2, n, n, n / 200, now(), now(), '@user common' || CASE WHEN n % 3 = 0 THEN ' usual' ELSE '' END || ' w' || n
         FROM generate_series(1, 8000) n`,
        [id, await log.newSession(id)],
      )
      await connection.query(
        `INSERT INTO search_segments (project_id, segment, begins_at, entries, last_at)
         SELECT $1, n, now(), 3200, now() FROM generate_series(0, 40) n`,
        [id],
      )
    }
    await connection.query('VACUUM ANALYZE search_entries')
    const keysRead = async () => {
      await connection.query('SELECT pg_stat_force_next_flush()')
      const { rows } = await connection.query(
        `SELECT idx_tup_read::int AS read FROM pg_stat_user_indexes WHERE indexrelname = 'search_entries_pkey'`,
      )
      return rows[0].read as number
    }
    const before = await keysRead()
    const words = ["'common'", "'usual'"]
    const { rows } = await connection.query(FIND_RUNS_TO_RECALL.statement.text, [
      ...[project, words, null, null, null, null, '-infinity', 'infinity', 2_000, 10, 60_000],
    ])
    expect(headOf(rows[0].answer).runs).toHaveLength(10)
    expect((await keysRead()) - before).toBeLessThan(1_000)
  })
})

it('finds the runs that tell most, as if each word were looked up for itself, and with counts of a moment ago', async () => {
  const project = await log.newProject()
  const shares: Record<string, number> = { usual: 2, common: 3, often: 4, seldom: 7, scarce: 90 }
  const words = Object.keys(shares)
  await withConnection(log.url, async (connection) => {
    // Each run has its own part of the words, and none has all of them.
    await connection.query(
      `INSERT INTO search_entries (project_id, session_id, seq, last_seq, segment, first_at, last_at, words)
       SELECT $1, $2, n, n, 0, now(), now(), '@user w' || n || (
         SELECT coalesce(string_agg(' ' || word, ''), '') FROM json_each_text($3) AS w (word, share)
         WHERE hashtext(word || n) % share::int = 0)
       FROM generate_series(1, 999) n`,
      [project, await log.newSession(project), JSON.stringify(shares)],
    )
    await connection.query(
      `INSERT INTO search_segments (project_id, segment, begins_at, entries, last_at)
       VALUES ($1, 0, '-infinity', 16000, now())`,
      [project],
    )
    const stored = await connection.query(
      'SELECT seq::int, words FROM search_entries WHERE project_id = $1',
      [project],
    )
    for (const asked of [words, words.slice(0, 4), words.slice(0, 2), words.slice(2)]) {
      const find = async (counts: number[] | null) => {
        const { rows } = await connection.query(FIND_RUNS_TO_RECALL.statement.text, [
          ...[project, asked.map((word) => `'${word}'`), counts, null, null, null],
          ...['-infinity', 'infinity', 10_000, 20, 60_000],
        ])
        return headOf(rows[0].answer)
      }
      const found = await find(null)
      const tells = (text: string) =>
        asked.reduce((sum, word, at) => sum + (`${text} `.includes(` ${word} `) ? found.weights[at]! : 0), 0)
      const told = new Map<number, number>(stored.rows.map((row) => [row.seq, tells(row.words)]))
      const best = [...told.values()].sort((a, b) => b - a)
      const least = Math.min(...found.runs.map(([, seq]) => told.get(seq)!))
      expect(found.runs).toHaveLength(20)
      expect(least, asked.join(' ')).toBeCloseTo(best[19]!, 6)
      expect(await find(found.counts)).toEqual(found)
    }
  })
})
