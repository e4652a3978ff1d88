import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'

/*
 * How much memory the service takes for long reads: a page of 200 large messages, a session of 100,000 entries read
 * whole in its own format and in another, its copy, 1,000 idle tails, and an export. Prints the peak resident size of each process
 * against what it was before. Linux only: it reads /proc.
 *
 *   npm run bench -- memory [--entries 100000] [--export-megabytes 1024]
 */

const { values } = parseArgs({
  args: process.argv.slice(2).filter((argument) => argument !== 'memory'),
  options: {
    entries: { type: 'string', default: '100000' },
    'export-megabytes': { type: 'string', default: '1024' },
  },
})
const ENTRIES = Number(values.entries)
const EXPORT_MEGABYTES = Number(values['export-megabytes'])
const ANNALS = 'packages/server/bin/annals.js'
const BATCH = 1_000
const TAILS = 1_000
const SAMPLE_MS = 20

interface Row {
  what: string
  before_mb: number
  peak_mb: number
  took_s: number
  read_mb: number
}

const data = await mkdtemp(join(tmpdir(), 'annals-bench-'))
const env = { ...process.env, ANNALS_DATA_DIR: data, PORT: '0', LOG_LEVEL: 'error', DATABASE_URL: '' }
const service = spawn('node', [ANNALS, 'serve'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
const rows: Row[] = []
try {
  const { url, token } = await whenReady()
  const api = (method: string, path: string, body?: unknown) =>
    fetch(`${url}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  const newSession = async () =>
    ((await (await api('POST', '/session', {})).json()) as { data: { id: string } }).data.id

  const long = await newSession()
  const entry = (index: number) =>
    index % 2 === 0
      ? {
          kind: 'message',
          blob: { role: 'user', content: `Message ${index}: where is my flight?` },
          meta: { index },
        }
      : { kind: 'event', type: 'tool_call', data: { index, name: 'get_reservation_details' } }
  for (let from = 0; from < ENTRIES; from += BATCH) {
    const entries = Array.from({ length: Math.min(BATCH, ENTRIES - from) }, (_, index) => entry(from + index))
    await expectOk(await api('POST', `/session/${long}/entries`, { entries }))
  }
  const large = await newSession()
  const blob = { role: 'user', content: 'A long day in an airport. '.repeat(38_000) }
  const exported = await newSession()
  for (let index = 0; index < 200; index++)
    await expectOk(await api('POST', `/session/${large}/messages`, { blob }))
  for (let megabytes = 0; megabytes < EXPORT_MEGABYTES - 200; megabytes++) {
    await expectOk(
      await api('POST', `/session/${exported}/events`, {
        type: 'large',
        data: { text: 'x'.repeat(1_000_000) },
      }),
    )
  }

  const read = (path: string) => async () => drain(await api('GET', path))
  await measure('a page of 200 messages of 1 MB', read(`/session/${large}/messages?limit=200`))
  await measure(
    `${ENTRIES} entries: messages, own format`,
    read(`/session/${long}/messages?with_events=true`),
  )
  await measure(`${ENTRIES} entries: messages, as gemini`, read(`/session/${long}/messages?format=gemini`))
  await measure(`${ENTRIES} entries: copy`, async () => drain(await api('POST', `/session/${long}/copy`)))
  await measure(`${TAILS} idle tails`, () => holdTails(url, token, long))
  rows.push(await measureExport())
} finally {
  service.kill('SIGTERM')
  await new Promise((resolve) => service.once('exit', resolve))
  await rm(data, { recursive: true, force: true })
}
process.stdout.write(`${'what'.padEnd(44)}  before    peak    took    read\n`)
for (const { what, before_mb, peak_mb, took_s, read_mb } of rows) {
  const cells = [`${before_mb} MB`, `${peak_mb} MB`, `${took_s.toFixed(1)} s`, `${read_mb} MB`]
  process.stdout.write(`${what.padEnd(44)}${cells.map((cell) => cell.padStart(8)).join('')}\n`)
}

async function whenReady(): Promise<{ url: string; token: string }> {
  let url = ''
  for await (const line of createInterface({ input: service.stdout })) {
    url ||= /ready at (\S+)/.exec(line)?.[1] ?? ''
    const token = /^API key: (\S+)/.exec(line)?.[1]
    if (url && token) {
      service.stdout.resume()
      return { url, token }
    }
  }
  throw new Error('the service did not start')
}

async function measure(what: string, work: () => Promise<number>): Promise<void> {
  rows.push(await watch(what, service.pid ?? 0, work))
}

/** Runs `work` and watches the resident size of a process meanwhile. `work` gives the bytes that it read. */
async function watch(what: string, pid: number, work: () => Promise<number>): Promise<Row> {
  const before_mb = await residentMegabytes(pid)
  let peak_mb = before_mb
  const sampling = setInterval(async () => {
    peak_mb = Math.max(peak_mb, await residentMegabytes(pid))
  }, SAMPLE_MS)
  const began = performance.now()
  const bytes = await work()
  clearInterval(sampling)
  return {
    what,
    before_mb,
    peak_mb,
    took_s: (performance.now() - began) / 1000,
    read_mb: Math.round(bytes / 1e6),
  }
}

async function measureExport(): Promise<Row> {
  const child = spawn('node', [ANNALS, 'export', '--project', 'default'], {
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  return watch('export', child.pid ?? 0, async () => {
    let bytes = 0
    for await (const chunk of child.stdout) bytes += (chunk as Buffer).length
    return bytes
  })
}

/** Opens tails behind the end of a session, a second of silence, and closes them. */
async function holdTails(url: string, token: string, session: string): Promise<number> {
  const stop = new AbortController()
  const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' }
  const path = `${url}/api/v1/session/${session}/timeline?after_seq=${ENTRIES}`
  const tails = Array.from({ length: TAILS }, () => fetch(path, { headers, signal: stop.signal }))
  for (const tail of await Promise.all(tails)) if (!tail.ok) throw new Error(`answered ${tail.status}`)
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  stop.abort()
  return 0
}

async function residentMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024)
}

async function drain(response: Response): Promise<number> {
  let bytes = 0
  for await (const chunk of response.body ?? []) bytes += (chunk as Uint8Array).length
  if (!response.ok) throw new Error(`answered ${response.status}`)
  return bytes
}

async function expectOk(response: Response): Promise<void> {
  if (!response.ok) throw new Error(`answered ${response.status}: ${await response.text()}`)
  await response.arrayBuffer()
}
