import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const BUILT = new URL('../../../dist/', import.meta.url)
const KITS = new URL('../../../../kits/dist/', import.meta.url)
const WARM = 1_500
const COUNTED = 1_000
const ID = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'

/** Appends through HTTP in front of a database that stores everything; writes how long the log was behind the warm ones. */
const SCRIPT = `
  import { statSync } from 'node:fs'
  const load = (file) => import(${JSON.stringify(BUILT.href)} + file)
  const loadKit = (file) => import(${JSON.stringify(KITS.href)} + file)
  const { buildApp } = await load('service/app.js')
  const { Appender } = await load('log/append/appender.js')
  const { Metrics } = await loadKit('metrics/metrics.js')
  const { logRoutes } = await load('log/all_log_routes.js')
  const { readConfig } = await loadKit('configuration/config.js')
  const { memoryBudget } = await loadKit('fairness/fair_queue.js')
  const query = async (_statement, parameters, onSending) => {
    onSending()
    await new Promise(setImmediate)
    return [{ answer: parameters[1].split(',').map(() => 7).join(',') + '\\n\\n2026-11-24T00:00:00.000000Z\\n\\n' }]
  }
  const database = { of: () => ({ query }) }
  const appender = new Appender({ database, queue_requests_max: 1e3, queue_bytes_max: 1e6, flushes_max: 4, wait_ms_max: 6e4 })
  const grant = { key_id: 'key', project_id: '${ID}', scopes: new Set(['write']), quotas: {}, unmarked_until: Infinity, narrow: undefined }
  const log = { child: () => log }
  for (const level of ['fatal', 'error', 'warn', 'info', 'debug', 'trace']) log[level] = () => {}
  const parts = {
    config: readConfig({}), logger: log, metrics: new Metrics(), memory: memoryBudget(1e8), database, appender, usage: {},
    thread: { takes: () => true }, feed: { close() {} },
  }
  const tokens = { find: () => grant, projectOf: () => '${ID}' }
  const app = await buildApp(parts, [await logRoutes(parts)], { tokens, sessionTokens: { isOne: () => false }, appender })
  const headers = { authorization: 'Bearer key', 'content-type': 'application/json' }
  const event = { type: 'a', data: { b: 1 } }
  const message = { blob: { role: 'user', content: 'Where is my flight?' } }
  const entries = [{ kind: 'event', ...event }, { kind: 'message', ...message }]
  const sendAll = async (count) => {
    for (const [path, body] of Object.entries({ events: event, messages: message, entries: { entries } }))
      for (let sent = 0; sent < count / 3; sent += 10)
        await Promise.all(Array.from({ length: 10 }, async (_, at) => {
          const url = '/api/v1/session/${ID.slice(0, -1)}' + at + '/' + path
          const answer = await app.inject({ method: 'POST', url, headers, payload: JSON.stringify(body) })
          if (answer.statusCode > 201) throw new Error(answer.body)
        }))
  }
  await sendAll(${WARM})
  console.log(statSync(process.argv[2]).size)
  await sendAll(${COUNTED})
  process.exit()
`

/** What a process of its own misses for each append, and the last of it. */
async function missesOfAppends(directory: string): Promise<{ each: number; last: string }> {
  const log = join(directory, 'v8.log')
  const flags = ['--log-ic', `--logfile=${log}`, '--no-logfile-per-isolate', '--input-type=module', '-']
  const run = promisify(execFile)(process.execPath, [...flags, log])
  run.child.stdin!.end(SCRIPT)
  const warm_bytes = Number((await run).stdout)
  expect(warm_bytes).toBeGreaterThan(0)
  const misses = (await readFile(log, 'latin1')).slice(warm_bytes).match(/^\w*IC,.*$/gm) ?? []
  return { each: misses.length / COUNTED, last: misses.slice(-5).join('\n') }
}

// An object that is made by a spread has a hidden class of its own: reading it then cost an append a seventh.
it('appends have one shape: what reads them misses no cache of the engine', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'annals-shapes-'))
  try {
    // Where things lie in memory may have them share a place in the cache of a process, but not of three.
    let misses = await missesOfAppends(directory)
    for (let again = 0; again < 2 && misses.each >= 2; again++) misses = await missesOfAppends(directory)
    expect(misses.each, misses.last).toBeLessThan(2)
  } finally {
    await rm(directory, { recursive: true })
  }
}, 120_000)
