import { mkdtemp, rm } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { cpuTimesOf } from '../../lab/cpu_wait.ts'
import { residentMegabytes } from '../../lab/process_figures.ts'
import { percentile } from '../../lab/statistics.ts'
import { BenchFailure } from '../failure.ts'
import type { LoadRequest } from '../load.ts'
import { PostgresServer } from '../postgres.ts'
import { type Service, startService } from '../service.ts'
import { callApi } from '../sessions.ts'

const USAGE = `Opens many live tails at one node, each with a token of its own for one session, and appends beside them.

Usage: npm run bench:tails -- [options]

  --tails <n>       tails (5000); both sides need as many files (ulimit -n)
  --per-session <n> tails of one session (10)
  --rate <n>        appends per second, spread over the sessions (5)
  --seconds <n>     how long is appended (30)
  --help            this text

DATABASE_URL names a server whose user may create databases; by default an embedded one is started. Ends with code 1
if a tail misses an entry or has one twice.
`
const LANES = 16
const LATE_MS_MAX = 120_000
const AGAIN_MS = 1_000

interface Tail {
  session: number
  /** The last seq that came. */
  seq: number
  faults: number
}

async function inLanes(count: number, work: (at: number) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: LANES }, lane))
}

/** Asks again while the service says that it has too much to do. */
async function patiently<Data>(service: Service, call: LoadRequest): Promise<Data> {
  for (;;) {
    try {
      return await callApi<Data>(service, call)
    } catch (error) {
      if (!(error as Error).message.includes(' answered 503')) throw error
      await sleep(AGAIN_MS)
    }
  }
}

/** Follows a session that is still empty. `onEntry` is told of each entry. */
async function follow(
  service: Service,
  id: string,
  token: string,
  tail: Tail,
  onEntry: (seq: number) => void,
) {
  const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' }
  const request = get(`${service.url}/api/v1/session/${id}/timeline`, { headers, agent: false })
  const stream = await new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve)
    request.once('error', reject)
  })
  if (stream.statusCode !== 200) throw new BenchFailure(`A tail was answered ${stream.statusCode}.`)
  let rest = ''
  stream.on('error', () => {})
  stream.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      const seq = /^id: (\d+)$/.exec(line)?.[1]
      if (seq === undefined) continue
      if (Number(seq) !== tail.seq + 1) tail.faults += 1
      tail.seq = Number(seq)
      onEntry(tail.seq)
    }
  })
  return () => request.destroy()
}

async function newSessions(service: Service, count: number): Promise<string[]> {
  const sessions: string[] = []
  await inLanes(count, async (at) => {
    const call = { method: 'POST', path: '/api/v1/session', body: '{}' }
    sessions[at] = (await patiently<{ id: string }>(service, call)).id
  })
  return sessions
}

async function newTokens(service: Service, sessions: string[], count: number): Promise<string[]> {
  const tokens: string[] = []
  await inLanes(count, async (at) => {
    const body = { for: { session_id: sessions[at % sessions.length] }, scopes: ['read'], ttl_s: 3_600 }
    const call = { method: 'POST', path: '/api/v1/tokens', body: JSON.stringify(body) }
    tokens[at] = (await patiently<{ token: string }>(service, call)).token
  })
  return tokens
}

async function measure(service: Service, { tails, per_session, rate, seconds }: Record<string, number>) {
  const count = Math.ceil(tails! / per_session!)
  const sessions = await newSessions(service, count)
  const before_mb = residentMegabytes(service.pid)
  const issuing = performance.now()
  const tokens = await newTokens(service, sessions, tails!)
  const opening = performance.now()
  const followers = tokens.map((_, at): Tail => ({ session: at % count, seq: 0, faults: 0 }))
  /** By session and seq: when it was answered, and how long after that each tail had it. */
  const answered = new Map<string, number>()
  const came = new Map<string, number[]>()
  const closes: Array<() => void> = []
  await inLanes(tails!, async (at) => {
    const { session } = followers[at]!
    const onEntry = (seq: number) => came.get(`${session} ${seq}`)!.push(performance.now())
    closes.push(await follow(service, sessions[session]!, tokens[at]!, followers[at]!, onEntry))
  })
  const opened = performance.now()
  await sleep(2_000)
  const open_mb = residentMegabytes(service.pid)
  let peak_mb = open_mb
  const cpu = cpuTimesOf(service.pid)
  const seqs = sessions.map(() => 0)
  const appends: Array<Promise<void>> = []
  for (let at = 0; at < rate! * seconds!; at += 1) {
    const session = at % count
    seqs[session]! += 1
    const key = `${session} ${seqs[session]}`
    came.set(key, [])
    const call = {
      method: 'POST',
      path: `/api/v1/session/${sessions[session]}/events`,
      body: JSON.stringify({ type: 'note', data: { at } }),
    }
    appends.push(patiently(service, call).then(() => void answered.set(key, performance.now())))
    await sleep(Math.max(0, opened + 2_000 + ((at + 1) * 1_000) / rate! - performance.now()))
    if (at % rate! === 0) peak_mb = Math.max(peak_mb, residentMegabytes(service.pid))
  }
  await Promise.all(appends)
  const isThere = () => followers.every(({ seq, session }) => seq >= seqs[session]!)
  for (const until = performance.now() + LATE_MS_MAX; !isThere() && performance.now() < until; )
    await sleep(50)
  const { on_cpu_ms, waited_ms } = cpuTimesOf(service.pid)
  for (const close of closes) close()
  const lags = [...came].flatMap(([key, times]) =>
    times.map((time) => Math.max(time - answered.get(key)!, 0)),
  )
  const sorted = Float64Array.from(lags).sort()
  return {
    'tails, each with a token of its own': tails!,
    appends: appends.length,
    deliveries: lags.length,
    'entries that a tail missed or had twice': followers.reduce(
      (sum, { faults, seq, session }) => sum + faults + Math.abs(seqs[session]! - seq),
      0,
    ),
    'from the answer to a tail, p50, ms': percentile(sorted, 0.5),
    'from the answer to a tail, p99, ms': percentile(sorted, 0.99),
    'tokens made per second': (tails! * 1_000) / (opening - issuing),
    'tails opened per second': (tails! * 1_000) / (opened - opening),
    'main thread on a processor per delivery, ms': (on_cpu_ms - cpu.on_cpu_ms) / lags.length,
    'main thread waiting for a processor, s': (waited_ms - cpu.waited_ms) / 1_000,
    'memory before, MB': before_mb,
    'memory with the tails, MB': open_mb,
    'memory at most while appending, MB': peak_mb,
    'memory of a tail, KB': ((open_mb - before_mb) * 1_024) / tails!,
  }
}

async function main(): Promise<void> {
  const text = (value: string) => ({ type: 'string' as const, default: value })
  const { values } = parseArgs({
    options: {
      tails: text('5000'),
      'per-session': text('10'),
      rate: text('5'),
      seconds: text('30'),
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(USAGE)
    return
  }
  const given = {
    tails: Number(values.tails),
    per_session: Number(values['per-session']),
    rate: Number(values.rate),
    seconds: Number(values.seconds),
  }
  if (!Object.values(given).every((value) => value >= 1))
    throw new BenchFailure(`Options take numbers from 1.\n\n${USAGE}`)
  const directory = await mkdtemp(join(tmpdir(), 'annals-tails-'))
  const steps: Array<() => unknown> = [() => rm(directory, { recursive: true, force: true })]
  try {
    const server = await PostgresServer.start(process.env.DATABASE_URL || undefined, directory)
    steps.push(() => server.stop())
    const database = await server.createDatabase()
    steps.push(() => database.drop())
    const service = await startService({ DATABASE_URL: database.url })
    steps.push(() => service.stop())
    const figures = await measure(service, given)
    for (const [name, value] of Object.entries(figures))
      process.stdout.write(
        `${value.toLocaleString('en', { maximumFractionDigits: 1 }).padStart(10)}  ${name}\n`,
      )
    if (figures['entries that a tail missed or had twice'] > 0) process.exitCode = 1
  } finally {
    for (const step of steps.reverse()) await step()
  }
}

await main().catch((error: unknown) => {
  process.stderr.write(`tails: ${error instanceof BenchFailure ? error.message : (error as Error).stack}\n`)
  process.exit(2)
})
