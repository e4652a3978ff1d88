import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { describe, expect, it, vi } from 'vitest'
import type { AnnalsServer } from '../harness/annals_process.ts'
import { expectOk } from '../harness/expectations.ts'
import { whileSessionIsHeld } from '../harness/held_session.ts'
import type { Answer } from '../harness/http_client.ts'
import { metricSamples } from '../harness/metric_samples.ts'
import { rawConnection } from '../harness/raw_connection.ts'
import { useService } from '../harness/service.ts'

/*
 * A quiet project beside one that sends all it can. What is promised is an order, so no time is measured: the tests hold
 * what both projects need, let go, and look at who is answered before whom.
 */

const FLUSHES_MAX = 4
const CONNECTIONS_MAX = 4
const SESSIONS = 24
/** Appends of the loud project, with ten entries each: 50 of them fill a commit. */
const CROWD = 240
const A_COMMIT = 50
const body = { entries: Array.from({ length: 10 }, () => ({ kind: 'event', type: 'note', data: {} })) }

const service = useService({
  ANNALS_FLUSHES_MAX: String(FLUSHES_MAX),
  ANNALS_DATABASE_CONNECTIONS_MAX: String(CONNECTIONS_MAX),
  ANNALS_DATABASE_WAIT_MS_MAX: '60000',
  ANNALS_COMMIT_MS_MAX: '60000',
})

interface Loud {
  /** What it was answered so far, in the order of the answers; others may add theirs. */
  answered: string[]
  send(method: string, path: string, body: object): void
  /** How many statements of it the database holds back. */
  held(statements: number): Promise<void>
  release(): Promise<void>
}

/** A project whose appends are all under way at a node, while the database holds back every one that it gets. */
async function besideLoudProject(node: AnnalsServer, action: (loud: Loud, ids: string[]) => Promise<void>) {
  const { id: project_id, token } = await service.newProject()
  // A client has 128 connections.
  const clients = await Promise.all([1, 2, 3].map(() => service.newClient({ token, node })))
  const created = await Promise.all(Array.from({ length: SESSIONS }, () => clients[0]!.createSession({})))
  const ids = created.map((answer) => expectOk(answer, 201).id)
  const answered: string[] = []
  const sent: Promise<Answer>[] = []
  const send: Loud['send'] = (method, path, body) => {
    const answer = clients[sent.length % clients.length]!.request(method, `/api/v1/session/${path}`, { body })
    sent.push(answer)
    answer.then(
      () => answered.push('loud'),
      () => {},
    )
  }
  await whileSessionIsHeld(service.databaseUrl, project_id, ids, async ({ waiting, release }) => {
    send('POST', `${ids[0]}/entries`, body)
    await waiting()
    const others = ids.slice(1)
    for (let n = 0; n < CROWD; n += 1)
      send('POST', `${others[Math.floor((n / CROWD) * others.length)]}/entries`, body)
    await action({ answered, send, held: waiting, release }, ids)
    for (const answer of await Promise.all(sent)) expect(answer.status, answer.text).toBeLessThan(300)
  })
}

/** Waits until so many appends at a node wait for their commit to begin. */
function untilQueued(node: AnnalsServer, count: number): Promise<void> {
  const client = service.rawClient(undefined, node)
  const queued = async () => {
    const { text } = await client.request('GET', '/metrics')
    return metricSamples(text).get('annals_append_queue_requests')
  }
  return vi.waitFor(async () => expect(await queued()).toBe(count), { timeout: 40_000 })
}

describe('a quiet project beside one that sends all it can', () => {
  it('is served while the database holds back all that the other one has under way', async () => {
    // Its key is one that the node has never seen.
    const quiet = await service.newClient()
    await besideLoudProject(service.node, async ({ answered, send, held, release }, [id]) => {
      await untilQueued(service.node, CROWD - A_COMMIT)
      for (let n = 0; n < 2 * CONNECTIONS_MAX; n += 1) send('PATCH', `${id}/configs`, { configs: { n } })
      // Half of the commits that may be in flight are its own, and half of the connections for all the rest.
      await held(FLUSHES_MAX / 2 + CONNECTIONS_MAX / 2)
      const own = expectOk(await quiet.createSession({ configs: { agent: 'a' } }), 201)
      for (const seq of [1, 2, 3])
        expect(expectOk(await quiet.appendEvent(own.id, { type: 'note', data: {} })).seq).toBe(seq)
      expect(expectOk(await quiet.listEvents(own.id)).items).toHaveLength(3)
      expect(expectOk(await quiet.listSessions({ filter_by_configs: '{"agent":"a"}' })).items).toHaveLength(1)
      expect(answered).toEqual([])
      await release()
    })
  })

  it('waits for the commit in flight and one more at most, if there is one at a time', async () => {
    const node = await service.startNode({ ANNALS_FLUSHES_MAX: '1' })
    const quiet = await service.newClient({ node })
    const own = expectOk(await quiet.createSession({}), 201)
    await besideLoudProject(node, async ({ answered, release }) => {
      await untilQueued(node, CROWD)
      const append = quiet.appendEvent(own.id, { type: 'note', data: {} })
      const noted = append.then(() => answered.push('quiet'))
      await untilQueued(node, CROWD + 1)
      await release()
      expectOk(await append)
      await noted
      // What was in flight, and no more than one commit of the others' queue.
      expect(answered.indexOf('quiet')).toBeLessThanOrEqual(1 + A_COMMIT)
    })
  })

  it.runIf(process.platform === 'linux')(
    'is answered among the first when many requests of the other one have arrived before its own',
    async () => {
      const node = await service.startNode()
      const answered: string[] = []
      const connect = async (name: string, token: string) => {
        const { socket } = await rawConnection(node.url)
        const request = `GET /api/v1/ping HTTP/1.1\r\nHost: annals\r\nAuthorization: Bearer ${token}\r\n\r\n`
        const ask = () => new Promise((resolve) => socket.write(request, resolve))
        void ask()
        await once(socket, 'data')
        socket.on('data', () => answered.push(name))
        return { socket, ask }
      }
      const [loud, quiet] = await Promise.all([service.newProject(), service.newProject()])
      const many = await Promise.all(Array.from({ length: 200 }, () => connect('loud', loud.token)))
      const one = await connect('quiet', quiet.token)
      const all = [...many, one]
      node.child.kill('SIGSTOP')
      await vi.waitFor(() => expect(readFileSync(`/proc/${node.pid}/stat`, 'utf8')).toMatch(/\) T /))
      for (const { ask } of all) await ask()
      node.child.kill('SIGCONT')
      await vi.waitFor(() => expect(answered).toHaveLength(all.length), { timeout: 15_000 })
      for (const { socket } of all) socket.destroy()
      // A turn of the event loop takes 16 requests in, and projects take turns in the next.
      expect(answered.indexOf('quiet')).toBeLessThan(2 * 16)
    },
  )
})
