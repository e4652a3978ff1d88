import { runLoad } from '../load.ts'
import type { Part } from '../part.ts'
import { interleave, ratios } from '../rounds.ts'
import { createSessions, toolCall } from '../sessions.ts'

const CONNECTIONS = 64
const SESSIONS = 999
const TOGETHER = 3

/** One entry in each of three sessions, against three entries in one. */
export const atomic: Part = {
  name: 'atomic',
  describe: `an entry in each of ${TOGETHER} sessions, all or nothing, against ${TOGETHER} entries in one`,
  run: async (ctx) => {
    const database = await ctx.createDatabase()
    const service = await ctx.startService(database)
    const sessions = await createSessions(service, ctx.some(SESSIONS))
    const event = (n: number) => ({ kind: 'event', ...toolCall(n) })
    const apart = sessions.map((_, index) => ({
      method: 'POST',
      path: '/api/v1/entries',
      body: JSON.stringify({
        appends: Array.from({ length: TOGETHER }, (_, n) => ({
          session_id: sessions[(index * TOGETHER + n) % sessions.length],
          entries: [event(index + n)],
        })),
      }),
    }))
    const inOne = sessions.map((session, index) => ({
      method: 'POST',
      path: `/api/v1/session/${session}/entries`,
      body: JSON.stringify({ entries: Array.from({ length: TOGETHER }, (_, n) => event(index + n)) }),
    }))
    const load = (requests: typeof apart, seconds: number) => () =>
      runLoad({
        ...{ services: [service], connections: CONNECTIONS, seconds, requests, status: 201 },
        cpu_of: { database },
      })
    await ctx.warmUp(async () => {
      for (const requests of [apart, inOne]) await load(requests, Math.min(ctx.seconds, 3))()
    })
    const runs = await interleave(
      ctx.rounds,
      { apart: load(apart, ctx.seconds), inOne: load(inOne, ctx.seconds) },
      ctx.say,
    )
    ctx.detail('runs', runs)
    const rate = (name: 'apart' | 'inOne') => runs[name]!.map(({ per_second }) => per_second)
    return [
      {
        name: `append to ${TOGETHER} sessions ÷ ${TOGETHER} entries in one`,
        unit: 'ratio',
        better: 'higher',
        values: ratios(rate('apart'), rate('inOne')),
        at_least: 0.8,
        aim: 1,
      },
    ]
  },
}
