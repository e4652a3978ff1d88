import type { QueryResult } from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { REQUEST_SETTINGS } from '../../packages/kits/src/postgres/pool_settings.ts'
import type { Statement } from '../../packages/kits/src/postgres/statement.ts'
import { everyStatement } from '../database/every_statement.ts'
import { execute, withConnection } from '../harness/sql.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'

/*
 * No statement of the product reads tenant data by scanning it, at a size where that matters, whatever the
 * statistics are: fresh, from when there was next to nothing, or none at all. Each is planned as a pooled
 * connection would in the end: without knowing its parameters.
 */

const TENANT_TABLES = [
  ...['users', 'sessions', 'session_heads', 'entries', 'idempotency_keys', 'learning_spaces', 'list_terms'],
  ...['project_consumers', 'change_marks', 'change_cursors', 'session_activity', 'activity_terms'],
]

/** What reads a whole project, or more, because that is its task; no request of a client waits for it. */
const READS_ALL: Record<string, string> = {
  forget_idempotency_keys:
    'reads the oldest keys, whosever they are; they are few, as they are forgotten all the time',
  find_marks: 'asks every project, now and then, for what waits; it is little',
  find_due_sessions:
    'asks every project, now and then, for the sessions that are due; their index has no others',
  find_scans: 'asks every project, now and then, for one row of each consumer',
  erase_project_consumers_of_owners: 'there are as many rows as consumers: a handful',
  erase_project_consumers_of_project: 'there are as many rows as consumers: a handful',
  lease_marks_for_last_activity: 'reads the marks, which are few: they are cleared within seconds',
  erase_change_marks_of_owners: 'reads the marks, which are few: they are cleared within seconds',
  // PostgreSQL before 18 cannot skip the first columns of an index, and takes LIMIT for a reason to read all.
  erase_users_of_owners: 'before PostgreSQL 18 reads the users of a project',
  erase_list_terms_of_owners: 'runs for nobody: terms go with what they find, or with the project',
  erase_activity_terms_of_owners: 'before PostgreSQL 18 reads the order of a project, where it has one',
  measure_project_export: 'counts what an export of a whole project will hold',
  make_first_segments: 'divides a project into segments, once, when it begins to search',
  count_sessions_to_index: 'counts the sessions of a project, while they are being indexed',
  restore_erased_sessions: 'without statistics reads the sessions of a project; only a restore runs it',
  verify_chains: 'reads a range of ids, which is known when it is planned for its parameters',
  restore_blob_references: 'without statistics reads the heads of a project; only a restore runs it',
  verify_sessions: 'reads a range of ids, which is known when it is planned for its parameters',
}
for (const table of ['learning_spaces', 'project_consumers', 'change_marks']) {
  READS_ALL[`find_overdue_${table}`] = 'asks every project, a few times a minute, for waits that are too long'
  READS_ALL[`end_overdue_${table}`] = 'runs only after the clock of the database was set back'
}
for (const table of TENANT_TABLES.filter((name) => !['entries', 'change_cursors'].includes(name)))
  READS_ALL[`verify_measure_${table}`] = 'counts the rows of a project'
for (const table of TENANT_TABLES)
  READS_ALL[`verify_next_project_${table}`] = 'asks every project for its first row'

/** What is planned when the first append comes, and not again before the tables are analyzed, a minute or more later. */
const HOT = [...['find_append_keys', 'find_known_appends', 'read_appended_entries']]

/** The second column of each index of tenant data, behind the project: whoever looks for something gives that at least. */
type SecondColumns = Record<string, string | null>

const SESSIONS = 40_000
/** Enough of them that reading all is dearer than finding a few, by PostgreSQL 15's reckoning as well. */
const USERS = 20_000

/** Until a table is analyzed the planner cannot tell which of its indexes is best for a list of ids. */
const OTHER_INDEX =
  /on (sessions|learning_spaces|users|change_cursors) without its (user_id|created_at|session_id)$/

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Index Cond'?: string
  Filter?: string
  Plans?: Plan[]
}

describe.skipIf(inject('testServer').mode === 'shared')('every statement of the product', () => {
  let database: TestDatabase
  let statements: Statement[]
  beforeAll(async () => {
    statements = await everyStatement()
    database = await createTestDatabase()
    for (const table of TENANT_TABLES)
      await execute(database.url, `ALTER TABLE ${table} SET (autovacuum_enabled = off)`)
  })
  afterAll(() => database.drop())

  it('finds what it reads by an index, with statistics absent, old and fresh, and planned before there was anything', async () => {
    const hot = statements.filter(({ name }) => HOT.includes(name))
    const empty = await scans(database.url, hot, REQUEST_SETTINGS)
    await load(database.url, 0, SESSIONS / 100)
    await execute(database.url, 'ANALYZE')
    await load(database.url, SESSIONS / 100, SESSIONS)
    const old = await scans(database.url, statements)
    await execute(database.url, 'ANALYZE')
    const fresh = await scans(database.url, statements)
    await execute(database.url, 'DELETE FROM pg_statistic')
    await execute(database.url, `UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE relname = ANY ($1)`, [
      TENANT_TABLES,
    ])
    const absent = (await scans(database.url, statements)).filter((found) => !OTHER_INDEX.test(found))
    expect({ empty, old, fresh, absent }).toEqual({ empty: [], old: [], fresh: [], absent: [] })
  }, 300_000)

  it('is known by its name alone', () => {
    const preparedNames = statements.filter(({ prepared }) => prepared).map(({ name }) => name)
    expect(preparedNames.filter((name, index) => preparedNames.indexOf(name) !== index)).toEqual([])
  })

  it('has no exception that is not needed', () => {
    const names = statements.map(({ name }) => name)
    expect(Object.keys(READS_ALL).filter((name) => !names.includes(name))).toEqual([])
  })
})

/** Two projects of equal size, sessions with a few entries, all written in sets. */
async function load(databaseUrl: string, from: number, until: number): Promise<void> {
  const rows = `SELECT n, md5('project ' || n % 2)::uuid AS project_id, md5('user ' || n % 2 || ' ' || n % ${USERS})::uuid AS user_id,
    md5('session ' || n)::uuid AS id, timestamptz '2026-01-01Z' + n * interval '1 s' AS created_at,
    jsonb_build_object('agent', n % 50, 'n', n) AS document FROM generate_series(${from}, ${until} - 1) AS n`
  const steps = [
    `INSERT INTO projects (id, name, created_at) SELECT md5('project ' || p)::uuid, 'p' || p, now() FROM generate_series(0, 1) AS p ON CONFLICT DO NOTHING`,
    `INSERT INTO users (project_id, id, identifier, created_at, updated_at) SELECT DISTINCT project_id, user_id, 'user ' || n % ${USERS}, timestamptz '2026-01-01Z', now() FROM (${rows}) g ON CONFLICT DO NOTHING`,
    `INSERT INTO sessions (project_id, id, user_id, configs, disable_task_tracking, created_at) SELECT project_id, id, user_id, document, false, created_at FROM (${rows}) g`,
    `INSERT INTO session_heads (project_id, session_id, last_seq, total_tokens, updated_at) SELECT project_id, id, 5, 0, created_at FROM (${rows}) g`,
    `INSERT INTO learning_spaces (project_id, id, user_id, meta, created_at, updated_at) SELECT project_id, id, user_id, document, created_at, created_at FROM (${rows}) g`,
    `INSERT INTO list_terms (project_id, term, created_at, item_id, signature) SELECT project_id, x.term, created_at, id, i.signature
     FROM (${rows}) g CROSS JOIN LATERAL index_terms('sessions', document, user_id) AS i CROSS JOIN LATERAL unnest(i.terms) AS x (term)`,
    `INSERT INTO session_activity (project_id, session_id, active_at, terms) SELECT project_id, id, created_at, '{7}' FROM (${rows}) g`,
    `INSERT INTO activity_terms (project_id, term, active_at, session_id, signature) SELECT project_id, x.term, created_at, id, i.signature
     FROM (${rows}) g CROSS JOIN LATERAL index_terms('sessions', document, user_id) AS i CROSS JOIN LATERAL unnest(i.terms || 7::bigint) AS x (term)`,
    `INSERT INTO change_marks (project_id, consumer, session_id, marked_at, due_at, failures) SELECT project_id, 'c', id, now(), created_at, 0 FROM (${rows}) g`,
    `INSERT INTO change_cursors (project_id, consumer, session_id, seq) SELECT project_id, 'c', id, 1 FROM (${rows}) g`,
    `INSERT INTO project_consumers (project_id, consumer, used_at, scan_at, sessions_scanned) SELECT md5('project ' || p)::uuid, 'c', now(), now(), 0 FROM generate_series(0, 20000) AS p ON CONFLICT DO NOTHING`,
    `INSERT INTO entries (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data)
     SELECT project_id, id, seq, created_at, created_at, md5(n || ' ' || seq)::uuid, 20, 1, 'event', 'a', '{}' FROM (${rows}) g, generate_series(1, 5) AS seq`,
    `INSERT INTO idempotency_keys (project_id, key, request_hash, owner_id, created_at, answer) SELECT project_id, 'key ' || n, 'hash', id, created_at, '{}' FROM (${rows}) g`,
  ]
  for (const step of steps) await execute(databaseUrl, step)
}

/** The scans that statements would make of tenant data, as sentences. */
async function scans(
  databaseUrl: string,
  statements: Statement[],
  settings: Record<string, string> = { plan_cache_mode: 'force_generic_plan' },
): Promise<string[]> {
  const found: string[] = []
  await withConnection(databaseUrl, async (connection) => {
    const indexes = await connection.query<{ name: string; second: string | null }>(
      `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid, 2, true) AS second
       FROM pg_index i WHERE i.indrelid::regclass::text = ANY ($1)`,
      [TENANT_TABLES],
    )
    const second = Object.fromEntries(indexes.rows.map((row) => [row.name, row.second]))
    for (const [setting, value] of Object.entries(settings))
      await connection.query(`SET ${setting} = ${value}`)
    for (const { name, text } of statements) {
      const parameters = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)))
      const nulls = Array.from({ length: parameters }, () => 'NULL').join(', ')
      const results = await connection.query(
        `PREPARE examined AS ${text}\n; EXPLAIN (FORMAT JSON) EXECUTE examined${nulls && `(${nulls})`}; DEALLOCATE examined`,
      )
      const explained = (results as unknown as QueryResult[])[1]!
      const plan = explained.rows[0]['QUERY PLAN'][0].Plan as Plan
      const reads = unbounded(plan, second).filter(
        (what) =>
          !(name in READS_ALL) || (/without its|not looked up/.test(what) && !/^end_overdue_/.test(name)),
      )
      found.push(...reads.map((what) => `${name}: ${what}`))
    }
  })
  return [...new Set(found)]
}

/**
 * The scans of tenant tables below a plan's node that read more with every row that a project has: without an
 * index; with an index, but by the project alone or not even that, unless a LIMIT right above ends it; and by later
 * columns of an index only, which searches all of the project's part of it.
 */
function unbounded(plan: Plan, second: SecondColumns, limited = false, heap?: string): string[] {
  const type = plan['Node Type']
  // The index scan below a bitmap scan does not say of which table it is.
  const table = plan['Relation Name'] ?? heap
  const own: string[] = []
  if (type === 'Seq Scan' && table && TENANT_TABLES.includes(table)) own.push(`Seq Scan on ${table}`)
  const isIndexScan = /^(Index Scan|Index Only Scan|Bitmap Index Scan)$/.test(type)
  if (isIndexScan && table !== undefined && TENANT_TABLES.includes(table)) {
    const columns: string[] = (plan['Index Cond'] ?? '').match(/[a-z_]+/g) ?? []
    const needed = second[plan['Index Name']!]
    const byMore = columns.some((column) => KEY_COLUMNS.has(column))
    if (!columns.includes('project_id')) own.push(`${type} on ${table} of all projects`)
    else if (byMore && !columns.includes(needed!)) own.push(`${type} on ${table} without its ${needed}`)
    else if (!byMore && !limited) own.push(`${type} on ${table} of a whole project`)
  }
  const looked_up = table === 'entries' && /\((?:\w+\.)?(seq|id) = /.exec(plan.Filter ?? '')
  if (looked_up) own.push(`${type} on entries, of which ${looked_up[1]} is not looked up`)
  const isBitmap = /^(Bitmap Heap Scan|BitmapAnd|BitmapOr)$/.test(type)
  const passesOn =
    ['Limit'].includes(type) || (limited && /^(Nested Loop|Subquery Scan|LockRows|Result|Append)$/.test(type))
  return [
    ...own,
    ...(plan.Plans ?? []).flatMap((inner) =>
      unbounded(inner, second, passesOn, isBitmap ? table : undefined),
    ),
  ]
}

const KEY_COLUMNS = new Set([
  ...['id', 'term', 'session_id', 'user_id', 'created_at', 'identifier', 'key', 'owner_id', 'seq', 'item_id'],
  ...['active_at', 'due_at', 'consumer', 'parent_id'],
])
