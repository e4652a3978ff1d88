import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSecureContext, TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { type AnnalsServer, runAnnals, startServer } from '../harness/annals_process.ts'
import { type ApiClient, apiClient } from '../harness/api_client.ts'
import { runCommand } from '../harness/command_process.ts'
import { type DatabaseProxy, proxyDatabase } from '../harness/database_proxy.ts'
import { withDatabaseHost, withDatabaseName } from '../harness/database_url.ts'
import { openTail } from '../harness/event_stream.ts'
import { expectOk } from '../harness/expectations.ts'
import { type OwnServer, startOwnServer } from '../harness/own_server.ts'
import { expectOrderlyEnds } from '../harness/service.ts'
import { execute } from '../harness/sql.ts'

const KEY = 'key-of-the-tests-of-several-hosts-0123456789'
const PATIENTLY = { timeout: 60_000, interval: 100 }
const OPENSSL = '/usr/bin/openssl'
const note = { type: 'note', data: {} }

/** Two servers with the same data: one that can be written, and a standby. */
let primary: OwnServer
let standby: OwnServer
let sessionId: string
const nodes: AnnalsServer[] = []
const clients: ApiClient[] = []
const proxies: DatabaseProxy[] = []

async function startNode(databaseUrl: string, env: Record<string, string> = {}): Promise<ApiClient> {
  const node = await startServer({ DATABASE_URL: databaseUrl, ANNALS_API_KEY: KEY, ...env })
  nodes.push(node)
  const client = apiClient(node.url, KEY)
  clients.push(client)
  return client
}

/** A service is a process of its own; other commands share one. */
const run = (args: string[], env: Record<string, string>) =>
  (args[0] === 'serve' ? runAnnals : runCommand)(args, env)

async function stopNodes(): Promise<void> {
  for (const client of clients.splice(0)) client.close()
  expectOrderlyEnds(await Promise.all(nodes.splice(0).map((node) => node.stop())))
}

beforeAll(async () => {
  primary = await startOwnServer()
  const api = await startNode(primary.url)
  sessionId = expectOk(await api.createSession({}), 201).id
  await stopNodes()
  await primary.stop()
  standby = await startOwnServer({ from: primary.data, standby: true })
  await primary.start()
})
afterEach(stopNodes)
afterAll(async () => {
  await Promise.all(proxies.map((proxy) => proxy.close()))
  await Promise.all([primary?.remove(), standby?.remove()])
})

/** A URL with both servers, the standby first, each behind a proxy. */
async function bothHosts(): Promise<{ url: string; front: DatabaseProxy[] }> {
  const front = [await proxyDatabase(standby.url), await proxyDatabase(primary.url)]
  proxies.push(...front)
  const [first, second] = front.map(({ url }) => new URL(url))
  return {
    url: `postgresql://${first!.username}@${first!.host},${second!.host}${first!.pathname}?target_session_attrs=read-write`,
    front,
  }
}

describe('a server that cannot take what a start writes', () => {
  const starts = (...args: string[]) => args
  it.each([starts('serve'), starts('migrate'), starts('serve', '--workers', '2')])(
    'is named by annals %s: a standby, with exit code 5',
    async (...args) => {
      const { code, stderr } = await run(args, { DATABASE_URL: standby.url, PORT: '0' })
      expect(stderr).toMatch(/^annals: The database server is a standby and cannot be written\./m)
      expect(stderr).not.toContain('    at ')
      expect(code).toBe(5)
    },
  )

  it.each([
    [
      'is read-only',
      'ALTER DATABASE hostile SET default_transaction_read_only = on',
      /The database is read-only/,
      5,
    ],
    [
      'has no schema',
      "ALTER DATABASE hostile SET search_path = 'nowhere'",
      /No schema in search_path \(nowhere\)/,
      1,
    ],
    ['is not UTF8', '', /The database has the encoding LATIN1/, 1],
  ])('is named: one that %s', async (_what, change, sentence, exitCode) => {
    const encoding = change ? 'UTF8' : 'LATIN1'
    await execute(primary.url, `CREATE DATABASE hostile TEMPLATE template0 ENCODING '${encoding}' LOCALE 'C'`)
    try {
      if (change) await execute(primary.url, change)
      const env = { DATABASE_URL: withDatabaseName(primary.url, 'hostile'), PORT: '0' }
      for (const command of ['migrate', 'serve']) {
        const { code, stderr } = await run([command], env)
        expect(stderr).toMatch(sentence)
        expect(stderr).not.toContain('    at ')
        expect(code).toBe(exitCode)
      }
      const { stdout } = await run(['doctor'], env)
      expect(stdout).toMatch(/read-only|no schema in search_path|encoding is LATIN1/)
    } finally {
      await execute(primary.url, 'DROP DATABASE hostile WITH (FORCE)')
    }
  })

  it('is told apart from one that refuses the user: 5 if it is away, 1 if it says no', async () => {
    const away = await runAnnals(['serve'], {
      DATABASE_URL: 'postgresql://ann@127.0.0.1:1/annals',
      PORT: '0',
    })
    expect(away).toMatchObject({ code: 5 })
    expect(away.stderr).toMatch(/^annals: The database cannot be reached \(/m)
    const missing = { DATABASE_URL: withDatabaseName(primary.url, 'missing'), PORT: '0' }
    expect(await runAnnals(['serve'], missing)).toMatchObject({ code: 1 })
  })
})

it('a standby is backed up, exported and verified, for which it only has to be read', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'annals-standby-'))
  const env = { DATABASE_URL: standby.url }
  const backup = join(folder, 'annals.backup')
  for (const args of [['backup', backup], ['export', '--output', join(folder, 'all.ndjson')], ['verify']]) {
    const { code, stderr } = await run(args, env)
    expect(code, stderr).toBe(0)
  }
  expect(await readFile(backup, 'utf8')).toContain(sessionId)
  await rm(folder, { recursive: true })
})

describe('a URL with several hosts', () => {
  it('leads to the one that can be written, also what listens', async () => {
    const { url } = await bothHosts()
    const [writer, reader] = [await startNode(url), await startNode(url, { ANNALS_FEED_POLL_MS: '60000' })]
    const tail = await openTail(nodes[1]!.url, KEY, sessionId, {})
    expectOk(await writer.appendEvent(sessionId, note))
    await tail.received(1)
    expectOk(await writer.appendEvent(sessionId, note))
    await tail.received(2)
    tail.close()
    expectOk(await reader.getSession(sessionId))
  })

  it('leads to the other one after a failover, without a restart', async () => {
    const { url, front } = await bothHosts()
    const api = await startNode(url, { ANNALS_DATABASE_WAIT_MS_MAX: '3000' })
    expectOk(await api.createSession({}), 201)
    await front[1]!.refuse()
    await execute(standby.url, 'SELECT pg_promote()')
    await vi.waitFor(async () => {
      expectOk(await api.createSession({}), 201)
      expectOk(await api.appendEvent(sessionId, note))
      expect((await api.request('GET', '/ready')).status).toBe(200)
    }, PATIENTLY)
  })
})

describe.skipIf(!existsSync(OPENSSL))('TLS to the database', () => {
  it('encrypts with require, verifies with verify-full, and annals doctor says which it is', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'annals-tls-'))
    const front = await startTlsFront(primary.url, folder)
    try {
      const { username, pathname } = new URL(withDatabaseHost(primary.url, 'localhost', 1))
      const diagnose = async (parameters: string) => {
        const DATABASE_URL = `postgresql://${username}@localhost:${front.port}${pathname}?${parameters}`
        const { stdout } = await run(['doctor', '--json'], { DATABASE_URL })
        const { checks } = JSON.parse(stdout) as { checks: Record<'check' | 'state' | 'found', string>[] }
        const { state, found } = checks.find(({ check }) => check === 'connection')!
        return `${state}: ${found}`
      }
      expect(await diagnose('sslmode=require')).toBe(
        'warning: the connection is encrypted, but nothing verifies the server',
      )
      expect(await diagnose('sslmode=verify-full')).toMatch(/^failure: no connection.*certificate/)
      expect(await diagnose(`sslmode=verify-full&sslrootcert=${front.certificate}`)).toBe(
        'ok: the database answers; the connection is encrypted, and the server is verified',
      )
      expect(await diagnose('')).toBe('ok: the database answers; it is on this machine')
    } finally {
      await front.close()
      await rm(folder, { recursive: true, force: true })
    }
  })
})

/** A server that takes TLS, with a certificate that no authority has signed, and passes on what it decrypts. */
async function startTlsFront(databaseUrl: string, folder: string) {
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
  const about = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-days', '2']
  await promisify(execFile)(OPENSSL, [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    key,
    '-out',
    certificate,
    ...about,
  ])
  const secureContext = createSecureContext({ key: await readFile(key), cert: await readFile(certificate) })
  const behind = await proxyDatabase(databaseUrl)
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    sockets.add(near)
    near.on('error', () => {})
    near.once('data', (request) => {
      const far = connect(Number(new URL(behind.url).port), '127.0.0.1')
      sockets.add(far)
      far.on('error', () => {})
      const asksForTls = request.length === 8 && request.readInt32BE(4) === 80_877_103
      if (asksForTls) near.write('S')
      const open = asksForTls ? new TLSSocket(near, { isServer: true, secureContext }) : near
      open.on('error', () => near.destroy())
      if (!asksForTls) far.write(request)
      open.pipe(far).pipe(open)
    })
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    certificate,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await behind.close()
    },
  }
}
