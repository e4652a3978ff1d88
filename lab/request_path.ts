import { mkdtemp, rm } from 'node:fs/promises'
import { Session } from 'node:inspector/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ROOT } from './root.ts'

/*
 * How much of our code one request passes: files and functions that V8 saw run, warm. Prints a table and fails where
 * a request passes more than it may. `npm run request-path`; with `-- --names`, the files and functions by name.
 */

interface Path {
  name: string
  files_max: number
  functions_max: number
  send: () => Promise<unknown>
}

/** Requests of each kind before one is counted, so that caches are full and nothing is loaded any more. */
const WARM = 50
/** Time in which the service comes to rest, so that nothing of another request is counted. */
const REST_MS = 200
/** Requests of each kind that are counted: what runs by the clock does not run in each. */
const COUNTED = 5
/** TypeBox is another's, though the build puts it into one file of this package. */
const OURS = /packages\/[\w-]+\/dist\/(?!typebox\.js)/
const print = (line: string) => process.stdout.write(`${line}\n`)
const WITH_NAMES = process.argv.includes('--names')
const API_KEY = 'a-key-for-a-service-that-lives-for-seconds'

const directory = await mkdtemp(join(tmpdir(), 'annals-request-path-'))
const dist = new URL('packages/server/dist/', ROOT)
const { readConfig } = await import(new URL('packages/kits/dist/configuration/config.js', ROOT).href)
const { startService } = await import(new URL('service/service.js', dist).href)
const config = readConfig({
  PORT: '0',
  ANNALS_DATA_DIR: directory,
  ANNALS_API_KEY: API_KEY,
  LOG_LEVEL: 'fatal',
})
const service = await startService(config, () => {})
try {
  process.exitCode = (await countAll(service.url)) ? 0 : 1
} finally {
  await service.stop()
  await rm(directory, { recursive: true, force: true })
}

async function countAll(url: string): Promise<boolean> {
  const call = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${API_KEY}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    const { data, msg } = (await answer.json()) as { data?: { id: string }; msg: string }
    if (!data) throw new Error(`${method} ${path}: ${msg}`)
    return data
  }
  const { id } = await call('POST', '/session', {})
  const event = { type: 'step', data: { n: 1 } }
  const message = { format: 'openai', blob: { role: 'user', content: 'What is the weather in Paris?' } }
  const paths: Path[] = [
    {
      name: 'append an event',
      files_max: 32,
      functions_max: 190,
      send: () => call('POST', `/session/${id}/events`, event),
    },
    {
      name: 'append a message',
      files_max: 39,
      functions_max: 218,
      send: () => call('POST', `/session/${id}/messages`, message),
    },
    { name: 'list sessions', files_max: 25, functions_max: 136, send: () => call('GET', '/session') },
  ]
  const inspector = new Session()
  inspector.connect()
  await inspector.post('Profiler.enable')
  await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  let fits = true
  print('request            files  at most  functions  at most')
  for (const path of paths) {
    const { files, functions, names } = await countPath(inspector, path.send)
    const numbers = [files, path.files_max, functions, path.functions_max]
    const [a, b, c, d] = numbers.map((n, i) => String(n).padStart([5, 7, 9, 7][i]!))
    print(`${path.name.padEnd(17)}  ${a}  ${b}  ${c}  ${d}`)
    if (WITH_NAMES) print(names.map((name) => `  ${name}`).join('\n'))
    fits &&= files <= path.files_max && functions <= path.functions_max
  }
  return fits
}

async function countPath(inspector: Session, send: () => Promise<unknown>) {
  for (let n = 0; n < WARM; n++) await send()
  await sleep(REST_MS)
  let ran = await functionsOf(inspector, send)
  for (let n = 1; n < COUNTED; n++) {
    const again = await functionsOf(inspector, send)
    ran = new Set([...ran].filter((name) => again.has(name)))
  }
  const names = new Map<string, string[]>()
  for (const [file, name] of [...ran].map((one) => one.split(' ') as [string, string]))
    names.set(file, [...(names.get(file) ?? []), name])
  return {
    files: names.size,
    functions: ran.size,
    names: [...names].map(([file, functions]) => `${file}: ${functions.join(', ')}`),
  }
}

/** The functions that ran while a request was answered, each with its file and its place in it. */
async function functionsOf(inspector: Session, send: () => Promise<unknown>): Promise<Set<string>> {
  await inspector.post('Profiler.takePreciseCoverage')
  await send()
  const { result } = await inspector.post('Profiler.takePreciseCoverage')
  return new Set(
    result
      .filter(({ url }) => OURS.test(url))
      .flatMap(({ url, functions }) =>
        functions
          .filter(({ ranges }) => ranges[0]!.count > 0)
          .map(({ functionName, ranges }) => {
            const name = functionName.replaceAll(' ', '_') || '(anonymous)'
            return `${url.replace(/^.*\/packages\//, '')} ${name} ${ranges[0]!.startOffset}`
          }),
      ),
  )
}
