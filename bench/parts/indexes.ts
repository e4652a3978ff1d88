import type { BenchContext, Figure, Part } from '../part.ts'
import type { BenchDatabase } from '../postgres.ts'
import { interleave, type Subjects } from '../rounds.ts'
import { toolCall } from '../sessions.ts'

const PROJECTS = 50
const SESSIONS = 10_000
/** A statement's rows: as many appends as a commit under load has. Creating is measured the same way. */
const ROWS = 50

/** A table that requests write, and the n-th row as they write it. */
interface Written {
  name: string
  table: string
  columns: string
  row: string
}

const asJson = (value: unknown) => `'${JSON.stringify(value).replaceAll("'", "''")}'::jsonb`

const PROJECT = `('00000000-0000-7000-8000-' || lpad((n % ${PROJECTS})::text, 12, '0'))::uuid`
const SESSION = `('00000000-0000-7000-8000-' || lpad(floor(random() * ${SESSIONS})::text, 12, '0'))::uuid`
/** An id as the service makes it: the time, then random bits. */
const ID = `(lpad(to_hex(1700000000000 + n), 12, '0') || '7' || substr(md5(random()::text), 1, 3) || '8' ||
  substr(md5(random()::text), 1, 15))::uuid`
const AT = `timestamptz '2026-01-01' + n * interval '1 millisecond'`
const ENTRY = `${PROJECT}, ${SESSION}, n, ${AT}, ${AT}, ${ID}, 270, 0`

const TABLES: Written[] = [
  {
    name: 'a session',
    table: 'sessions',
    columns: 'project_id, id, user_id, configs, created_at, disable_task_tracking',
    row: `${PROJECT}, ${ID}, ${SESSION}, ${asJson({ agent: 'gpt-4o', env: 'airline', trial: 2, task: 17, tools: { calls: true } })}, ${AT}, false`,
  },
  {
    name: 'a term of a list',
    table: 'list_terms',
    columns: 'project_id, term, created_at, item_id, signature',
    row: `${PROJECT}, hashtextextended((n % 40)::text, 0), ${AT}, ${ID}, n`,
  },
  {
    name: 'an event',
    table: 'entries',
    columns: 'project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data',
    row: `${ENTRY}, 'event', 'tool_call', ${asJson(toolCall(0).data)}`,
  },
  {
    name: 'a message',
    table: 'entries',
    columns:
      'project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, role, format, data',
    row: `${ENTRY}, 'message', 'user', 'openai', ${asJson({ role: 'user', content: 'Please move my flight to the day after tomorrow. '.repeat(5) })}`,
  },
  {
    name: 'an idempotency key',
    table: 'idempotency_keys',
    columns: 'project_id, key, request_hash, owner_id, created_at, seqs',
    row: `${PROJECT}, gen_random_uuid()::text, md5(n::text), ${SESSION}, ${AT}, ARRAY[n]`,
  },
  {
    name: 'a learning space',
    table: 'learning_spaces',
    columns: 'project_id, id, user_id, meta, created_at, updated_at',
    row: `${PROJECT}, ${ID}, ${SESSION}, ${asJson({ name: 'refunds' })}, ${AT}, ${AT}`,
  },
]

/** What each index costs a row that is written, by leaving it out. */
export const indexes: Part = {
  name: 'indexes',
  describe: 'what each index costs a row that is written: time, WAL and disk, by leaving it out',
  run: async (ctx) => {
    const database = await ctx.createDatabase()
    const figures: Figure[] = []
    for (const written of TABLES) figures.push(...(await measureTable(ctx, database, written)))
    return figures
  },
}

/** Of one row, in microseconds and bytes. */
interface Cost {
  us: number
  wal: number
  disk: number
}

const ALL = 'all indexes'

async function measureTable(ctx: BenchContext, database: BenchDatabase, written: Written): Promise<Figure[]> {
  ctx.say(written.name)
  const indexes = await database.query<{ name: string; definition: string }>(
    `SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition
     FROM pg_index WHERE indrelid = $1::regclass ORDER BY indisprimary DESC, 1`,
    [written.table],
  )
  const subjects: Subjects<Cost> = {}
  for (const [index, left_out] of [ALL, ...indexes.map(({ name }) => name)].entries()) {
    const copy = `copy_${index}`
    await database.query(`CREATE TABLE ${copy} (LIKE ${written.table} INCLUDING DEFAULTS)`)
    for (const { name, definition } of indexes) {
      const create = definition.replace(/^(CREATE (?:UNIQUE )?INDEX) \S+ ON \S+ /, `$1 ON ${copy} `)
      if (name !== left_out) await database.query(create)
    }
    let next = 1
    const count = ctx.quick ? 2 * ROWS : 1_000 * ROWS
    subjects[left_out] = async () => {
      const from = next
      next += count
      return insert(database, copy, written, from, next - 1)
    }
  }
  // The first rows fill empty pages, and what a checkpoint costs must not meet some of the copies alone.
  for (const insertSome of Object.values(subjects)) await insertSome()
  await database.query('CHECKPOINT').catch(() => {})
  const runs = await interleave(ctx.rounds, subjects, () => {})
  for (const index of Object.keys(subjects).keys()) await database.query(`DROP TABLE copy_${index}`)
  ctx.detail(written.name, runs)
  return figuresOf(written.name, runs)
}

/** Inserts rows by statements of a few, without a way between them, in one transaction. */
async function insert(
  database: BenchDatabase,
  copy: string,
  { columns, row }: Written,
  from: number,
  to: number,
): Promise<Cost> {
  const state = async () => {
    const [now] = await database.query<{ wal: string; disk: string }>(
      `SELECT pg_current_wal_insert_lsn() - '0/0' AS wal, pg_total_relation_size('${copy}') AS disk`,
    )
    return { wal: Number(now!.wal), disk: Number(now!.disk) }
  }
  const before = await state()
  const began = performance.now()
  await database.query(`DO $$ BEGIN
    FOR lowest IN ${from}..${to} BY ${ROWS} LOOP
      INSERT INTO ${copy} (${columns}) SELECT ${row} FROM generate_series(lowest, lowest + ${ROWS - 1}) AS n;
    END LOOP;
  END $$`)
  const us = (performance.now() - began) * 1_000
  const after = await state()
  const rows = to - from + 1
  return { us: us / rows, wal: (after.wal - before.wal) / rows, disk: (after.disk - before.disk) / rows }
}

/** What a row costs with all indexes, and how much of it is gone without each. Space on disk is in the details. */
function figuresOf(name: string, runs: Record<string, Cost[]>): Figure[] {
  const units = { us: 'µs', wal: 'bytes of WAL' } as const
  const all = runs[ALL]!
  return Object.entries(runs).flatMap(([left_out, costs]) =>
    (['us', 'wal'] as const).map((what) => ({
      name: left_out === ALL ? name : `${name}: ${left_out}`,
      unit: units[what],
      better: 'lower' as const,
      values: costs.map((cost, round) => (left_out === ALL ? cost[what] : all[round]![what] - cost[what])),
    })),
  )
}
