import { type LoadRequest, runLoad } from '../load.ts'
import { loadLongSession } from '../long_session.ts'
import type { BenchContext, Figure, Part } from '../part.ts'
import type { BenchDatabase } from '../postgres.ts'
import { recordedRuns } from '../recorded_runs.ts'
import { interleave, ratios } from '../rounds.ts'
import type { Service } from '../service.ts'
import { appendsTo, callApi, createSessions, toolCall } from '../sessions.ts'

const CONNECTIONS = 64
const SESSIONS = 1_000
const KEYS = 200
const BATCH = 1_000
/** More than are popped in a second, so that each pop finds an entry. */
const POPS_PER_SECOND = 6_000
const MAX_TOKENS = 8_000
/** Entries that a summary leaves: half of them are messages of 10 tokens, so that a context is about as long as without. */
const COMPACTED_BEFORE = 960
/** Of a session with compactions: how long it gets before one is made, and how many of its newest messages that leaves. */
const COMPACTED_TOKENS = 90_000
const COMPACTED_MESSAGES_LEFT = 20

/** What frameworks ask of a log, each beside what is like it without. */
export const frameworks: Part = {
  name: 'frameworks',
  describe: 'keys, pops and contexts, against appends and pages; prompts of recorded runs (AIRLINE_RUNS)',
  run: async (ctx) => {
    const database = await ctx.createDatabase()
    const service = await ctx.startService(database)
    return [
      await keyed(ctx, service),
      await latest(ctx, service, database),
      await pops(ctx, service),
      ...(await contexts(ctx, service)),
      await prefixes(ctx, service),
      await compactedPrefixes(ctx, service),
    ]
  },
}

/** How many requests a second are answered, round by round, of two loads in turns. */
async function rates(
  ctx: BenchContext,
  service: Service,
  connections: number,
  loads: Record<string, LoadRequest[]>,
): Promise<number[][]> {
  const load = (requests: LoadRequest[], seconds: number) => () =>
    runLoad({ services: [service], connections, seconds, requests, status: 200 })
  await ctx.warmUp(async () => {
    for (const requests of Object.values(loads)) await load(requests, Math.min(ctx.seconds, 2))()
  })
  const subjects = Object.entries(loads).map(
    ([name, requests]) => [name, load(requests, ctx.seconds)] as const,
  )
  const runs = await interleave(ctx.rounds, Object.fromEntries(subjects), ctx.say)
  ctx.detail(Object.keys(loads).join(', '), runs)
  return Object.values(runs).map((rounds) => rounds.map(({ per_second }) => per_second))
}

async function keyed(ctx: BenchContext, service: Service): Promise<Figure> {
  const plain = appendsTo(await createSessions(service, ctx.some(SESSIONS)))
  const withKey = plain.map((request, index) => ({
    ...request,
    body: JSON.stringify({ ...toolCall(index), key: `state/${index % KEYS}` }),
  }))
  const [ours = [], theirs = []] = await rates(ctx, service, CONNECTIONS, { 'with a key': withKey, plain })
  const name = 'append with a key ÷ without'
  return { name, unit: 'ratio', better: 'higher', values: ratios(ours, theirs), at_least: 0.9, aim: 1 }
}

async function latest(ctx: BenchContext, service: Service, database: BenchDatabase): Promise<Figure> {
  const entries = ctx.quick ? 2_000 : 1_000_000
  ctx.say(`loading ${entries} entries with ${KEYS} keys`)
  const [session = ''] = await createSessions(service, 1)
  for (let from = 0; from < entries; from += BATCH) await append(service, session, from, BATCH)
  // What loading leaves behind: autovacuum and the checkpoint would otherwise come to a million rows while this measures.
  await database.query('VACUUM (ANALYZE) entries')
  await database.query('CHECKPOINT')
  const requests = [{ method: 'GET', path: `/api/v1/session/${session}/latest?limit=${KEYS}` }]
  const p99s: number[] = []
  for (let round = 0; round <= ctx.rounds; round++) {
    const load = {
      services: [service],
      connections: 1,
      seconds: Math.min(ctx.seconds, 5),
      requests,
      status: 200,
    }
    p99s.push((await runLoad(load)).p99_ms)
  }
  const name = `latest of ${KEYS} keys in ${entries} entries: p99`
  // The first round warms it.
  return { name, unit: 'ms', better: 'lower', values: p99s.slice(1), at_least: 10, aim: 5 }
}

function append(service: Service, session: string, from: number, count: number): Promise<unknown> {
  const entries = Array.from({ length: count }, (_, at) => ({
    kind: 'event',
    ...toolCall(from + at),
    key: `state/${(from + at) % KEYS}`,
  }))
  const path = `/api/v1/session/${session}/entries`
  return callApi(service, { method: 'POST', path, body: JSON.stringify({ entries }) })
}

async function pops(ctx: BenchContext, service: Service): Promise<Figure> {
  const stock = Math.ceil(ctx.seconds * (ctx.rounds + 1) * POPS_PER_SECOND)
  ctx.say(`loading ${stock} entries to pop`)
  const sessions = await createSessions(service, 1)
  const [session = ''] = sessions
  for (let from = 0; from < stock; from += BATCH) await append(service, session, from, BATCH)
  const path = `/api/v1/session/${session}/retractions`
  const pop = [{ method: 'POST', path, body: '{"last":1}' }]
  const loads = { pops: pop, 'appends there': appendsTo(sessions) }
  const [ours = [], theirs = []] = await rates(ctx, service, CONNECTIONS, loads)
  const name = `pop by ${CONNECTIONS} callers on one session ÷ appends there`
  return { name, unit: 'ratio', better: 'higher', values: ratios(ours, theirs), at_least: 0.5, aim: 0.8 }
}

/** Before and after a summary stands for all but the newest entries. */
async function contexts(ctx: BenchContext, service: Service): Promise<Figure[]> {
  const entries = ctx.quick ? 2_000 : 100_000
  const [session = ''] = await createSessions(service, 1)
  ctx.say(`loading ${entries} entries`)
  await loadLongSession(service, session, entries)
  const path = `/api/v1/session/${session}`
  const loads = {
    context: [{ method: 'GET', path: `${path}/context?max_tokens=${MAX_TOKENS}` }],
    'page of 100': [{ method: 'GET', path: `${path}/messages?limit=100&time_desc=true` }],
  }
  const figures: Figure[] = []
  for (const after of ['', ' after a compaction']) {
    if (after) await compact(service, session, entries - COMPACTED_BEFORE, 'What was said before.')
    const [ours = [], theirs = []] = await rates(ctx, service, 1, loads)
    const name = `context of ${MAX_TOKENS} tokens from ${entries} entries${after} ÷ one page of 100`
    // As times, so that more is slower.
    const values = ratios(theirs, ours)
    figures.push({ name, unit: 'ratio', better: 'lower', values, at_least: 1.6, aim: 1.3 })
  }
  return figures
}

function compact(service: Service, session: string, to_seq: number, content: string): Promise<unknown> {
  const body = JSON.stringify({ to_seq, summary: { blob: { role: 'user', content } } })
  return callApi(service, { method: 'POST', path: `/api/v1/session/${session}/compactions`, body })
}

/** Of what was sent to the model, how much the next call of the run begins with, in characters. */
async function prefixes(ctx: BenchContext, service: Service): Promise<Figure> {
  const runs = recordedRuns().slice(0, ctx.quick ? 2 : undefined)
  const share = new PrefixShare(service, MAX_TOKENS)
  ctx.say(`reading a context before each call of ${runs.length} recorded runs`)
  for (const { messages } of runs) {
    const [session = ''] = await createSessions(service, 1)
    await share.run(session, messages)
  }
  const name = `prefix kept between calls, ${share.calls} calls of recorded runs, ${MAX_TOKENS} tokens`
  return { name, unit: 'ratio', better: 'higher', values: [share.value], at_least: 0.93, aim: 0.95 }
}

/** The same of one session that goes on and on, and is compacted when it has become long. */
async function compactedPrefixes(ctx: BenchContext, service: Service): Promise<Figure> {
  const messages = recordedRuns()
    .slice(0, ctx.quick ? 2 : undefined)
    .flatMap((run) => run.messages)
    // Each run brings its instructions, and those stay.
    .filter(({ role }, index) => index === 0 || role !== 'system')
  const [session = ''] = await createSessions(service, 1)
  const share = new PrefixShare(service, COMPACTED_TOKENS + 10_000)
  ctx.say(`reading a context before each call of a session of ${messages.length} messages, with compactions`)
  let compactions = 0
  await share.run(session, messages, async ({ tokens, ids, from_seq }) => {
    if (tokens <= COMPACTED_TOKENS) return
    const to_seq = from_seq + ids.length - COMPACTED_MESSAGES_LEFT
    const near = await compact(service, session, to_seq, 'What was said before.').catch(nearestSeq)
    if (typeof near === 'number') await compact(service, session, near, 'What was said before.')
    compactions += 1
  })
  const name = `prefix kept between calls, ${share.calls} calls of one session with ${compactions} compactions`
  return { name, unit: 'ratio', better: 'higher', values: [share.value], at_least: 0.99, aim: 0.995 }
}

/** The seq that a refused compaction is told instead of one that parts a call from its result. */
function nearestSeq(error: Error): number {
  const seq = /does not: (\d+)/.exec(error.message)?.[1]
  if (seq === undefined) throw error
  return Number(seq)
}

interface ReadContext {
  items: object[]
  ids: string[]
  tokens: number
  from_seq: number
  pin: string
}

/** Reads a context before each call of a run, with the pin of the one before, and sums up what they begin with. */
class PrefixShare {
  calls = 0
  private kept = 0
  private sent = 0
  private readonly service: Service
  private readonly max_tokens: number

  constructor(service: Service, max_tokens: number) {
    this.service = service
    this.max_tokens = max_tokens
  }

  get value(): number {
    return this.kept / this.sent
  }

  async run(
    session: string,
    messages: ReadonlyArray<{ role: string }>,
    afterCall: (context: ReadContext) => Promise<void> = async () => {},
  ): Promise<void> {
    let pin = ''
    let before: string[] = []
    let waiting: object[] = []
    for (const blob of messages) {
      if (blob.role === 'assistant') {
        const body = JSON.stringify({ entries: waiting.map((one) => ({ kind: 'message', blob: one })) })
        await callApi(this.service, { method: 'POST', path: `/api/v1/session/${session}/entries`, body })
        waiting = []
        const query = new URLSearchParams({ max_tokens: String(this.max_tokens), ...(pin && { pin }) })
        const path = `/api/v1/session/${session}/context?${query}`
        const context = await callApi<ReadContext>(this.service, { method: 'GET', path })
        const items = context.items.map((item) => JSON.stringify(item))
        const differs = before.findIndex((item, index) => item !== items[index])
        this.kept += lengthOf(differs < 0 ? before : before.slice(0, differs))
        this.sent += lengthOf(before)
        this.calls += 1
        pin = context.pin
        before = items
        await afterCall(context)
      }
      waiting.push(blob)
    }
  }
}

function lengthOf(items: readonly string[]): number {
  return items.reduce((sum, { length }) => sum + length, 0)
}
