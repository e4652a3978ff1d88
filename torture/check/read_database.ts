import pg from 'pg'
import type { StoredEntry, StoredSession } from './compare.ts'

const SESSIONS = `
SELECT s.project_id, s.id AS session_id, s.configs ->> 'marker' AS marker, s.configs ->> 'touched' AS touched, h.last_seq, h.total_tokens,
  (extract(epoch FROM h.updated_at) * 1000000)::bigint AS updated_at, h.last_message_id
FROM sessions s LEFT JOIN session_heads h ON h.project_id = s.project_id AND h.session_id = s.id`

const ENTRIES = `
SELECT e.session_id, e.seq, e.id, e.tokens, e.retracted_by,
  CASE WHEN e.type = 'annals.retraction' THEN 'retraction ' || e.session_id || '/' || e.seq
    WHEN e.type = 'annals.request' THEN e.data ->> 'text' WHEN e.type = 'annals.resolution' THEN e.data ->> 'by'
    ELSE coalesce(e.data ->> 'marker', e.data #>> '{content,0,text}', e.data ->> 'content') END AS marker,
  (extract(epoch FROM e.created_at) * 1000000)::bigint AS created_at, e.kind = 'message' AS is_message,
  e.type IS NOT DISTINCT FROM 'annals.retraction' AS is_retraction,
  CASE WHEN e.type = 'write' THEN (e.data ->> 'fence')::bigint END AS fence
FROM entries e WHERE (e.session_id, e.seq) > ($1, $2) ORDER BY e.session_id, e.seq LIMIT 20000`

type Row = Record<string, string | null>
type EntryRow = Row & { is_message: boolean; is_retraction: boolean }

/** Everything that the database has, as the comparison wants it. An entry without a session shows as one without a marker. */
export async function readDatabase(connectionString: string): Promise<StoredSession[]> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    const sessions = new Map<string, StoredSession>()
    for (const row of (await client.query<Row>(SESSIONS)).rows) {
      sessions.set(row.session_id!, {
        project_id: row.project_id!,
        session_id: row.session_id!,
        marker: row.marker ?? '',
        touched: row.touched ?? undefined,
        head: {
          last_seq: Number(row.last_seq ?? -1),
          total_tokens: Number(row.total_tokens),
          updated_at: Number(row.updated_at),
          last_message_id: row.last_message_id ?? null,
        },
        entries: [],
      })
    }
    let last: [string, string] = ['00000000-0000-0000-0000-000000000000', '0']
    for (;;) {
      const { rows } = await client.query<EntryRow>(ENTRIES, last)
      for (const row of rows) entriesOf(sessions, row.session_id!).push(entryOf(row))
      const end = rows.at(-1)
      if (!end) return [...sessions.values()]
      last = [end.session_id!, end.seq!]
    }
  } finally {
    await client.end()
  }
}

function entriesOf(sessions: Map<string, StoredSession>, session_id: string): StoredEntry[] {
  let session = sessions.get(session_id)
  if (!session) {
    const head = { last_seq: -1, total_tokens: 0, updated_at: 0, last_message_id: null }
    session = { project_id: '', session_id, marker: '', head, entries: [] }
    sessions.set(session_id, session)
  }
  return session.entries
}

function entryOf(row: EntryRow): StoredEntry {
  return {
    seq: Number(row.seq),
    id: row.id!,
    marker: row.marker ?? '',
    created_at: Number(row.created_at),
    tokens: Number(row.tokens),
    is_message: row.is_message,
    is_retraction: row.is_retraction,
    ...(row.fence && { fence: Number(row.fence) }),
    retracted_by: row.retracted_by === null ? null : Number(row.retracted_by),
  }
}
