import { BenchFailure } from '../failure.ts'
import { type LoadResult, runLoad } from '../load.ts'
import { loadSessions, orderByActivity } from '../load_sessions.ts'
import type { BenchContext, Figure, Part } from '../part.ts'
import type { Service } from '../service.ts'
import { callApi, openProject } from '../sessions.ts'

const PAGE = 20
const WALKED_PAGE = 200

type Query = Record<string, string | number | boolean>

/** What is asked of each of the two projects, from the beginning of the list in one direction. */
const QUESTIONS: Record<string, Query> = {
  'a user with 1 in 60 of all': { user: 'user 0' },
  'a user with 2': { user: 'user 1' },
  'a value that 2 % share': configs({ agent: 'agent-3' }),
  'a value that half share': configs({ env: 'prod' }),
  'a nested value that 20 % share': configs({ model: { name: 'model-3' } }),
  'a value that 0.002 % share': configs({ incident: 'i-1' }),
  'a value that nothing has': configs({ agent: 'agent-99' }),
  'three keys together that 0.2 % share': configs({
    agent: 'agent-3',
    env: 'prod',
    model: { name: 'model-3' },
  }),
  'a value that 17 % share, at the other end of time': configs({ release: 'new' }),
  'the same, newest first': { ...configs({ release: 'old' }), time_desc: true },
  'that value, and one that half share': configs({ release: 'new', env: 'prod' }),
  'a user with 1 in 60, and a value that half share': { user: 'user 0', ...configs({ env: 'prod' }) },
  'a user with 1 in 60, and a value that none of theirs has': {
    user: 'user 0',
    ...configs({ incident: 'i-1' }),
  },
  'an object at a key, any': configs({ model: {} }),
  'an array that nothing has': configs({ model: [] }),
}

/** The same of the order by last activity. */
const BY_ACTIVITY: Record<string, Query> = {
  'any, oldest first': {},
  'any, newest first': { time_desc: true },
  'a user with 1 in 60 of all': { user: 'user 0' },
  'a value that half share, newest first': { ...configs({ env: 'prod' }), time_desc: true },
  'three keys together that 0.2 % share': QUESTIONS['three keys together that 0.2 % share']!,
}

/** Not promised, and shown for that: the index has nothing that tells that two frequent values never meet. */
const WORST = { 'two values, half each, that only meet at the other end': configs({ left: 1, right: 1 }) }

/** Pages of the list of sessions, two million of them, right after a load: nothing was analysed or vacuumed for it. */
export const lists: Part = {
  name: 'lists',
  describe: 'pages of the list of sessions, filtered in many ways and in both orders, among 2.2 million',
  run: async (ctx) => {
    const database = await ctx.createDatabase()
    const count = ctx.quick ? 11_000 : 2_200_000
    ctx.say(`loading ${count} sessions`)
    const loaded = await loadSessions(database, count)
    ctx.detail('loaded', loaded)
    ctx.say('putting them into the order of their last activity')
    await orderByActivity(database)
    const service = await ctx.startService(database)
    const figures: Figure[] = []
    for (const size of ctx.quick ? (['huge'] as const) : (['huge', 'small'] as const)) {
      const project = await openProject(service, loaded[size].id)
      const measure = measurerOf(ctx, project, database)
      figures.push(...(await unfiltered(size, project, loaded[size].sessions, measure)))
      for (const [name, query] of Object.entries(QUESTIONS))
        figures.push(...latencies(`${size}: ${name}`, await measure(`${size}: ${name}`, query)))
      for (const [question, query] of Object.entries(BY_ACTIVITY)) {
        const name = `${size}, by last activity: ${question}`
        figures.push(...latencies(name, await measure(name, { order_by: 'last_activity', ...query })))
      }
      for (const [name, query] of Object.entries(WORST)) {
        const runs = await measure(`${size}: ${name}`, query)
        figures.push({
          name: `${size}: ${name}: p50`,
          unit: 'ms',
          better: 'lower',
          values: runs.map(({ p50_ms }) => p50_ms),
          note: 'no bound: see docs/lists.md',
        })
      }
    }
    return figures
  },
}

type Measure = (name: string, ...queries: Query[]) => Promise<LoadResult[]>

function measurerOf(ctx: BenchContext, service: Service, database: { url: string }): Measure {
  const load = (seconds: number, queries: Query[]) => {
    const requests = queries.map((query) => ({ method: 'GET', path: pathOf({ limit: PAGE, ...query }) }))
    const cpu_of = { database }
    return runLoad({ services: [service], connections: 1, seconds, requests, status: 200, cpu_of })
  }
  return async (name, ...queries) => {
    if (!ctx.quick) await load(0.5, queries)
    const runs = []
    for (let round = 0; round < ctx.rounds; round++)
      runs.push(await load(ctx.quick ? 0.02 : Math.min(ctx.seconds, 2), queries))
    ctx.detail(name, runs)
    ctx.say(
      `${name}: ${runs.map(({ p50_ms, p99_ms }) => `${p50_ms.toFixed(2)} / ${p99_ms.toFixed(2)} ms`).join(', ')}`,
    )
    return runs
  }
}

/** First and distant pages, in both directions, and how much more the latter take. */
async function unfiltered(
  size: 'huge' | 'small',
  service: Service,
  sessions: number,
  measure: Measure,
): Promise<Figure[]> {
  const far = Math.min(10_000, Math.floor(sessions / PAGE / 2))
  const figures: Figure[] = []
  for (const time_desc of [false, true]) {
    const direction = time_desc ? 'newest first' : 'oldest first'
    const cursor = await walkTo(service, far * PAGE, time_desc)
    const first = await measure(`${size}: page 1, ${direction}`, { time_desc })
    const behind = await measure(`${size}: page ${far}, ${direction}`, { time_desc, cursor })
    figures.push(...latencies(`${size}: page 1, ${direction}`, first))
    figures.push(...latencies(`${size}: page ${far.toLocaleString('en-US')}, ${direction}`, behind))
    figures.push({
      name: `${size === 'huge' ? '' : `${size}: `}page ${far.toLocaleString('en-US')} ÷ page 1, ${direction}`,
      unit: 'ratio',
      better: 'lower',
      values: behind.map(({ p50_ms }, round) => p50_ms / first[round]!.p50_ms),
      at_least: 1.3,
      aim: 1,
    })
  }
  return figures
}

function latencies(name: string, runs: LoadResult[]): Figure[] {
  const latency = { unit: 'ms', better: 'lower', charted: false } as const
  return [
    { ...latency, name: `${name}: p50`, values: runs.map(({ p50_ms }) => p50_ms), at_least: 5, aim: 2 },
    { ...latency, name: `${name}: p99`, values: runs.map(({ p99_ms }) => p99_ms), at_least: 25, aim: 10 },
  ]
}

/** The cursor after this many sessions, reached as a client would. */
async function walkTo(service: Service, sessions: number, time_desc: boolean): Promise<string> {
  let cursor: string | undefined
  for (let walked = 0; walked < sessions; walked += WALKED_PAGE) {
    const path = pathOf({
      limit: Math.min(WALKED_PAGE, sessions - walked),
      time_desc,
      ...(cursor && { cursor }),
    })
    cursor = (await callApi<{ next_cursor: string }>(service, { method: 'GET', path })).next_cursor
  }
  if (!cursor) throw new BenchFailure('The walk to a far page ended too early.')
  return cursor
}

function configs(filter: object): Query {
  return { filter_by_configs: JSON.stringify(filter) }
}

function pathOf(query: Query): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) parameters.set(name, String(value))
  return `/api/v1/session?${parameters}`
}
