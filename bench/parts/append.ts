import { type LoadResult, runLoad, totalCpu } from '../load.ts'
import type { Figure, Part } from '../part.ts'
import { NEEDS_PGBENCH } from '../pgbench.ts'
import { interleave, ratios, type Subjects } from '../rounds.ts'
import type { Service } from '../service.ts'
import { appendsTo, createSessions } from '../sessions.ts'
import { prepareYardstick, type YardstickResult } from '../yardstick.ts'

const CONNECTIONS = 64
const SESSIONS = 1_000
const MANY = '1,000 sessions'

/** One event a request, in six ways that stand beside each other. */
export const append: Part = {
  name: 'append',
  describe: 'one event a request, against pgbench, on one session, by two processes, without group commit',
  run: async (ctx) => {
    const database = await ctx.createDatabase()
    const yardstick = await prepareYardstick(ctx, database)
    const one = await ctx.startService(database)
    const other = await ctx.startService(database)
    // As docs/scale.md recommends where processes share processors that are all busy.
    const gather = { ANNALS_GATHER_MS_MAX: '8' }
    const two = [await ctx.startService(database, gather), await ctx.startService(database, gather)]
    // Patient, since one by one 64 can take longer than it would have them wait.
    const alone = { ANNALS_GROUP_COMMIT: 'off', ANNALS_QUEUE_WAIT_MS_MAX: '60000' }
    const ungrouped = await ctx.startService(database, alone)
    const sessions = await createSessions(one, ctx.some(SESSIONS))
    const many = appendsTo(sessions)
    const single = appendsTo(sessions.slice(0, 1))
    const { seconds } = ctx
    const load = (services: Service[], requests: typeof many) => () =>
      runLoad({ services, connections: CONNECTIONS, seconds, requests, status: 200, cpu_of: { database } })

    const subjects: Subjects<Run> = {
      ...(yardstick && { pgbench: () => yardstick(1, CONNECTIONS, ctx.seconds) }),
      [MANY]: load([one], many),
      'one session': load([one], single),
      'two processes': load(two, many),
      'two processes, not gathering': load([one, other], many),
      'without group commit': load([ungrouped], many),
    }
    // What the first rounds measure has been compiled for some seconds by then.
    await ctx.warmUp(async () => {
      for (const services of [[one], [one, other], two, two, [ungrouped]]) await load(services, many)()
    })
    const runs = await interleave(ctx.rounds, subjects, ctx.say)
    ctx.detail('runs', runs)
    return figures(runs)
  },
}

/** Of a load, or of pgbench, which tells no percentiles. */
type Run = LoadResult | YardstickResult

function figures(runs: Record<string, Run[]>): Figure[] {
  const rate = (name: string) => (runs[name] ?? []).map(({ per_second }) => per_second)
  const cpu = (name: string) => (runs[name] ?? []).flatMap(({ cpu }) => (cpu ? totalCpu(cpu) : []))
  const many = rate(MANY)
  const higher = { better: 'higher', unit: 'ratio' } as const
  const pgbench = rate('pgbench')
  return [
    {
      ...higher,
      name: `${MANY} ÷ pgbench's INSERTs`,
      values: pgbench.length > 0 ? ratios(many, pgbench) : [],
      at_least: 0.7,
      aim: 1,
      ...(pgbench.length === 0 && { note: NEEDS_PGBENCH }),
    },
    {
      name: `${MANY}: p99`,
      unit: 'ms',
      better: 'lower',
      values: runs[MANY]!.flatMap((run) => ('p99_ms' in run ? run.p99_ms : [])),
      at_least: 25,
      aim: 15,
    },
    {
      name: `${MANY}: CPU time ÷ that of pgbench's INSERTs`,
      unit: 'ratio',
      better: 'lower',
      values: pgbench.length > 0 ? ratios(cpu(MANY), cpu('pgbench')) : [],
    },
    { name: `${MANY}: requests`, unit: '/s', better: 'higher', values: many },
    {
      ...higher,
      name: `all on one session ÷ ${MANY}`,
      values: ratios(rate('one session'), many),
      at_least: 0.9,
      aim: 1,
    },
    {
      ...higher,
      name: 'two processes ÷ one',
      values: ratios(rate('two processes'), many),
      at_least: 0.9,
      aim: 1.3,
    },
    {
      ...higher,
      name: '… that do not gather',
      values: ratios(rate('two processes, not gathering'), many),
    },
    {
      ...higher,
      name: 'with group commit ÷ without',
      values: ratios(many, rate('without group commit')),
      at_least: 2,
      aim: 2.5,
    },
  ]
}
