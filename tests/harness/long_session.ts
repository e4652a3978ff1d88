import { randomUUID } from 'node:crypto'
import { execute } from './sql.ts'

/** So many entries of one kind, and of one type if they are events, one after the other. */
export interface EntryRun {
  count: number
  /** Of events; messages have none. */
  type?: string
}

/**
 * A session with a long log, written straight into the tables as requests would have left it there: through the API
 * it would take minutes. Gives its id.
 */
export async function insertLongSession(
  databaseUrl: string,
  project_id: string,
  runs: EntryRun[],
  { user_id = null, id = randomUUID() }: { user_id?: string | null; id?: string } = {},
): Promise<string> {
  const owned = [project_id, id]
  await execute(
    databaseUrl,
    `INSERT INTO sessions (project_id, id, user_id, configs, disable_task_tracking, created_at)
     VALUES ($1, $2, $3, '{}', false, now())`,
    [...owned, user_id],
  )
  await execute(
    databaseUrl,
    `INSERT INTO list_terms (project_id, term, created_at, item_id, signature)
     SELECT s.project_id, x.term, s.created_at, s.id, i.signature
     FROM sessions s CROSS JOIN LATERAL index_terms('sessions', s.configs, s.user_id) AS i
       CROSS JOIN LATERAL unnest(i.terms) AS x (term)
     WHERE s.project_id = $1 AND s.id = $2`,
    owned,
  )
  await execute(
    databaseUrl,
    `INSERT INTO entries (project_id, session_id, seq, created_at, updated_at, id, parent_id, bytes, tokens, kind, type,
       role, format, data, meta)
     SELECT $1::uuid, $2::uuid, l.seq, now(), now(), l.id,
       CASE l.kind WHEN 'message' THEN lag(l.id) OVER (PARTITION BY l.kind ORDER BY l.seq) END,
       length(l.data::text), CASE l.kind WHEN 'message' THEN 1 ELSE 0 END, l.kind, l.type,
       CASE l.kind WHEN 'message' THEN 'user' END, CASE l.kind WHEN 'message' THEN 'openai' END, l.data,
       CASE l.kind WHEN 'message' THEN '{}'::jsonb END
     FROM (
       SELECT row_number() OVER (ORDER BY r.run, n) AS seq, md5($2::uuid::text || r.run || ' ' || n)::uuid AS id, r.type,
         CASE WHEN r.type IS NULL THEN 'message' ELSE 'event' END AS kind,
         CASE WHEN r.type IS NULL THEN '{"role": "user", "content": "x"}'::jsonb ELSE '{}' END AS data
       FROM unnest($3::integer[], $4::text[]) WITH ORDINALITY AS r (count, type, run) CROSS JOIN generate_series(1, r.count) AS n
     ) l`,
    [...owned, runs.map(({ count }) => count), runs.map(({ type }) => type ?? null)],
  )
  await execute(
    databaseUrl,
    `INSERT INTO session_heads (project_id, session_id, last_seq, total_tokens, updated_at, last_message_id)
     SELECT $1::uuid, $2::uuid, coalesce(max(e.seq), 0), coalesce(sum(e.tokens), 0), now(),
       (SELECT m.id FROM entries m WHERE m.project_id = $1 AND m.session_id = $2 AND m.kind = 'message' ORDER BY m.seq DESC LIMIT 1)
     FROM entries e WHERE e.project_id = $1 AND e.session_id = $2`,
    owned,
  )
  return id
}
