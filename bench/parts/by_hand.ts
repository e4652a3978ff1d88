import { startByHand } from '../by_hand/start.ts'
import { type LoadRequest, runLoad } from '../load.ts'
import { loadSessions } from '../load_sessions.ts'
import { NEEDS_PROC, watchMemory } from '../memory.ts'
import type { BenchContext, Figure, Part } from '../part.ts'
import type { BenchDatabase } from '../postgres.ts'
import { interleave, ratios, type Subjects } from '../rounds.ts'
import type { Service } from '../service.ts'
import { appendsTo, callApi, openProject, toolCall } from '../sessions.ts'
import { runWrk } from '../wrk.ts'

const SESSIONS = 200
const BATCH = 50
const LONG = 1_000
const WALKED_PAGE = 200
/** The rows are many, and each is a ratio of neighbours: short runs do. */
const SECONDS_MAX = 2.5

/** What must hold, and what is aimed at, for each row: requests a second ÷ those of the server by hand. */
const ROWS: Record<string, { at_least: number; aim: number }> = {
  'append, 200 sessions': { at_least: 4.5, aim: 6 },
  'append, one session': { at_least: 14, aim: 20 },
  [`batch of ${BATCH}`]: { at_least: 2, aim: 3 },
  'list, first page': { at_least: 1.1, aim: 1.5 },
  'list, deep page': { at_least: 1.1, aim: 1.5 },
  'list of a user': { at_least: 1.1, aim: 1.5 },
  'list by a frequent value': { at_least: 2, aim: 4 },
  'list by a rare value': { at_least: 2, aim: 4 },
  'list by an old value, newest first': { at_least: 2, aim: 4 },
  'list by three values': { at_least: 2, aim: 4 },
  'last 50 entries': { at_least: 1.5, aim: 2 },
  'all 1,000 entries': { at_least: 2.5, aim: 4 },
}

interface Load {
  connections: number
  status: number
  requests: LoadRequest[]
}

/** The service beside a server that somebody wrote by hand in an afternoon, on the same PostgreSQL. */
export const byHand: Part = {
  name: 'by-hand',
  describe: 'appends, batches, lists and reads, against a server of 100 lines (fastify, pg, no keys, no log)',
  run: async (ctx) => {
    const database = await ctx.createDatabase()
    const sessions = ctx.quick ? 2_200 : 366_000
    ctx.say(`loading ${sessions} sessions`)
    const { huge } = await loadSessions(database, sessions)
    const annals = await openProject(await ctx.startService(database), huge.id)
    const hand = await startByHand(ctx, database, huge.id)
    const loads = {
      annals: await loadsOf(annals, database, huge),
      hand: await loadsOf(hand, database, huge),
    }
    const seconds = Math.min(ctx.seconds, SECONDS_MAX)
    const run = (service: Service, load: Load, length = seconds) => {
      const whole = { services: [service], seconds: length, ...load }
      return ctx.wrk ? runWrk(ctx.directory, whole) : runLoad({ ...whole, cpu_of: { database } })
    }
    const subjects: Subjects<{ per_second: number }> = {}
    for (const name of Object.keys(ROWS)) {
      subjects[name] = () => run(annals, loads.annals[name]!)
      subjects[`${name}, by hand`] = () => run(hand, loads.hand[name]!)
    }
    await ctx.warmUp(async () => {
      for (const name of Object.keys(ROWS)) {
        await run(annals, loads.annals[name]!, Math.min(seconds, 1))
        await run(hand, loads.hand[name]!, Math.min(seconds, 1))
      }
    })
    const runs = await interleave(ctx.rounds, subjects, ctx.say)
    ctx.detail('runs', runs)
    const rates = (name: string) => runs[name]!.map(({ per_second }) => per_second)
    const figures = Object.entries(ROWS).map(([name, bounds]): Figure => {
      const values = ratios(rates(name), rates(`${name}, by hand`))
      return { name: `${name} ÷ by hand`, unit: 'ratio', better: 'higher', values, ...bounds }
    })
    return [...figures, await mixedMemory(ctx, annals, loads.annals)]
  },
}

/** Sessions of its own for each server, in its own tables, and what is asked of them. */
async function loadsOf(
  service: Service,
  database: BenchDatabase,
  project: { id: string; sessions: number },
): Promise<Record<string, Load>> {
  // The newest of the project's sessions, which lists from the beginning do not show.
  const rows = await database.query<{ id: string }>(
    'SELECT id FROM sessions WHERE project_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2',
    [project.id, SESSIONS + 1],
  )
  const [long = '', ...ids] = rows.map(({ id }) => id)
  const batchOf = (session: string, count: number, from: number) => ({
    method: 'POST',
    path: `/api/v1/session/${session}/entries`,
    body: JSON.stringify({
      entries: Array.from({ length: count }, (_, at) => ({ kind: 'event', ...toolCall(from + at) })),
    }),
  })
  await callApi(service, batchOf(long, LONG, 0))
  const cursor = await walk(service, Math.floor(project.sessions / 2))
  const read = (path: string) => ({ connections: 8, status: 200, requests: [{ method: 'GET', path }] })
  const filtered = (filter: object, more = '') =>
    read(`/api/v1/session?filter_by_configs=${encodeURIComponent(JSON.stringify(filter))}${more}`)
  const batches = ids.map((id, index) => batchOf(id, BATCH, index))
  return {
    'append, 200 sessions': { connections: 64, status: 200, requests: appendsTo(ids) },
    'append, one session': { connections: 64, status: 200, requests: appendsTo(ids.slice(0, 1)) },
    [`batch of ${BATCH}`]: { connections: 16, status: 201, requests: batches },
    'list, first page': read('/api/v1/session'),
    'list, deep page': read(`/api/v1/session?cursor=${cursor}`),
    'list of a user': read('/api/v1/session?user=user%200'),
    'list by a frequent value': filtered({ env: 'prod' }),
    'list by a rare value': filtered({ incident: 'i-1' }),
    'list by an old value, newest first': filtered({ release: 'old' }, '&time_desc=true'),
    'list by three values': filtered({ env: 'prod', agent: 'agent-7', model: { name: 'model-3' } }),
    'last 50 entries': read(`/api/v1/session/${long}/timeline?limit=50&time_desc=true`),
    'all 1,000 entries': read(`/api/v1/session/${long}/timeline?limit=${LONG}`),
  }
}

/** The cursor after this many sessions. */
async function walk(service: Service, sessions: number): Promise<string> {
  let cursor = ''
  for (let walked = 0; walked < sessions; walked += WALKED_PAGE) {
    const path = `/api/v1/session?limit=${WALKED_PAGE}${cursor && `&cursor=${cursor}`}`
    cursor = (await callApi<{ next_cursor: string }>(service, { method: 'GET', path })).next_cursor
  }
  return cursor
}

/** Appends, pages of lists, last entries and whole sessions, all at once. */
async function mixedMemory(
  ctx: BenchContext,
  service: Service,
  loads: Record<string, Load>,
): Promise<Figure> {
  ctx.say('four kinds of requests at once')
  const kinds = ['append, 200 sessions', 'list, first page', 'last 50 entries', 'all 1,000 entries']
  const requests = Array.from({ length: SESSIONS }, (_, index) => {
    const { requests } = loads[kinds[index % kinds.length]!]!
    return requests[index % requests.length]!
  })
  const load = { services: [service], connections: 64, seconds: ctx.seconds, requests, status: 200 }
  const seen = await watchMemory(service.pid, () => runLoad(load))
  ctx.detail('memory', seen)
  const name = 'highest RSS, four kinds of requests at once'
  const figure: Figure = { name, unit: 'MB', better: 'lower', values: [], at_least: 180, aim: 140 }
  return seen ? { ...figure, values: [seen.peak_mb] } : { ...figure, note: NEEDS_PROC }
}
