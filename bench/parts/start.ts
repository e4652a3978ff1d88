import { rm } from 'node:fs/promises'
import type { Figure, Part } from '../part.ts'
import { interleave } from '../rounds.ts'
import { startService } from '../service.ts'

/** From the spawn of `annals serve` until `/ready` answers with 200. */
export const start: Part = {
  name: 'start',
  describe: 'from the spawn of the process until it is ready, embedded and on a server',
  run: async (ctx) => {
    const database = await ctx.createDatabase()
    const existing = { ANNALS_DATA_DIR: `${ctx.directory}/existing` }
    const timeStart = async (env: Record<string, string>) => {
      const service = await startService(env)
      await service.stop()
      return service.ready_after_ms / 1000
    }
    await timeStart(existing)
    let fresh = 0
    const times = await interleave(
      ctx.rounds,
      {
        fresh: async () => {
          const env = { ANNALS_DATA_DIR: `${ctx.directory}/fresh${++fresh}` }
          const time = await timeStart(env)
          await rm(env.ANNALS_DATA_DIR, { recursive: true, force: true })
          return time
        },
        existing: () => timeStart(existing),
        server: () => timeStart({ DATABASE_URL: database.url }),
      },
      ctx.say,
    )
    const figure = (name: string, values: number[] = [], at_least: number, aim: number): Figure => {
      return { name, unit: 's', better: 'lower', values, at_least, aim }
    }
    return [
      figure('ready, embedded, new data directory', times.fresh, 5, 2),
      figure('ready, embedded, existing data', times.existing, 1.5, 0.6),
      figure('ready, on a PostgreSQL server', times.server, 1, 0.5),
    ]
  },
}
