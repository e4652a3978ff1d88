import { BenchFailure } from '../failure.ts'
import { type LoadRequest, runLoad } from '../load.ts'
import type { BenchContext, Figure, Part } from '../part.ts'
import type { BenchDatabase } from '../postgres.ts'
import { interleave, ratios } from '../rounds.ts'
import type { Service } from '../service.ts'
import { appendsTo, callApi, createSessions, openProject } from '../sessions.ts'

const CALLERS = 8
const SESSIONS = 1_000
const APPENDERS = 64
/** What a caller may wait for at most, in ms. */
const P99_MS = 20
const PROJECT = '00000000-0000-4000-8000-000000000001'
const SESSION = "md5('session ' || n)::uuid"

/** $1 timers, $2 sessions that are due, $3 open requests; each of a session of its own, the requests of some that wait. */
const STEPS = [
  `INSERT INTO projects (id, name, created_at) VALUES ('${PROJECT}', 'runs', now())`,
  `INSERT INTO sessions (project_id, id, configs, disable_task_tracking, created_at)
SELECT '${PROJECT}', ${SESSION}, '{}', false, now() FROM generate_series(1, $1::int + $2::int) n`,
  `INSERT INTO session_heads (project_id, session_id, last_seq, total_tokens, updated_at, run_place)
SELECT '${PROJECT}', ${SESSION}, 0, 0, now(), 2 FROM generate_series(1, $1::int + $2::int) n`,
  `INSERT INTO session_runs (project_id, session_id, ttl_ms, progress, place, wake_at)
SELECT '${PROJECT}', ${SESSION}, 0, false, 0, now() + (CASE WHEN n <= $1::int THEN n % 86400 + 86400 ELSE -1 - n % 600 END) * interval '1 s'
FROM generate_series(1, $1::int + $2::int) n`,
  `INSERT INTO session_inbox (project_id, session_id, id, place, mode, entry_kind, type, bytes, tokens, data, created_at, not_before)
SELECT r.project_id, r.session_id, r.session_id, 1, 'queue', 'event', 'timer', 40, 0, '{"text":"look at it again"}', now(), r.wake_at
FROM session_runs r WHERE r.project_id = '${PROJECT}'`,
  `INSERT INTO session_requests (project_id, id, session_id, place, seq, bytes, body, created_at)
SELECT '${PROJECT}', ${SESSION}, ${SESSION}, 2, 1, 60, '{"kind":"question","text":"go on?"}', now() - n * interval '1 ms'
FROM generate_series(1, $3::int) n
WHERE $1::int > 0 AND $2::int > 0`,
]

/** A million waiting timers and 100,000 open requests in one project, as autovacuum leaves them. */
export const runs: Part = {
  name: 'runs',
  describe:
    'claims, lists and answers beside a million waiting timers and 100,000 open requests, by 8 callers',
  run: async (ctx) => {
    const figures = [await fenced(ctx, await ctx.startService(await ctx.createDatabase()))]
    const database = await ctx.createDatabase()
    const timers = ctx.quick ? 2_000 : 1_000_000
    // More than can be claimed meanwhile.
    const [due, open] = [ctx.quick ? timers : timers / 10, timers / 10]
    ctx.say(`loading ${timers} timers, ${due} sessions with due input, and ${open} open requests`)
    await load(database, timers, due, open)
    // Otherwise autovacuum and the checkpointer take one of two processors, and a snapshot of their own, while callers are measured.
    await database.query('VACUUM (ANALYZE)')
    await database.query('CHECKPOINT')
    const service = await openProject(await ctx.startService(database), PROJECT)
    const requests = await database.query<{ id: string }>(
      `SELECT q.id FROM session_requests q WHERE q.project_id = '${PROJECT}' ORDER BY q.id`,
    )
    const ids = requests.map(({ id }) => id)
    const answered = JSON.stringify({ decision: 'answer', answer: 'yes', by: 'ada' })
    const claim = JSON.stringify({ owner: 'bench', ttl_ms: 600_000 })
    const get = (path: string): LoadRequest => ({ method: 'GET', path: `/api/v1${path}` })
    const operations: Record<string, LoadRequest[]> = {
      claim: [{ method: 'POST', path: '/api/v1/work/claim', body: claim }],
      'list open requests': [get('/requests?limit=20')],
      'list waiting runs': [get('/runs?state=waiting&limit=20')],
      'list queued runs': [get('/runs?state=queued&limit=20')],
      'list running runs': [get('/runs?state=running&limit=20')],
      resolve: ids.map((id) => ({ method: 'POST', path: `/api/v1/requests/${id}/resolve`, body: answered })),
    }
    const each = Math.floor(open / (ctx.rounds + 1))
    // All of them first: Node compiles what they share while they are called, and the first one measured would pay for it.
    for (const requests of Object.values(operations))
      await ctx.warmUp(() => measure(ctx, service, requests, each))
    for (const [name, requests] of Object.entries(operations)) {
      const call = () => measure(ctx, service, requests, each)
      const values: number[] = []
      for (let round = 0; round < ctx.rounds; round += 1) values.push(await call())
      ctx.say(`${name}: p99 ${values.map((ms) => ms.toFixed(1)).join(', ')} ms`)
      figures.push({ name: `${name}: p99`, unit: 'ms', better: 'lower', values, at_least: P99_MS })
    }
    const { items } = await callApi<{ items: unknown[] }>(service, operations.claim![0]!)
    if (items.length === 0) throw new BenchFailure('there was too little work to claim')
    figures.push(await interrupts(ctx, service, await openProject(await ctx.startService(database), PROJECT)))
    return figures
  },
}

async function load(database: BenchDatabase, ...counts: [timers: number, due: number, open: number]) {
  for (const step of STEPS) await database.query(step, counts.slice(0, /\$\d/.test(step) ? lastOf(step) : 0))
}

/** How many parameters a statement has. */
const lastOf = (step: string) => Math.max(...[...step.matchAll(/\$(\d)/g)].map(([, n]) => Number(n)))

/** Appends under the fences of leases, each session with one, against appends to the same number of other sessions. */
async function fenced(ctx: BenchContext, service: Service): Promise<Figure> {
  const plain = appendsTo(await createSessions(service, ctx.some(SESSIONS)))
  const held = await createSessions(service, ctx.some(SESSIONS))
  const fences = new Map<string, string>()
  for (const session of held) {
    const body = JSON.stringify({ owner: 'bench', ttl_ms: 600_000 })
    const path = `/api/v1/session/${session}/lease`
    const { fence } = await callApi<{ fence: number }>(service, { method: 'POST', path, body })
    fences.set(session, String(fence))
  }
  const underFence = appendsTo(held).map((request, index) => ({
    ...request,
    headers: { 'annals-fence': fences.get(held[index % held.length]!)! },
  }))
  const load = (requests: LoadRequest[], seconds: number) => () =>
    runLoad({ services: [service], connections: APPENDERS, seconds, requests, status: 200 })
  await ctx.warmUp(load(underFence, Math.min(ctx.seconds, 2)))
  const loads = { 'with a fence': load(underFence, ctx.seconds), without: load(plain, ctx.seconds) }
  const of = await interleave(ctx.rounds, loads, ctx.say)
  const [ours = [], theirs = []] = Object.values(of).map((runs) => runs.map(({ per_second }) => per_second))
  const name = 'append with a fence ÷ without'
  return { name, unit: 'ratio', better: 'higher', values: ratios(ours, theirs), at_least: 0.95 }
}

/** From a stop that is sent to one node until the tail of the session's inbox at another node hears of it. */
async function interrupts(ctx: BenchContext, here: Service, there: Service): Promise<Figure> {
  const body = JSON.stringify({})
  const { id } = await callApi<{ id: string }>(here, { method: 'POST', path: '/api/v1/session', body })
  const inbox = `/api/v1/session/${id}/inbox`
  const headers = { authorization: `Bearer ${there.token}`, accept: 'text/event-stream' }
  const tail = await fetch(`${there.url}${inbox}`, { headers })
  const frames = tail.body!.pipeThrough(new TextDecoderStream()).getReader()
  const waits: number[] = []
  for (let n = 0; n < (ctx.quick ? 20 : 500); n += 1) {
    const began = performance.now()
    const stop = { mode: 'interrupt', kind: 'event', type: 'stop', data: { marker: `stop ${n}.` } }
    const sent = callApi(here, { method: 'POST', path: inbox, body: JSON.stringify(stop) })
    for (let heard = ''; !heard.includes(`"stop ${n}."`); ) {
      const { value, done } = await frames.read()
      if (done) throw new BenchFailure('the tail ended')
      heard += value
    }
    waits.push(performance.now() - began)
    await sent
  }
  await frames.cancel()
  const values = [p99Of(waits)]
  ctx.say(`interrupt: p99 ${values[0]!.toFixed(1)} ms`)
  return { name: 'interrupt at another node: p99', unit: 'ms', better: 'lower', values, at_least: 50 }
}

function p99Of(waits: number[]): number {
  waits.sort((a, b) => a - b)
  return waits[Math.min(waits.length - 1, Math.floor(waits.length * 0.99))]!
}

/** The 99th percentile of what callers waited for, each with one request after another. Of several requests, `each` measurement sends so many, once. */
async function measure(
  ctx: BenchContext,
  service: Service,
  requests: LoadRequest[],
  each: number,
): Promise<number> {
  const seconds = ctx.quick ? 0.05 : Math.min(ctx.seconds, 3)
  const in_order = requests.length > 1
  const sent = in_order ? requests.splice(0, each) : requests
  const load = { services: [service], connections: CALLERS, seconds, requests: sent, in_order, status: 200 }
  return (await runLoad(load)).p99_ms
}
