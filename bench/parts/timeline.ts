import { type LoadRequest, runLoad } from '../load.ts'
import { loadLongSession } from '../long_session.ts'
import type { BenchContext, Figure, Part } from '../part.ts'
import type { BenchDatabase } from '../postgres.ts'
import { interleave, ratios } from '../rounds.ts'
import type { Service } from '../service.ts'
import { createSessions } from '../sessions.ts'

const PLACES = 1_000

/** A page from anywhere in a long session, and the last one, read again by who has it. */
export const timeline: Part = {
  name: 'timeline',
  describe: '100 entries from anywhere in a session of 100,000, and the last 50 again and again',
  run: async (ctx) => {
    const count = ctx.quick ? 2_000 : 100_000
    const database = await ctx.createDatabase()
    const service = await ctx.startService(database)
    const [session = ''] = await createSessions(service, 1)
    ctx.say(`loading ${count} entries`)
    await loadLongSession(service, session, count)
    const requests = Array.from({ length: PLACES }, () => {
      const after_seq = Math.floor(Math.random() * (count - 100))
      return { method: 'GET', path: `/api/v1/session/${session}/timeline?limit=100&after_seq=${after_seq}` }
    })
    const read = (seconds: number) =>
      runLoad({ services: [service], connections: 1, seconds, requests, status: 200, cpu_of: { database } })
    await ctx.warmUp(() => read(Math.min(ctx.seconds, 3)))
    const runs = []
    for (let round = 1; round <= ctx.rounds; round++) {
      ctx.say(`round ${round} of ${ctx.rounds}`)
      runs.push(await read(ctx.seconds))
    }
    ctx.detail('runs', runs)
    const name = `100 of ${count.toLocaleString('en-US')} entries`
    const latency = { unit: 'ms', better: 'lower' } as const
    return [
      { ...latency, name: `${name}: p50`, values: runs.map(({ p50_ms }) => p50_ms), at_least: 5, aim: 3 },
      { ...latency, name: `${name}: p99`, values: runs.map(({ p99_ms }) => p99_ms), at_least: 20, aim: 10 },
      await knownPage(ctx, service, session, database),
    ]
  },
}

async function knownPage(
  ctx: BenchContext,
  service: Service,
  session: string,
  database: BenchDatabase,
): Promise<Figure> {
  const request = { method: 'GET', path: `/api/v1/session/${session}/timeline?limit=50&time_desc=true` }
  const authorization = `Bearer ${service.token}`
  const { headers } = await fetch(service.url + request.path, { headers: { authorization } })
  const known = { ...request, headers: { 'If-None-Match': headers.get('etag') ?? '' } }
  const load = (requests: LoadRequest[], status: number) => () =>
    runLoad({
      ...{ services: [service], connections: 8, seconds: ctx.seconds, requests, status },
      cpu_of: { database },
    })
  const subjects = { known: load([known], 304), read: load([request], 200) }
  const runs = await interleave(ctx.rounds, subjects, ctx.say)
  ctx.detail('known page', runs)
  const [of, to] = [runs.known!, runs.read!].map((all) => all.map(({ per_second }) => per_second))
  return { name: 'last 50 entries: 304 ÷ 200', unit: 'ratio', better: 'higher', values: ratios(of!, to!) }
}
