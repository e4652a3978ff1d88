import { type LoadResult, runLoad } from '../load.ts'
import { NEEDS_PROC } from '../memory.ts'
import type { BenchContext, Figure, Part } from '../part.ts'
import type { BenchDatabase } from '../postgres.ts'
import { interleave } from '../rounds.ts'
import type { Service } from '../service.ts'
import { appendsTo, callApi, createSessions, toolCall } from '../sessions.ts'

const CONNECTIONS = 64
const PROJECTS = 1_000
const PER_SESSION = 100

/** What fills the database, and where in it the appends go. */
interface Shape {
  name: string
  /** Creates the sessions that `entries` are spread over, and gives those that are appended to. */
  createSessions(service: Service, entries: number): Promise<string[]>
  /** Sessions of the empty database that it is compared with. */
  sessions_when_empty: number
}

const SHAPES: Shape[] = [
  {
    name: 'in one session',
    createSessions: (service) => createSessions(service, 1),
    sessions_when_empty: 1,
  },
  {
    name: 'in many sessions',
    createSessions: async (service, entries) =>
      (await createSessions(service, entries / PER_SESSION)).slice(0, 1_000),
    sessions_when_empty: 1_000,
  },
  {
    name: 'in many projects',
    createSessions: createInProjects,
    sessions_when_empty: 1_000,
  },
]

/** Whether an append costs more when the database has millions of entries. */
export const growth: Part = {
  name: 'growth',
  describe: 'the cost of an append with millions of entries, against an empty database',
  run: async (ctx) => {
    const sizes = ctx.quick ? [2_000] : ctx.full ? [1_000_000, 10_000_000] : [1_000_000]
    const figures: Figure[] = []
    for (const entries of sizes) {
      for (const shape of ctx.quick ? SHAPES.slice(0, 1) : SHAPES)
        figures.push(...(await measureShape(ctx, shape, entries)))
    }
    return figures
  },
}

async function measureShape(ctx: BenchContext, shape: Shape, entries: number): Promise<Figure[]> {
  const what = `${entries.toLocaleString('en-US')} entries ${shape.name}`
  ctx.say(`${what}: loading`)
  const empty = await ctx.createDatabase()
  const grown = await ctx.createDatabase()
  const onEmpty = await ctx.startService(empty)
  const onGrown = await ctx.startService(grown)
  const sessions = await shape.createSessions(onGrown, entries)
  await fill(grown, entries)
  const seconds = ctx.quick ? ctx.seconds : Math.max(ctx.seconds / 2, 1)
  const load = async (service: Service, database: BenchDatabase, ids: string[]) => {
    const requests = appendsTo(ids)
    const shared = {
      services: [service],
      connections: CONNECTIONS,
      requests,
      status: 200,
      cpu_of: { database },
    }
    await ctx.warmUp(() => runLoad({ ...shared, seconds: Math.min(seconds, 2) }))
    return runLoad({ ...shared, seconds })
  }
  const runs = await interleave(
    ctx.rounds,
    {
      empty: async () => {
        await empty.query('TRUNCATE entries')
        return load(onEmpty, empty, await createSessions(onEmpty, shape.sessions_when_empty))
      },
      grown: () => load(onGrown, grown, sessions),
    },
    (sentence) => ctx.say(`${what}: ${sentence}`),
  )
  ctx.detail(what, runs)
  for (const service of [onEmpty, onGrown]) await service.stop()
  for (const database of [empty, grown]) await database.drop()
  return compare(what, runs.empty!, runs.grown!)
}

function compare(what: string, empty: LoadResult[], grown: LoadResult[]): Figure[] {
  const cpu = ({ cpu }: LoadResult) => (cpu ? cpu.service_us + cpu.postgres_us : undefined)
  const costs = grown.flatMap((run, round) => {
    const [now, then] = [cpu(run), cpu(empty[round]!)]
    return now && then ? [now / then] : []
  })
  const ratio = { unit: 'ratio', charted: false } as const
  return [
    {
      ...ratio,
      name: `${what}: CPU time an append ÷ empty`,
      better: 'lower',
      values: costs,
      at_least: 1.15,
      aim: 1.05,
      ...(costs.length === 0 && { note: NEEDS_PROC }),
    },
    {
      ...ratio,
      name: `${what}: appends a second ÷ empty`,
      better: 'higher',
      values: grown.map(({ per_second }, round) => per_second / empty[round]!.per_second),
    },
  ]
}

/** Ten sessions in each project; appended to are 1,000 of the project `default`. */
async function createInProjects(service: Service, entries: number): Promise<string[]> {
  const projects = Math.min(PROJECTS, entries / PER_SESSION)
  const sessions = Math.max(entries / PER_SESSION / projects, 1)
  for (let from = 0; from < projects; from += 20) {
    const some = Array.from({ length: Math.min(20, projects - from) }, (_, index) => from + index)
    await Promise.all(
      some.map(async (index) => {
        const body = JSON.stringify({ name: `project-${index}` })
        const admin = { ...service, token: service.admin_token }
        const path = '/admin/v1/projects'
        const { token } = await callApi<{ token: string }>(admin, { method: 'POST', path, body })
        await createSessions({ ...service, token }, sessions)
      }),
    )
  }
  return createSessions(service, 1_000)
}

/**
 * Spreads entries over all sessions, set-based, as if they had been appended over the last months: ids that follow
 * time, as the service makes them, and heads that know of them. Then vacuums and writes everything out, as the time
 * that such a load takes in life would have.
 */
async function fill(database: BenchDatabase, entries: number): Promise<void> {
  const [row] = await database.query<{ sessions: string }>('SELECT count(*) AS sessions FROM sessions')
  const each = Math.ceil(entries / Number(row!.sessions))
  await database.query(
    `INSERT INTO entries (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data)
     SELECT s.project_id, s.id, n, t.created_at, t.created_at,
       (lpad(to_hex((extract(epoch FROM t.created_at) * 1000)::bigint), 12, '0') || '7000' ||
         '8' || lpad(to_hex(n), 15, '0'))::uuid, $2, 0, 'event', 'tool_call', $3::jsonb
     FROM sessions s
     CROSS JOIN generate_series(1, $1::bigint) n
     CROSS JOIN LATERAL (SELECT now() - interval '90 days' * (1 - n::float / ($1::bigint + 1)) AS created_at) t
     ORDER BY n`,
    [each, 270, JSON.stringify(toolCall(0).data)],
  )
  await database.query('UPDATE session_heads SET last_seq = $1', [each])
  await database.query('VACUUM (ANALYZE)')
  // A server of somebody else's may not let us.
  await database.query('CHECKPOINT').catch(() => {})
}
