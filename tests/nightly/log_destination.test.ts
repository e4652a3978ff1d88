import { execFileSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { type AnnalsServer, startServer } from '../harness/annals_process.ts'
import { type HttpClient, httpClient } from '../harness/http_client.ts'
import { expectOrderlyEnds } from '../harness/service.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'

const MEGABYTE = 1_048_576

let database: TestDatabase
let nodes: AnnalsServer[] = []
let clients: HttpClient[] = []
let files: number[] = []

beforeAll(async () => {
  database = await createTestDatabase()
})
afterEach(async () => {
  for (const client of clients) client.close()
  const ends = await Promise.all(nodes.map((node) => node.stop()))
  for (const file of files) closeSync(file)
  nodes = []
  clients = []
  files = []
  expectOrderlyEnds(ends)
})
afterAll(() => database.drop())

async function start(stderr?: number, args: string[] = []) {
  if (stderr !== undefined) files.push(stderr)
  const node = await startServer({ DATABASE_URL: database.url }, args, { ...(stderr && { stderr }) })
  nodes.push(node)
  const client = httpClient(node.url)
  clients.push(client)
  return { node, client }
}

// Each line of the log has it: the longest that is taken.
const HEADERS = { 'X-Request-Id': 'x'.repeat(128) }

async function serves(client: HttpClient, requests = 1): Promise<void> {
  for (let left = requests; left > 0; left -= 20)
    await Promise.all(
      Array.from({ length: Math.min(left, 20) }, async () => {
        const { status } = await client.request('GET', '/api/v1/ping', { headers: HEADERS })
        expect(status).toBe(401)
      }),
    )
}

async function lostLines(client: HttpClient): Promise<number> {
  const { text } = await client.request('GET', '/metrics')
  return Number(/^annals_log_lines_lost_total (\d+)$/m.exec(text)![1])
}

describe('a service whose log cannot be written', () => {
  it('starts, serves, counts the lines and stops, when its standard error is full', async () => {
    const { client } = await start(openSync('/dev/full', 'w'))
    await serves(client, 50)
    await vi.waitFor(async () => expect(await lostLines(client)).toBeGreaterThan(49), { timeout: 10_000 })
  })

  it('does so with workers', async () => {
    const { client } = await start(openSync('/dev/full', 'w'), ['--workers', '2'])
    await serves(client, 50)
    await vi.waitFor(async () => expect(await lostLines(client)).toBeGreaterThan(49), { timeout: 10_000 })
  })

  it('goes on when its disk has room again, and says how many lines are missing', async (context) => {
    const directory = await mkdtemp(join(tmpdir(), 'annals-test-'))
    try {
      if (!canMount(directory)) return context.skip('mounting a small file system needs root')
      const path = join(directory, 'annals.log')
      const { client } = await start(openSync(path, 'a'))
      await serves(client, 20)
      await fill(join(directory, 'other'))
      await vi.waitFor(
        async () => {
          await serves(client, 100)
          expect(await lostLines(client)).toBeGreaterThan(0)
        },
        { timeout: 20_000 },
      )
      await truncate(join(directory, 'other'))
      const told = await vi.waitFor(
        async () => {
          await serves(client)
          const lines = (await readFile(path, 'utf8')).split('\n').flatMap(parsed)
          const line = lines.find(({ msg }) => /^log lines were lost/.test(String(msg)))
          expect(line).toBeDefined()
          return line!
        },
        { timeout: 20_000 },
      )
      expect(told.lines).toBeGreaterThan(0)
      await Promise.all(nodes.splice(0).map((node) => node.stop()))
    } finally {
      for (const file of files.splice(0)) closeSync(file)
      unmount(directory)
      await rm(directory, { recursive: true, force: true })
    }
  })

  it('serves while nobody reads its log, and goes on with whole lines for whoever reads again', async () => {
    const { node, client } = await start()
    node.child.stderr!.pause()
    // More than a pipe holds: a write beyond that would wait for the reader.
    await serves(client, 2_000)
    expect(node.logLines.length).toBeLessThan(1_000)
    node.child.stderr!.resume()
    await vi.waitFor(() => expect(node.logLines.length).toBeGreaterThan(1_999), { timeout: 10_000 })
    for (const line of node.logLines.filter((line) => line.startsWith('{')))
      expect(() => JSON.parse(line)).not.toThrow()
  })

  it('serves when whoever started it closes both its outputs', async () => {
    const { node, client } = await start()
    node.child.stdout!.destroy()
    node.child.stderr!.destroy()
    await serves(client, 50)
    await vi.waitFor(async () => expect(await lostLines(client)).toBeGreaterThan(0), { timeout: 10_000 })
  })
})

/** The line as an object, if it is one: what the full disk cut is none. */
function parsed(line: string): Record<string, unknown>[] {
  try {
    return [JSON.parse(line)]
  } catch {
    return []
  }
}

function canMount(directory: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${MEGABYTE}`, 'tmpfs', directory], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function unmount(directory: string): void {
  try {
    execFileSync('umount', ['--lazy', directory], { stdio: 'ignore' })
  } catch {
    // It was never mounted.
  }
}

/** Writes until the file system is full. */
async function fill(path: string): Promise<void> {
  const written = await writeFile(path, Buffer.alloc(2 * MEGABYTE)).then(
    () => 'all',
    (error: NodeJS.ErrnoException) => error.code,
  )
  expect(written).toBe('ENOSPC')
}
