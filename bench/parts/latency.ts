import { runLoad } from '../load.ts'
import { type Offer, type OfferResult, offer } from '../overload/offer.ts'
import type { BenchContext, Figure, Part } from '../part.ts'
import { interleave } from '../rounds.ts'
import type { Service } from '../service.ts'
import { appendsTo, createSessions, toolCall } from '../sessions.ts'

const SESSIONS = 200
const BATCH = 50
/** Shares of what the service can take of a load, and what is wanted of the p99 of each, in ms. */
const SHARES: Array<{ name: string; share: number; is_bound: boolean }> = [
  { name: 'half', share: 0.5, is_bound: true },
  { name: 'four fifths', share: 0.8, is_bound: false },
]

interface Stream extends Pick<Offer, 'connections' | 'requests'> {
  status: number
  at_least: number
  aim: number
}

/**
 * How long appends take that come when they come. A caller who sends the next one only after an answer asks less while
 * the service is slow, and so leaves out the worst; here the time counts from when a request was due, whether or not a
 * connection was free.
 */
export const latency: Part = {
  name: 'latency',
  describe: 'p99 of appends and batches that are sent at a fixed rate, from when each was due',
  run: async (ctx) => {
    const service = await ctx.startService(await ctx.createDatabase())
    const sessions = await createSessions(service, SESSIONS)
    const streams: Record<string, Stream> = {
      'appends over 64 connections': {
        ...{ connections: 64, requests: [appendsTo(sessions)], status: 200 },
        ...{ at_least: 15, aim: 8 },
      },
      [`batches of ${BATCH} over 16 connections`]: {
        ...{ connections: 16, requests: [sessions.map(batchTo)], status: 201 },
        ...{ at_least: 40, aim: 20 },
      },
    }
    const figures: Figure[] = []
    for (const [name, stream] of Object.entries(streams))
      figures.push(...(await measure(ctx, service, name, stream)))
    return figures
  },
}

const batchTo = (session: string, index: number) => ({
  method: 'POST',
  path: `/api/v1/session/${session}/entries`,
  body: JSON.stringify({
    entries: Array.from({ length: BATCH }, (_, at) => ({ kind: 'event', ...toolCall(index * BATCH + at) })),
  }),
})

async function measure(ctx: BenchContext, service: Service, name: string, stream: Stream): Promise<Figure[]> {
  const { connections, requests, status, at_least, aim } = stream
  const full = { services: [service], connections, requests: requests.flat(), status }
  await ctx.warmUp(() => runLoad({ ...full, seconds: 2 }))
  const { per_second } = await runLoad({ ...full, seconds: ctx.seconds })
  const rest: Omit<Offer, 'per_second' | 'seconds'> = {
    ...{ services: [service], tokens: [service.token], connections, requests },
    queued: true,
  }
  const subjects = SHARES.map(({ name: share_name, share }) => {
    const offered = { ...rest, per_second: Math.round(per_second * share), seconds: ctx.seconds }
    return [share_name, () => offer(offered)] as const
  })
  const runs = await interleave(ctx.rounds, Object.fromEntries(subjects), (sentence) =>
    ctx.say(`${name}: ${sentence}`),
  )
  ctx.detail(name, { per_second, runs })
  return SHARES.map(({ name: share_name, is_bound }) => ({
    name: `${name}, ${share_name} of what it takes: p99`,
    unit: 'ms',
    better: 'lower',
    values: runs[share_name]!.map((run) => p99Of(run, status)),
    charted: false,
    ...(is_bound && { at_least, aim }),
  }))
}

function p99Of({ answers, due }: OfferResult, status: number): number {
  const answered = answers[status]
  if (answered?.requests !== due) throw new Error(`Of ${due} requests, ${answered?.requests} got ${status}.`)
  return answered.p99_ms
}
