import { setTimeout as sleep } from 'node:timers/promises'
import { median, percentile } from '../../lab/statistics.ts'
import { type LoadRequest, runLoad } from '../load.ts'
import type { BenchContext, Figure, Part } from '../part.ts'
import { type BenchDatabase, withConnection } from '../postgres.ts'
import { interleave, ratios } from '../rounds.ts'
import {
  newProject,
  type SearchedProject,
  searchFor,
  storeRuns,
  switchSearchOn,
  untilIndexed,
} from '../searched_project.ts'
import { appendsTo, callApi, createSessions, toolCall } from '../sessions.ts'

const READERS = 8
/** A word that every third entry has. */
const FREQUENT = 'flight'
const QUERIES: Record<string, LoadRequest> = {
  'a frequent word': searchFor(FREQUENT),
  'a rare word': searchFor('hyperallergenic'),
  'two words': searchFor('refund insurance'),
  'a word without another': searchFor('certificate -cancel'),
  'a phrase': searchFor('"travel insurance"'),
  'a beginning': searchFor('reimburs*'),
  'of a user': searchFor('baggage', { user: 'omar_davis_3817' }),
  'of a role and configs': searchFor('refund', { role: 'user', filter_by_configs: '{"run":7}' }),
}

/** Of eight words each. */
const QUESTIONS = [
  'when did customers complain about the lost baggage',
  'which passenger wanted to change flights to Seattle',
  'why was the basic economy ticket refund refused',
  'what did the agent say about travel insurance',
  'how many certificates were used for the reservation',
  'who asked to cancel the trip over weather',
  'did omar ask for a business window seat',
  'was the credit card payment declined last time',
]
const ASKED: Record<string, LoadRequest[]> = {
  'questions of 8 words': QUESTIONS.map((question) => searchFor(question, { mode: 'recall' })),
  'questions of 8 words, entries': QUESTIONS.map((question) =>
    searchFor(question, { mode: 'recall', group: 'entry' }),
  ),
}

/** How fast a search is, and what the index takes. */
export const search: Part = {
  name: 'search',
  describe:
    'search among a million entries (--full: five), and what its index takes (AIRLINE_RUNS: the text)',
  run: async (ctx) => {
    const entries = ctx.quick ? 1_000 : ctx.full ? 5_000_000 : 1_000_000
    const database = await ctx.createDatabase()
    const service = await ctx.startService(database)
    const [project, other] = [await newProject(service, 'searched'), await newProject(service, 'other')]
    ctx.say(`storing ${entries} entries, and half as many in another project`)
    await Promise.all([switchSearchOn(other), switchSearchOn(project)])
    await storeRuns(other, entries / 2)
    const stored = await storeRuns(project, entries)
    ctx.say('waiting until they are indexed')
    await Promise.all([untilIndexed(other), untilIndexed(project)])
    return [
      ...(await timesOfQueries(ctx, project)),
      ...(await timesOfQuestions(ctx, project)),
      await besidePlainQuery(ctx, database, project),
      await sizeOfIndex(ctx, database, project, stored),
      ...(await beside(ctx)),
    ]
  },
}

async function timesOfQueries(ctx: BenchContext, { service }: SearchedProject): Promise<Figure[]> {
  const kinds = Object.entries(QUERIES)
  const seconds = ctx.quick ? ctx.seconds : Math.max(ctx.seconds / 2, 1)
  const measured = kinds.map(([kind, request]) => {
    const load = () =>
      runLoad({ services: [service], connections: READERS, seconds, requests: [request], status: 200 })
    return [kind, load] as const
  })
  const results = await interleave(ctx.rounds, Object.fromEntries(measured), ctx.say)
  ctx.detail('queries', results)
  const p99s = (kind: string) => results[kind]!.map(({ p99_ms }) => p99_ms)
  const worst = Array.from({ length: ctx.rounds }, (_, round) =>
    Math.max(...kinds.map(([kind]) => p99s(kind)[round]!)),
  )
  const figure = (name: string, values: number[]): Figure => ({ name, unit: 'ms', better: 'lower', values })
  return [
    { ...figure(`slowest of ${kinds.length} kinds of query, 8 readers: p99`, worst), at_least: 60, aim: 25 },
    ...kinds.map(([kind]) => figure(`${kind}: p99`, p99s(kind))),
  ]
}

/** The questions of a kind in turn. */
async function timesOfQuestions(ctx: BenchContext, { service }: SearchedProject): Promise<Figure[]> {
  const loads = Object.entries(ASKED).map(([kind, requests]) => {
    const load = () =>
      runLoad({ services: [service], connections: READERS, seconds: ctx.seconds, requests, status: 200 })
    return [kind, load] as const
  })
  const results = await interleave(ctx.rounds, Object.fromEntries(loads), ctx.say)
  ctx.detail('questions', results)
  return Object.entries(results).map(([kind, runs]) => ({
    name: `${kind}, ${READERS} readers: p99`,
    unit: 'ms',
    better: 'lower',
    values: runs.map(({ p99_ms }) => p99_ms),
    at_least: 100,
    aim: 50,
  }))
}

/** The frequent word, beside what one writes without segments: one GIN index on the words, and a sort. */
async function besidePlainQuery(
  ctx: BenchContext,
  database: BenchDatabase,
  { service, id }: SearchedProject,
): Promise<Figure> {
  ctx.say('a plain table of words')
  await database.query(`CREATE TABLE plain AS SELECT e.project_id, e.session_id, e.seq, e.created_at,
    strip(to_tsvector('simple', left(e.data::text, 65536))) AS words FROM entries e`)
  await database.query('CREATE INDEX plain_words ON plain USING gin (words)')
  await database.query('ANALYZE plain')
  const times = { search: [] as number[], plain: [] as number[] }
  await withConnection(database.url, async (connection) => {
    const until = performance.now() + ctx.rounds * ctx.seconds * 1_000
    while (performance.now() < until) {
      times.search.push(await msOf(() => callApi(service, searchFor(FREQUENT))))
      const plain = `SELECT p.session_id, p.seq FROM plain p WHERE p.project_id = $1 AND p.words @@ $2::tsquery
        ORDER BY p.created_at DESC LIMIT 20`
      times.plain.push(await msOf(() => connection.query(plain, [id, FREQUENT])))
    }
  })
  await database.query('DROP TABLE plain')
  ctx.detail('a frequent word, ms', { search: median(times.search), plain: median(times.plain) })
  const values = [median(times.search) / median(times.plain)]
  const name = 'a frequent word ÷ the plain query of a tsvector'
  return { name, unit: 'ratio', better: 'lower', values, at_least: 0.1, aim: 0.03 }
}

async function msOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

async function sizeOfIndex(
  ctx: BenchContext,
  database: BenchDatabase,
  { id }: SearchedProject,
  stored: Awaited<ReturnType<typeof storeRuns>>,
): Promise<Figure> {
  const [size] = await database.query<Record<'bytes' | 'heap' | 'words' | 'share', string>>(
    `SELECT pg_total_relation_size('search_entries') + pg_total_relation_size('search_segments') AS bytes,
      pg_table_size('search_entries') AS heap, pg_relation_size('search_entries_words') AS words,
      (SELECT sum(s.entries) FILTER (WHERE s.project_id = $1) / sum(s.entries) FROM search_segments s) AS share`,
    [id],
  )
  ctx.detail('size', { ...size, ...stored })
  const values = [(Number(size!.bytes) * Number(size!.share)) / stored.text_bytes]
  return {
    name: 'size of the index ÷ of the text',
    unit: 'ratio',
    better: 'lower',
    values,
    at_least: 1,
    aim: 0.6,
  }
}

/** What appends lose, and how fresh the index is, in a new database. */
async function beside(ctx: BenchContext): Promise<Figure[]> {
  const database = await ctx.createDatabase()
  const service = await ctx.startService(database)
  const searched = await newProject(service, 'searched')
  const plain = await newProject(service, 'plain')
  await switchSearchOn(searched)
  await untilIndexed(searched)
  const load = async ({ service }: SearchedProject) => {
    const sessions = await createSessions(service, ctx.quick ? 20 : 1_000)
    const requests = appendsTo(sessions)
    return () =>
      runLoad({ services: [service], connections: 64, seconds: ctx.seconds, requests, status: 200 })
  }
  const subjects = { on: await load(searched), off: await load(plain) }
  await sleep(ctx.quick ? 500 : 7_000)
  const runs = await interleave(
    ctx.rounds,
    {
      on: subjects.on,
      // What it indexes belongs to the appends before it.
      indexed: () => untilIndexed(searched).then(subjects.off),
    },
    ctx.say,
  )
  const rate = (name: 'on' | 'indexed') => runs[name]!.map(({ per_second }) => per_second)
  await untilIndexed(searched)
  const name = 'appends with search on ÷ off'
  const values = ratios(rate('on'), rate('indexed'))
  return [
    { name, unit: 'ratio', better: 'higher', values, at_least: 0.6, aim: 0.8 },
    await timeUntilFound(ctx, searched),
  ]
}

/** From an append's answer until a search finds it, beside 1,000 appends a second. */
async function timeUntilFound(ctx: BenchContext, { service }: SearchedProject): Promise<Figure> {
  const requests = appendsTo(await createSessions(service, 100))
  const [session] = await createSessions(service, 1)
  const waits: number[] = []
  const began = performance.now()
  const until = began + Math.max(ctx.rounds * ctx.seconds * 1_000, ctx.quick ? 500 : 3_000)
  let sent = 0
  const underWay = new Set<Promise<unknown>>()
  const others = async () => {
    while (performance.now() < until) {
      // Looked at once: on a slow machine more falls due than is sent, and the loop must turn.
      const due = performance.now() - began
      for (; sent < due; sent++) {
        const one = callApi(service, requests[sent % requests.length]!).finally(() => underWay.delete(one))
        underWay.add(one)
      }
      await sleep(5)
    }
    await Promise.all(underWay)
  }
  const probe = async () => {
    for (let n = 0; performance.now() < until; n++) {
      const body = JSON.stringify({ ...toolCall(n), data: { word: `probe${n}` } })
      const path = `/api/v1/session/${session}/events`
      await callApi(service, { method: 'POST', path, body })
      waits.push(await msOf(() => untilFound(service, `probe${n}`)))
    }
  }
  await Promise.all([others(), probe()])
  ctx.detail('appends a second', sent / ((performance.now() - began) / 1_000))
  const values = [percentile(Float64Array.from(waits).sort(), 0.99) / 1_000]
  const name = 'from acknowledged to found, at 1,000 appends a second: p99'
  return { name, unit: 's', better: 'lower', values, at_least: 2, aim: 0.5 }
}

async function untilFound(service: SearchedProject['service'], word: string): Promise<void> {
  for (;;) {
    const { items } = await callApi<{ items: unknown[] }>(service, searchFor(word))
    if (items.length > 0) return
    await sleep(20)
  }
}
