import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import type { AnnalsServer } from '../harness/annals_process.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import type { Answer } from '../harness/http_client.ts'
import { lockWaits } from '../harness/lock_waits.ts'
import { useService } from '../harness/service.ts'
import { withConnection } from '../harness/sql.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'

const service = useService({ ANNALS_DATABASE_CONNECTIONS_MAX: '4', ANNALS_TOKEN_CACHE_MS: '4500' })
const event = { type: 'note', data: {} }
const PING = '/api/v1/ping'
const newGuess = () => randomBytes(32).toString('hex')

function guess(node?: AnnalsServer, headers: Record<string, string> = {}) {
  const client = service.rawClient(newGuess(), node)
  return client.request('GET', PING, { headers, newConnection: true }).finally(() => client.close())
}

/** Asks until the answer is 429, which comes within a second of asking too fast. */
async function askUntilLimited(ask: () => Promise<Answer>): Promise<Answer> {
  for (let asked = 0; asked < 1_000; asked += 1) {
    const answer = await ask()
    if (answer.status === 429) return answer
  }
  throw new Error('never limited')
}

describe('keys that are guessed', () => {
  it('are refused, all of them, while valid keys work, known ones and new ones', async () => {
    const known = await service.newClient()
    const { id } = expectOk(await known.createSession(), 201)
    const guesses = Array.from({ length: 200 }, () => guess())
    for (let n = 0; n < 5; n++) {
      const fresh = await service.newClient()
      expectOk(await fresh.createSession(), 201)
      expectOk(await known.appendEvent(id, event))
    }
    for (const answer of await Promise.all(guesses)) expectError(answer, 401, 'unauthorized')
    expect(expectOk(await known.listEvents(id)).items).toHaveLength(5)
  })

  it('keep no operator out, however many come from the same address', async () => {
    const admin = service.adminClient()
    await admin.request('GET', '/admin/v1/projects')
    const guesser = Array.from({ length: 64 }, () => service.rawClient(newGuess()))
    const guesses = guesser.flatMap((client) =>
      Array.from({ length: 100 }, () => client.request('GET', PING)),
    )
    const refused = Promise.all(guesses)
    let isOver = false
    void refused.finally(() => {
      isOver = true
    })
    for (let asked = 0; asked < 3 || !isOver; asked++) {
      expectOk(await admin.request('GET', '/admin/v1/projects'))
      await sleep(20)
    }
    for (const { status } of await refused) expect([401, 503]).toContain(status)
  })

  it.skipIf(reasonForNoOwnDatabase())(
    'take no connection that anything else needs, though each look-up takes very long',
    async () => {
      const api = await service.newClient()
      await withConnection(service.databaseUrl, async (connection) => {
        const { id } = expectOk(await api.createSession(), 201)
        await connection.query('BEGIN; LOCK TABLE api_keys')
        const guesses = Array.from({ length: 40 }, () => guess())
        await vi.waitFor(async () => expect(await lockWaits(service.databaseUrl, connection)).toBe(1))
        expect((await api.request('GET', '/ready')).status).toBe(200)
        expectOk(await api.appendEvent(id, event))
        expectOk(await api.getSession(id))
        expectOk(await api.listSessions())
        await connection.query('ROLLBACK')
        for (const answer of await Promise.all(guesses)) expectError(answer, 401, 'unauthorized')
      })
    },
  )
})

describe('a limit to what an address is refused', () => {
  it('stops guesses at that address unseen, and no key that is known', async () => {
    const node = await service.startNode({ ANNALS_ADDRESS_REFUSALS_PER_SECOND: '5' })
    const known = await service.newClient({ node })
    expectOk(await known.listSessions())
    const limited = await askUntilLimited(() => guess(node))
    expectError(limited, 429, 'rate_limited')
    expect(limited.headers['retry-after']).toBe('1')
    expectOk(await known.listSessions())
    const fresh = await service.newClient({ node })
    await vi.waitFor(async () => expectOk(await fresh.listSessions()), { timeout: 5_000, interval: 200 })
  })

  it('counts guessed URLs of assets like guessed keys', async () => {
    const node = await service.startNode({ ANNALS_ADDRESS_REFUSALS_PER_SECOND: '5' })
    const client = service.rawClient(undefined, node)
    await askUntilLimited(() => client.request('GET', `/assets/${'A'.repeat(136)}`))
  })

  it('is by the address that a trusted proxy names, and by nothing that another caller writes', async () => {
    const limit = { ANNALS_ADDRESS_REFUSALS_PER_SECOND: '2' }
    const behind = await service.startNode({ ...limit, ANNALS_TRUSTED_PROXIES: '10.0.0.0/8,127.0.0.1' })
    const open = await service.startNode(limit)
    let asked = 0
    const fromAnywhere = (node: AnnalsServer) => {
      asked += 1
      return guess(node, { 'X-Forwarded-For': `8.8.8.8, 203.0.113.${asked % 250}` })
    }
    for (let n = 0; n < 20; n++) expectError(await fromAnywhere(behind), 401, 'unauthorized')
    await askUntilLimited(() =>
      guess(behind, { 'X-Forwarded-For': `${asked++ % 250}.1.1.1, 2001:db8::${asked % 9}` }),
    )
    await askUntilLimited(() => fromAnywhere(open))
  })
})

describe('a limit to the requests of an address', () => {
  it('refuses those beyond it, whatever their key, and none that asks how the service is', async () => {
    const node = await service.startNode({ ANNALS_ADDRESS_RATE_LIMIT_PER_SECOND: '5' })
    const { token } = await service.newProject()
    const client = service.rawClient(token, node)
    expectError(await askUntilLimited(() => client.request('GET', PING)), 429, 'rate_limited')
    for (let n = 0; n < 10; n++) {
      expect((await client.request('GET', '/health')).status).toBe(200)
      expect((await client.request('GET', '/ready')).status).toBe(200)
    }
    await vi.waitFor(async () => expect((await client.request('GET', PING)).status).toBe(200), {
      timeout: 5_000,
      interval: 200,
    })
  })

  it('cannot be told to trust what is no address', async () => {
    await expect(service.startNode({ ANNALS_TRUSTED_PROXIES: '10.0.0.0/8,999.1.1.1' })).rejects.toThrow(
      'ANNALS_TRUSTED_PROXIES has an invalid IP address: 999.1.1.1. Correct it and start again.',
    )
  })
})
