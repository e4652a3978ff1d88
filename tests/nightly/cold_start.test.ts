import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ADMIN_TOKEN, type AnnalsServer, runAnnals, startServer } from '../harness/annals_process.ts'
import { apiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { httpClient } from '../harness/http_client.ts'
import { expectOrderlyEnds } from '../harness/service.ts'
import { createEmptyDatabase, reasonForNoOwnDatabase, type TestDatabase } from '../harness/test_database.ts'

const API_KEY_LINE = /^API key: (sk-\S+)\s*$/

let database: TestDatabase
let nodes: AnnalsServer[]

beforeEach(async (context) => {
  const reason = reasonForNoOwnDatabase()
  context.skip(reason !== undefined, reason)
  database = await createEmptyDatabase()
  nodes = []
})

afterEach(async () => {
  const ends = await Promise.all((nodes ?? []).map((node) => node.stop()))
  await database?.drop()
  expectOrderlyEnds(ends)
})

async function start(env: Record<string, string> = {}): Promise<AnnalsServer> {
  const node = await startServer({ DATABASE_URL: database.url, ...env })
  nodes.push(node)
  return node
}
const printedKeys = (node: AnnalsServer) => node.lines.flatMap((line) => API_KEY_LINE.exec(line)?.[1] ?? [])
const listWith = async (node: AnnalsServer, token: string) => {
  const client = apiClient(node.url, token)
  const answer = await client.listSessions()
  client.close()
  return answer
}

describe('a first start on an empty database', () => {
  it('makes the schema and prints one API key, once; later starts print none', async () => {
    const first = await start()
    const [key, ...more] = printedKeys(first)
    expect(more).toEqual([])
    expectOk(await listWith(first, key!))
    await first.stop()
    const later = await start()
    expect(printedKeys(later)).toEqual([])
    expectOk(await listWith(later, key!))
  })

  it('of two nodes at once brings both up, with one API key between them', async () => {
    const both = await Promise.all([start(), start()])
    const keys = both.flatMap(printedKeys)
    expect(keys).toHaveLength(1)
    for (const node of both) expectOk(await listWith(node, keys[0]!))
  })

  it('of four migrations at once succeeds for all', async () => {
    const results = await Promise.all(
      Array.from({ length: 4 }, () => runAnnals(['migrate'], { DATABASE_URL: database.url })),
    )
    expect(results.map((result) => [result.code, result.stderr.includes('error')])).toEqual(
      Array(4).fill([0, false]),
    )
    expect((await runAnnals(['migrate'], { DATABASE_URL: database.url })).code).toBe(0)
  })
})

it('loads nothing of what backs up, exports, imports, verifies or diagnoses, which a command loads', async () => {
  const keeping = await mkdtemp(join(tmpdir(), 'annals-loaded-'))
  try {
    const of = (name: string) => ({ NODE_V8_COVERAGE: join(keeping, name), DATABASE_URL: database.url })
    const node = await start(of('serve'))
    expectOk(await listWith(node, printedKeys(node)[0]!))
    await node.stop()
    await runAnnals(['verify'], of('verify'))
    expect(archivesIn(await loadedBy(join(keeping, 'serve')))).toEqual([])
    expect(archivesIn(await loadedBy(join(keeping, 'verify'))).length).toBeGreaterThan(0)
  } finally {
    await rm(keeping, { recursive: true, force: true })
  }
})

/** The files of the bundle that processes and threads have loaded, by what V8 kept of them: their texts. */
async function loadedBy(directory: string): Promise<Map<string, string>> {
  const loaded = new Map<string, string>()
  for (const name of await readdir(directory)) {
    const { result } = JSON.parse(await readFile(join(directory, name), 'utf8')) as {
      result: { url: string }[]
    }
    for (const { url } of result.filter(({ url }) => url.includes('/dist/bundle/')))
      loaded.set(url, await readFile(fileURLToPath(url), 'utf8'))
  }
  expect(loaded.size).toBeGreaterThan(10)
  return loaded
}

/** Bundling leaves a comment with its file's name before each module. */
const archivesIn = (loaded: Map<string, string>) =>
  [...loaded].filter(([, text]) => text.includes('packages/archive/dist/')).map(([url]) => url)

describe('ANNALS_API_KEY', () => {
  it('is the one token of the project default; another value replaces it', async () => {
    const [keyA, keyB] = ['a'.repeat(32), `b-${'!~'.repeat(127)}`]
    const first = await start({ ANNALS_API_KEY: keyA! })
    expect(printedKeys(first)).toEqual([])
    expect(first.lines.join('\n')).not.toContain(keyA)
    expectOk(await listWith(first, keyA!))
    expectError(await listWith(first, keyB!), 401, 'unauthorized')
    await first.stop()
    const second = await start({ ANNALS_API_KEY: keyB! })
    expectOk(await listWith(second, keyB!))
    expectError(await listWith(second, keyA!), 401, 'unauthorized')
  })

  it('replaces the key that the first start made', async () => {
    const first = await start()
    const [made] = printedKeys(first)
    await first.stop()
    const key = 'c'.repeat(40)
    const second = await start({ ANNALS_API_KEY: key })
    expectOk(await listWith(second, key))
    expectError(await listWith(second, made!), 401, 'unauthorized')
  })

  it('that is the key of another project is refused in a sentence', async () => {
    const env = { DATABASE_URL: database.url }
    const made = await runAnnals(['project', 'create', 'other', '--json'], env)
    const { token } = JSON.parse(made.stdout) as { token: string }
    const { code, stderr } = await runAnnals(['serve'], { ...env, PORT: '0', ANNALS_API_KEY: token })
    expect(code).toBe(1)
    expect(stderr).toMatch(/ANNALS_API_KEY is a key of another project/)
  })

  it('replaces no key where the port is taken', async () => {
    const running = await start()
    const [made] = printedKeys(running)
    const PORT = new URL(running.url).port
    const more = { DATABASE_URL: database.url, PORT, ANNALS_API_KEY: 'd'.repeat(40) }
    const { code, stderr } = await runAnnals(['serve'], more)
    expect([code, stderr]).toEqual([1, expect.stringContaining(`Port ${PORT} on 127.0.0.1 is taken`)])
    await running.stop()
    expectOk(await listWith(await start(), made!))
  })
})

describe('a start without an admin token', () => {
  it('serves no admin API', async () => {
    const node = await start({ ANNALS_ADMIN_TOKEN: '' })
    const caller = httpClient(node.url, ADMIN_TOKEN)
    expectError(await caller.request('GET', '/admin/v1/projects'), 404, 'route_not_found')
    const body = { name: 'none' }
    expectError(await caller.request('POST', '/admin/v1/projects', { body }), 404, 'route_not_found')
    caller.close()
  })
})
