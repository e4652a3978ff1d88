import { setTimeout as sleep } from 'node:timers/promises'
import { measureCpu } from '../cpu.ts'
import { type LoadOptions, type LoadResult, runLoad } from '../load.ts'
import { NEEDS_PROC } from '../memory.ts'
import type { BenchContext, Figure, Part } from '../part.ts'
import type { BenchDatabase } from '../postgres.ts'
import { interleave, ratios } from '../rounds.ts'
import type { Service } from '../service.ts'
import { appendsTo } from '../sessions.ts'

/** Entries that are spread evenly over sessions, and these over projects. */
interface Size {
  entries: number
  sessions: number
  projects: number
}

/** The sessions of the project `default` that are asked for, in each database. */
const ASKED: Size = { entries: 10_000, sessions: 100, projects: 1 }
/** What else is in the database. */
const SIZES: Size[] = [
  { entries: 1_000_000, sessions: 1, projects: 1 },
  { entries: 1_000_000, sessions: 10_000, projects: 1 },
  { entries: 1_000_000, sessions: 10_000, projects: 1_000 },
  { entries: 1_000_000, sessions: 100_000, projects: 100_000 },
]
const LARGEST: Size = { entries: 30_000_000, sessions: 300_000, projects: 1_000 }

/** So many sessions have their entries beside each other's, as sessions of the same hour do. */
const SESSIONS_AT_ONCE = 1_000
const ONE_ENTRY = { name: 'get_order', ok: true }

interface Grown {
  name: string
  service: Service
  database: BenchDatabase
  /** Of the project `default`. */
  sessions: string[]
  idle_us: number | undefined
}

/** What an operation costs when the database has millions of entries, or many projects. */
export const growth: Part = {
  name: 'growth',
  describe:
    'the cost of appends, pages and lists with millions of entries and many projects, against few of both',
  run: async (ctx) => {
    const few = { entries: 2_000, sessions: 20, projects: 10 }
    const sizes = ctx.quick ? [few] : ctx.full ? [LARGEST, ...SIZES] : SIZES
    const small = await grow(ctx)
    const grown: Grown[] = []
    for (const size of sizes) grown.push(await grow(ctx, size))
    for (const one of [small, ...grown]) one.service = await ctx.startService(one.database)
    const oneSmall = { ...small, name: 'one session', sessions: small.sessions.slice(0, 1) }
    const loads = Object.entries(OPERATIONS).flatMap(([operation, loadOf]) =>
      [small, oneSmall, ...grown].map(
        (one) => [`${operation}: ${one.name}`, () => measure(ctx, one, loadOf(one.sessions))] as const,
      ),
    )
    const runs = await interleave(ctx.rounds, Object.fromEntries(loads), ctx.say)
    ctx.detail('runs', runs)
    const idle = [small, ...grown].map(({ name, idle_us }) => [name, idle_us])
    ctx.detail('with nobody asking, CPU µs a second', Object.fromEntries(idle))
    return grown.flatMap(({ name, sessions }) =>
      Object.keys(OPERATIONS).map((operation) => {
        const like = sessions.length === 1 ? oneSmall : small
        return compare(
          `${operation}, ${name}`,
          runs[`${operation}: ${name}`]!,
          runs[`${operation}: ${like.name}`]!,
        )
      }),
    )
  },
}

type Load = Omit<LoadOptions, 'services' | 'seconds'>

const reads = (paths: string[]): Load => ({
  connections: 8,
  status: 200,
  requests: paths.map((path) => ({ method: 'GET', path })),
})

const OPERATIONS: Record<string, (sessions: string[]) => Load> = {
  append: (sessions) => ({ connections: 64, status: 200, requests: appendsTo(sessions) }),
  // Callers who ask for the same at once share a read, so each asks for another page.
  list: () => reads(Array.from({ length: 60 }, (_, more) => `/api/v1/session?limit=${20 + more}`)),
  'last 50 entries': (sessions) =>
    reads(sessions.map((id) => `/api/v1/session/${id}/timeline?limit=50&time_desc=true`)),
}

async function measure(ctx: BenchContext, { service, database }: Grown, load: Load): Promise<LoadResult> {
  const all = { ...load, services: [service], cpu_of: { database } }
  const seconds = ctx.quick ? ctx.seconds : Math.max(ctx.seconds / 2, 1)
  await ctx.warmUp(() => runLoad({ ...all, seconds: Math.min(seconds, 1) }))
  return runLoad({ ...all, seconds })
}

function compare(name: string, grown: LoadResult[], small: LoadResult[]): Figure {
  const costs = (runs: LoadResult[]) =>
    runs.flatMap(({ cpu }) => (cpu ? [cpu.service_us + cpu.postgres_us] : []))
  const values = ratios(costs(grown), costs(small))
  return {
    name: `${name}: CPU time ÷ with 10,000 entries`,
    unit: 'ratio',
    better: 'lower',
    values,
    at_least: 1.15,
    aim: 1.05,
    charted: false,
    ...(values.length === 0 && { note: NEEDS_PROC }),
  }
}

/** A filled database, and what a service takes on it that nobody asks anything. */
async function grow(ctx: BenchContext, size?: Size): Promise<Grown> {
  const [entries, sessions, projects] = [size?.entries, size?.sessions, size?.projects].map((count = 0) =>
    count.toLocaleString('en-US'),
  )
  const name = size ? `${entries} more entries (sessions: ${sessions}, projects: ${projects})` : 'few entries'
  ctx.say(`${name}: loading`)
  const database = await ctx.createDatabase()
  const service = await ctx.startService(database)
  const [project] = await database.query<{ id: string }>(`SELECT id FROM projects WHERE name = 'default'`)
  if (size) await fill(database, 'more', size, size.projects === 1 ? project!.id : undefined)
  await fill(database, 'asked', ASKED, project!.id)
  await database.query('VACUUM (ANALYZE)')
  // A server of somebody else's may not let us.
  await database.query('CHECKPOINT').catch(() => {})
  await ctx.warmUp(() => sleep(10_000))
  const seconds = ctx.quick ? 0.1 : 30
  const stopMeasuring = await measureCpu({ services: [service], database })
  await sleep(seconds * 1_000)
  const used = await stopMeasuring()
  await service.stop()
  const idle_us = used && Math.round((used.service_us + used.postgres_us) / seconds)
  const [kind, asked] = size?.sessions === 1 ? ['more', 1] : ['asked', ASKED.sessions]
  const rows = await database.query<{ id: string }>(
    `SELECT md5('${kind} session ' || n)::uuid AS id FROM generate_series(0, ${asked - 1}) AS n`,
  )
  return { name, service, database, sessions: rows.map(({ id }) => id), idle_us }
}

/**
 * Fills a database in sets, as if all had been appended over the last months: ids that follow time, as the service makes
 * them, and heads that know of them. Either all is one project's, or there are projects of their own.
 */
async function fill(
  database: BenchDatabase,
  kind: string,
  { entries, sessions, projects }: Size,
  project: string | undefined,
): Promise<void> {
  const each = entries / sessions
  /** Of the session `n`. */
  const project_id = project ? `'${project}'::uuid` : `md5('project ' || n / ${sessions / projects})::uuid`
  const session_id = `md5('${kind} session ' || n)::uuid`
  const time = `now() - interval '90 days' * (1 - n::float / ${sessions})`
  const all = `generate_series(0, ${sessions - 1}) AS n`
  if (!project)
    await database.query(
      `INSERT INTO projects (id, name, created_at) SELECT md5('project ' || n)::uuid, 'project ' || n, now() FROM generate_series(0, ${projects - 1}) AS n`,
    )
  await database.query(
    `INSERT INTO sessions (project_id, id, configs, disable_task_tracking, created_at) SELECT ${project_id}, ${session_id}, '{}', false, ${time} FROM ${all}`,
  )
  await database.query(
    `INSERT INTO session_heads (project_id, session_id, last_seq, total_tokens, updated_at, bytes, counted) SELECT ${project_id}, ${session_id}, ${each}, 0, ${time}, ${each * 40}, ${each} FROM ${all}`,
  )
  for (let from = 0; from < sessions; from += SESSIONS_AT_ONCE)
    await database.query(
      `INSERT INTO entries (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data)
       SELECT ${project_id}, ${session_id}, seq, t.at, t.at,
         (lpad(to_hex((extract(epoch FROM t.at) * 1000)::bigint), 12, '0') || '7000' || '8' || lpad(to_hex(seq), 15, '0'))::uuid,
         40, 0, 'event', 'tool_call', $3::jsonb
       FROM generate_series($1::int, $2::int) AS n CROSS JOIN generate_series(1, ${each}) AS seq
       CROSS JOIN LATERAL (SELECT ${time} + seq * interval '1 ms' AS at) t
       ORDER BY seq`,
      [from, Math.min(from + SESSIONS_AT_ONCE, sessions) - 1, JSON.stringify(ONE_ENTRY)],
    )
}
