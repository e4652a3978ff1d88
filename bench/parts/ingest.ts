import { gzipSync } from 'node:zlib'
import { type LoadRequest, runLoad } from '../load.ts'
import { NEEDS_PROC, watchMemory } from '../memory.ts'
import type { BenchContext, Figure, Part } from '../part.ts'
import { interleave, ratios } from '../rounds.ts'
import type { Service } from '../service.ts'
import { appendsTo, callApi, createSessions, toolCall } from '../sessions.ts'

const CONNECTIONS = 8
const SESSIONS = 200
const SPANS = 100
const APPENDS_A_SECOND = 1_000
const TICK_MS = 20
/** Digits of a trace's id that each request has of its own: a span that is sent again is not stored again. */
const OWN_ID = '0123456789abcdef'
const TRACES = '/api/v1/otel/v1/traces'
const BODY_BYTES_MAX = 8 * 1024 * 1024

/** Spans of OpenTelemetry, against appends of events that are the same once they are stored. */
export const ingest: Part = {
  name: 'ingest',
  describe: `${SPANS} spans a request, against appends of the same events; beside other appends; memory under attack`,
  run: async (ctx) => {
    const database = await ctx.createDatabase()
    const service = await ctx.startService(database)
    const spans = Array.from({ length: SESSIONS }, (_, session) => spansOf(`bench-${session}`))
    const appends = await appendsOf(service, spans[0]!)
    const load = (requests: LoadRequest[], status: number, connections = CONNECTIONS) =>
      runLoad({ services: [service], connections, seconds: ctx.seconds, requests, status })
    await ctx.warmUp(() => load(spans, 200))
    await ctx.warmUp(() => load(appends, 201))
    const runs = await interleave(
      ctx.rounds,
      { spans: () => load(spans, 200), appends: () => load(appends, 201) },
      ctx.say,
    )
    ctx.detail('runs', runs)
    const [taken, appended] = [runs.spans!, runs.appends!].map((list) =>
      list.map(({ per_second }) => per_second * SPANS),
    )
    return [
      {
        name: `${SPANS} spans a request ÷ ${SPANS} of the same events`,
        ...{ unit: 'ratio', better: 'higher', at_least: 0.5, aim: 0.8, values: ratios(taken!, appended!) },
      },
      { name: `${SPANS} spans a request: spans`, unit: '/s', better: 'higher', values: taken! },
      await besideAppends(ctx, service, () => load(spans, 200, 1)),
      ...(await underAttack(ctx, service)),
    ]
  },
}

/** Calls of tools, one trace of a session. */
function spansOf(session: string): LoadRequest {
  const spans = Array.from({ length: SPANS }, (_, index) => {
    const { id, function: called } = toolCall(index).data as { id: string; function: Record<string, string> }
    return {
      traceId: `${OWN_ID}0000000000000000`,
      spanId: String(index + 1).padStart(16, '0'),
      name: `execute_tool ${called.name}`,
      startTimeUnixNano: '1764149400000000000',
      endTimeUnixNano: '1764149401200000000',
      attributes: attributes({
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.conversation.id': session,
        'gen_ai.tool.name': called.name!,
        'gen_ai.tool.call.id': id,
        'gen_ai.tool.call.arguments': called.arguments!,
      }),
    }
  })
  return { method: 'POST', path: TRACES, body: bodyOf(spans), own: OWN_ID }
}

function attributes(members: Record<string, string>): object[] {
  return Object.entries(members).map(([key, stringValue]) => ({ key, value: { stringValue } }))
}

function bodyOf(spans: object[]): string {
  const resource = { attributes: attributes({ 'service.name': 'bench' }) }
  return JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ spans }] }] })
}

/** Appends of what is stored of these spans. */
async function appendsOf(service: Service, { body, path }: LoadRequest): Promise<LoadRequest[]> {
  const headers = { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' }
  await fetch(`${service.url}${path}`, { method: 'POST', headers, body: body! })
  const get = <Data>(path: string) => callApi<Data>(service, { method: 'GET', path: `/api/v1${path}` })
  const [session] = (await get<{ items: Array<{ id: string }> }>('/session')).items
  const events = `/session/${session!.id}/events?limit=${SPANS}`
  const stored = (await get<{ items: Array<{ type: string; data: object; occurred_at: string }> }>(events))
    .items
  const entries = stored.map(({ type, data, occurred_at }) => ({ kind: 'event', type, data, occurred_at }))
  const batch = JSON.stringify({ entries })
  return (await createSessions(service, SESSIONS)).map((id) => ({
    method: 'POST',
    path: `/api/v1/session/${id}/entries`,
    body: batch,
  }))
}

/** How long a request with spans takes while single events are appended, as many a second as others send. */
async function besideAppends(
  ctx: BenchContext,
  service: Service,
  load: () => Promise<{ p99_ms: number }>,
): Promise<Figure> {
  const requests = appendsTo(await createSessions(service, SESSIONS))
  const values: number[] = []
  const rates: number[] = []
  const rate = ctx.some(APPENDS_A_SECOND)
  let refused = 0
  for (let round = 0; round < ctx.rounds; round++) {
    ctx.say(`round ${round + 1} of ${ctx.rounds}: beside ${rate} appends a second`)
    const began = performance.now()
    let sent = 0
    const waiting = new Set<Promise<unknown>>()
    const ticking = setInterval(() => {
      const due = Math.floor(((performance.now() - began) / 1_000) * rate)
      for (; sent < due && waiting.size < rate; sent++) {
        const one = callApi(service, requests[sent % requests.length]!)
          // Where the machine cannot do as many, they are refused.
          .catch(() => refused++)
          .finally(() => waiting.delete(one))
        waiting.add(one)
      }
    }, TICK_MS)
    values.push((await load()).p99_ms)
    clearInterval(ticking)
    await Promise.all(waiting)
    rates.push(sent / ((performance.now() - began) / 1_000))
  }
  ctx.detail('appends a second beside spans, and refused', { rates, refused })
  return {
    name: `${SPANS} spans a request beside ${APPENDS_A_SECOND} appends a second: p99`,
    ...{ unit: 'ms', better: 'lower', at_least: 100, values },
  }
}

/** The peak of the service's memory while eight at a time send what is hard to read; each has its own answer. */
async function underAttack(ctx: BenchContext, service: Service): Promise<Figure[]> {
  let deep: object = { stringValue: 'x' }
  for (let level = 0; level < 60; level++) deep = { arrayValue: { values: [deep] } }
  const span = (value: object) => ({
    traceId: 'f'.repeat(32),
    spanId: '1'.repeat(16),
    attributes: [{ key: 'a', value }],
  })
  const wide = { arrayValue: { values: Array.from({ length: 120_000 }, () => ({ intValue: '1' })) } }
  const shapes: Record<string, { body: string | Uint8Array<ArrayBuffer>; status: number }> = {
    'deep attributes': { body: bodyOf(Array.from({ length: 2_000 }, () => span(deep))), status: 200 },
    'wide attributes': { body: bodyOf([span(wide)]), status: 200 },
    'huge strings': {
      body: bodyOf([span({ stringValue: '\\"'.repeat((BODY_BYTES_MAX - 1_000) / 4) })]),
      status: 200,
    },
    'gzip bombs': {
      body: new Uint8Array(gzipSync(Buffer.alloc((ctx.quick ? 64 : 256) * 1024 * 1024))),
      status: 413,
    },
  }
  const figures: Figure[] = []
  for (const [name, { body, status }] of Object.entries(shapes)) {
    const headers = {
      authorization: `Bearer ${service.token}`,
      'content-type': 'application/json',
      ...(typeof body !== 'string' && { 'content-encoding': 'gzip' }),
    }
    const answers: Record<number, number> = {}
    const seen = await watchMemory(service.pid, async () => {
      const until = performance.now() + ctx.seconds * 1_000
      const work = async () => {
        do {
          const answer = await fetch(`${service.url}${TRACES}`, { method: 'POST', headers, body })
          await answer.arrayBuffer()
          answers[answer.status] = (answers[answer.status] ?? 0) + 1
        } while (performance.now() < until)
      }
      await Promise.all(Array.from({ length: ctx.quick ? 2 : CONNECTIONS }, work))
    })
    ctx.say(`${name}: ${JSON.stringify(answers)}, ${seen?.peak_mb} MB`)
    const others = Object.keys(answers).filter((one) => Number(one) !== status && one !== '503')
    if (others.length > 0) ctx.say(`${name}: unexpected answers`)
    const figure = { name: `highest RSS under ${name}`, unit: 'MB', better: 'lower', at_least: 500 } as const
    figures.push(seen ? { ...figure, values: [seen.peak_mb] } : { ...figure, values: [], note: NEEDS_PROC })
  }
  return figures
}
