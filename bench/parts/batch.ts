import { runLoad } from '../load.ts'
import type { Part } from '../part.ts'
import { NEEDS_PGBENCH } from '../pgbench.ts'
import { interleave, ratios } from '../rounds.ts'
import { createSessions, toolCall } from '../sessions.ts'
import { prepareYardstick } from '../yardstick.ts'

const CONNECTIONS = 16
const SESSIONS = 200
const ENTRIES = 100
const YARDSTICK_ROWS = 50

/** Many entries a request, against many rows a statement. */
export const batch: Part = {
  name: 'batch',
  describe: `${ENTRIES} entries a request, against pgbench with ${YARDSTICK_ROWS} rows a statement`,
  run: async (ctx) => {
    const database = await ctx.createDatabase()
    const yardstick = await prepareYardstick(ctx, database)
    const service = await ctx.startService(database)
    const requests = (await createSessions(service, ctx.some(SESSIONS))).map((session, index) => {
      const entries = Array.from({ length: ENTRIES }, (_, position) => ({
        kind: 'event',
        ...toolCall(index * ENTRIES + position),
      }))
      return { method: 'POST', path: `/api/v1/session/${session}/entries`, body: JSON.stringify({ entries }) }
    })
    const load = (seconds: number) =>
      runLoad({
        ...{ services: [service], connections: CONNECTIONS, seconds, requests, status: 201 },
        cpu_of: { database },
      })
    await ctx.warmUp(() => load(Math.min(ctx.seconds, 3)))
    const runs = await interleave<{ per_second: number }>(
      ctx.rounds,
      {
        annals: () => load(ctx.seconds),
        ...(yardstick && { pgbench: () => yardstick(YARDSTICK_ROWS, CONNECTIONS, ctx.seconds) }),
      },
      ctx.say,
    )
    ctx.detail('runs', runs)
    const entries = runs.annals!.map(({ per_second }) => per_second * ENTRIES)
    const rows = runs.pgbench?.map(({ per_second }) => per_second)
    return [
      {
        name: `${ENTRIES} entries a request ÷ pgbench's ${YARDSTICK_ROWS} rows`,
        unit: 'ratio',
        better: 'higher',
        values: rows ? ratios(entries, rows) : [],
        at_least: 0.5,
        aim: 0.8,
        ...(!yardstick && { note: NEEDS_PGBENCH }),
      },
      { name: `${ENTRIES} entries a request: entries`, unit: '/s', better: 'higher', values: entries },
    ]
  },
}
