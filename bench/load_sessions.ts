import { type BenchDatabase, withConnection } from './postgres.ts'

/*
 * Two million sessions in a minute or two: set-based SQL, the same rows each time. Tables are filled without their
 * indexes, which are made afterwards. Nothing analyses or vacuums them: lists must be fast right after a load.
 */

export interface LoadedSessions {
  /** One project has more than half of all sessions; the rest is spread evenly over the others. */
  huge: { id: string; sessions: number }
  small: { id: string; sessions: number }
  sessions: number
  took_s: { rows: number; indexes: number }
}

/**
 * The nth session. Half of all have `left` and the other half `right`, and only the last few both;
 * `release` is "old" in the first 17 % of time and "new" in the last, and nothing in between.
 */
const CONFIGS = `jsonb_strip_nulls(jsonb_build_object(
  'agent', 'agent-' || (n / 11) % 50,
  'env', CASE WHEN hash & 1 = 0 THEN 'prod' WHEN hash & 2 = 0 THEN 'staging' ELSE 'dev' END,
  'model', jsonb_build_object('name', 'model-' || (hash >> 8) % 5, 'temperature', ((hash >> 16) % 10) / 10.0),
  'incident', CASE WHEN n / 11 % 50000 = 7 THEN 'i-1' END,
  'release', CASE WHEN n < total * 0.17 THEN 'old' WHEN n >= total * 0.83 THEN 'new' END,
  'left', CASE WHEN n / 11 % 2 = 0 OR n > total - 1000 THEN 1 END,
  'right', CASE WHEN n / 11 % 2 = 1 OR n > total - 1000 THEN 1 END
))`

/** On a cluster, another part's sessions are in the same database. */
const IS_LOADED = "project_id IN (SELECT id FROM projects WHERE name LIKE 'load %')"

const STEPS = {
  projects: `INSERT INTO projects (id, name, created_at)
SELECT md5('project ' || p)::uuid, 'load ' || p, now() FROM generate_series(0, $1::int - 1) AS p`,
  users: `INSERT INTO users (project_id, id, identifier, created_at, updated_at)
SELECT md5('project ' || p)::uuid, md5(p || ' user ' || u)::uuid, 'user ' || u, now(), now()
FROM generate_series(0, $1::int - 1) AS p, generate_series(0, CASE WHEN p = 0 THEN 20000 ELSE 400 END) AS u`,
  sessions: `INSERT INTO sessions (project_id, id, user_id, configs, disable_task_tracking, created_at)
SELECT md5('project ' || p)::uuid, id, CASE
    WHEN n / 11 % 60 = 0 THEN md5(p || ' user 0')::uuid
    WHEN n IN (11, total / 22 * 11 + 11) THEN md5(p || ' user 1')::uuid
    WHEN n % 3 = 0 THEN md5(p || ' user ' || 2 + (n / 3) % CASE WHEN p = 0 THEN 19999 ELSE 399 END)::uuid
  END, ${CONFIGS}, false, created_at
FROM (
  SELECT n, $2::bigint AS total, CASE WHEN n % 11 < 6 THEN 0 ELSE 1 + (n / 11 * 5 + n % 11 - 6) % ($1::int - 1) END AS p,
    hashint8extended(n, 0) & 2147483647 AS hash, timestamptz '2026-01-01Z' + n / 4 * interval '40 ms' AS created_at,
    (lpad(to_hex(1767225600000 + n / 4 * 40), 12, '0') || '7' || substr(md5('session ' || n), 1, 3) || '8' || substr(md5('session ' || n), 4, 15))::uuid AS id
  FROM generate_series($3::bigint, $4::bigint - 1) AS n
) g`,
  heads: `INSERT INTO session_heads (project_id, session_id, last_seq, total_tokens, updated_at)
SELECT project_id, id, 0, 0, created_at FROM sessions WHERE ${IS_LOADED}`,
  terms: `INSERT INTO list_terms (project_id, term, created_at, item_id, signature)
SELECT s.project_id, x.term, s.created_at, s.id, i.signature FROM sessions s
CROSS JOIN LATERAL index_terms('sessions', s.configs, s.user_id) AS i CROSS JOIN LATERAL unnest(i.terms) AS x (term)
WHERE ${IS_LOADED}`,
}

const PROJECTS = 50
const CHUNK = 50_000
const TABLES = ['sessions', 'session_heads', 'list_terms']

/** Fills a migrated, empty database. */
export async function loadSessions(database: BenchDatabase, sessions: number): Promise<LoadedSessions> {
  const began = performance.now()
  await database.query(STEPS.projects, [PROJECTS])
  await database.query(STEPS.users, [PROJECTS])
  const restoreIndexes = await dropIndexes(database, TABLES)
  const chunks = Array.from({ length: Math.ceil(sessions / CHUNK) }, (_, chunk) => chunk * CHUNK)
  const work = () =>
    withConnection(database.url, async (connection) => {
      for (let from = chunks.shift(); from !== undefined; from = chunks.shift())
        await connection.query(STEPS.sessions, [PROJECTS, sessions, from, Math.min(from + CHUNK, sessions)])
    })
  await Promise.all([work(), work()])
  await Promise.all([database.query(STEPS.heads), database.query(STEPS.terms)])
  const filled = performance.now()
  await restoreIndexes()
  const seconds = (ms: number) => Math.round(ms / 1000)
  const countOf = async (project: string) => {
    const [row] = await database.query<{ count: string }>(
      'SELECT count(*) FROM sessions WHERE project_id = $1',
      [project],
    )
    return { id: project, sessions: Number(row!.count) }
  }
  const [huge, small] = await Promise.all([0, 7].map((p) => projectId(database, p).then(countOf)))
  return {
    huge: huge!,
    small: small!,
    sessions,
    took_s: { rows: seconds(filled - began), indexes: seconds(performance.now() - filled) },
  }
}

/** The order by last activity: each session with its terms, and with the one that stands for every session. */
const ORDER = [
  `INSERT INTO session_activity (project_id, session_id, active_at, terms)
SELECT project_id, item_id, date_trunc('second', min(created_at), 'UTC'), array_agg(term) || 7::bigint
FROM list_terms GROUP BY project_id, item_id`,
  `INSERT INTO activity_terms (project_id, term, active_at, session_id, signature)
SELECT project_id, term, date_trunc('second', created_at, 'UTC'), item_id, signature FROM list_terms
UNION ALL SELECT project_id, 7, date_trunc('second', min(created_at), 'UTC'), item_id, min(signature)
FROM list_terms GROUP BY project_id, item_id`,
]

/** Puts the sessions that were loaded into the order of their last activity, as the service does in the background. */
export async function orderByActivity(database: BenchDatabase): Promise<void> {
  const restoreIndexes = await dropIndexes(database, ['session_activity', 'activity_terms'])
  await Promise.all(ORDER.map((sql) => database.query(sql)))
  await restoreIndexes()
  await database.query("UPDATE projects SET consumers = '{last_activity}'")
  await database.query(
    `INSERT INTO project_consumers (project_id, consumer, used_at, scan_at, sessions_scanned, scanned_at)
SELECT id, 'last_activity', now(), now() + interval '1 day', 0, now() FROM projects`,
  )
}

async function projectId(database: BenchDatabase, p: number): Promise<string> {
  const [row] = await database.query<{ id: string }>("SELECT md5('project ' || $1::int)::uuid AS id", [p])
  return row!.id
}

/** Drops the indexes and constraints of the tables. Returns what makes them anew, two at a time. */
async function dropIndexes(database: BenchDatabase, tables: readonly string[]): Promise<() => Promise<void>> {
  const constraints = await database.query<{ table: string; name: string; definition: string; type: string }>(
    `SELECT c.conrelid::regclass::text AS table, c.conname AS name, pg_get_constraintdef(c.oid) AS definition, c.contype AS type
     FROM pg_constraint c WHERE c.conrelid = ANY ($1::regclass[]) AND c.contype IN ('p', 'f') ORDER BY c.contype`,
    [tables],
  )
  const indexes = await database.query<{ name: string; definition: string }>(
    `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition
     FROM pg_index i WHERE i.indrelid = ANY ($1::regclass[]) AND NOT i.indisprimary`,
    [tables],
  )
  for (const { table, name } of constraints)
    await database.query(`ALTER TABLE ${table} DROP CONSTRAINT ${name}`)
  for (const { name } of indexes) await database.query(`DROP INDEX ${name}`)
  const added = ({ table, name, definition }: (typeof constraints)[number]) =>
    `ALTER TABLE ${table} ADD CONSTRAINT ${name} ${definition}`
  const keys = constraints.filter(({ type }) => type === 'p').map(added)
  const references = constraints.filter(({ type }) => type === 'f').map(added)
  return async () => {
    const statements = [...keys, ...indexes.map(({ definition }) => definition)]
    const work = () =>
      withConnection(database.url, async (connection) => {
        await connection.query("SET maintenance_work_mem = '256MB'")
        for (let sql = statements.shift(); sql; sql = statements.shift()) await connection.query(sql)
      })
    await Promise.all([work(), work()])
    for (const sql of references) await database.query(sql)
  }
}
