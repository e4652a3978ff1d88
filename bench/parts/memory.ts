import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { ANNALS } from '../../lab/launch_service.ts'
import { BenchFailure } from '../failure.ts'
import { runLoad } from '../load.ts'
import { type MemorySeen, NEEDS_PROC, residentMegabytes, watchMemory } from '../memory.ts'
import type { BenchContext, Figure, Part } from '../part.ts'
import type { BenchDatabase } from '../postgres.ts'
import { type Service, startService } from '../service.ts'
import { appendsTo, callApi, createSessions } from '../sessions.ts'

const MINUTES = 10
const EXPORT_BYTES = 1e9

/** The resident size of the service: doing nothing, after long work, and of an export. */
export const memory: Part = {
  name: 'memory',
  describe: 'RSS of the service: idle, after 10 minutes of appends at full speed, exporting 1 GB',
  run: async (ctx) => {
    const idle_mb = await measureIdle(ctx)
    const database = await ctx.createDatabase()
    const service = await ctx.startService(database)
    const requests = appendsTo(await createSessions(service, ctx.some(1_000)))
    const rates: number[] = []
    const appends = async () => {
      const [minutes, seconds] = ctx.quick ? [2, 0.1] : [MINUTES, 60]
      for (let minute = 1; minute <= minutes; minute++) {
        ctx.say(`appends at full speed: minute ${minute} of ${minutes}`)
        const load = { services: [service], connections: 64, seconds, requests, status: 200 }
        rates.push((await runLoad(load)).per_second)
      }
    }
    const working = await watchMemory(service.pid, appends)
    ctx.detail('appends a second, minute by minute', rates)
    if (!ctx.quick) await topUp(ctx, service, database)
    const exported = await measureExport(ctx, database)
    const minutes = ctx.quick ? 'a few seconds' : `${MINUTES} minutes`
    return [
      figureOf('RSS, idle', idle_mb, 130),
      figureOf(`highest RSS, ${minutes} of appends`, working?.peak_mb, 250),
      figureOf(`highest RSS, exporting ${(exported.bytes / 1e9).toFixed(2)} GB`, exported.seen?.peak_mb, 250),
      {
        name: 'appends a second, last minute ÷ second minute',
        unit: 'ratio',
        better: 'higher',
        values: [rates.at(-1)! / rates[1]!],
      },
    ]
  },
}

function figureOf(name: string, megabytes: number | undefined, at_least: number): Figure {
  const figure = { name, unit: 'MB', better: 'lower', at_least } as const
  return megabytes ? { ...figure, values: [megabytes] } : { ...figure, values: [], note: NEEDS_PROC }
}

/** As somebody has it who just started it: with the embedded PostgreSQL, whose own memory is not counted. */
async function measureIdle(ctx: BenchContext): Promise<number> {
  ctx.say('idle')
  const service = await startService({ ANNALS_DATA_DIR: `${ctx.directory}/idle` })
  try {
    await callApi(service, { method: 'GET', path: '/api/v1/session' })
    await sleep(ctx.quick ? 1_000 : 10_000)
    return await residentMegabytes(service.pid)
  } finally {
    await service.stop()
  }
}

/** Large entries until the export of all has its size. */
async function topUp(ctx: BenchContext, service: Service, database: BenchDatabase): Promise<void> {
  const [row] = await database.query<{ bytes: string }>(
    'SELECT coalesce(sum(bytes + 300), 0) AS bytes FROM entries',
  )
  const missing = Math.ceil((EXPORT_BYTES - Number(row!.bytes)) / 1e6)
  if (missing <= 0) return
  ctx.say(`loading ${missing} MB more to export`)
  const [session] = await createSessions(service, 1)
  const body = JSON.stringify({ type: 'large', data: { text: 'x'.repeat(1_000_000) } })
  for (let megabytes = 0; megabytes < missing; megabytes++) {
    await callApi(service, { method: 'POST', path: `/api/v1/session/${session}/events`, body })
  }
}

/** The process of `annals export`, which does the exporting. */
async function measureExport(
  ctx: BenchContext,
  database: BenchDatabase,
): Promise<{ seen: MemorySeen | undefined; bytes: number }> {
  ctx.say('exporting')
  const child = spawn(process.execPath, [ANNALS, 'export', '--project', 'default'], {
    env: { ...process.env, DATABASE_URL: database.url },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const exited = once(child, 'exit')
  let bytes = 0
  const seen = await watchMemory(child.pid!, async () => {
    for await (const chunk of child.stdout) bytes += (chunk as Buffer).length
  })
  const [code] = await exited
  if (code !== 0) throw new BenchFailure(`annals export ended with ${code}.`)
  return { seen, bytes }
}
