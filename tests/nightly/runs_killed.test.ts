import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { useService } from '../harness/service.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'
import { walkPages } from '../harness/walk_pages.ts'

const SESSIONS = 8
const WORKERS = 20
/** docs/reliability.md says how to send more. */
const INPUTS = Number(process.env.INPUTS ?? (IS_THOROUGH ? 400 : 160))
/** Until all are in the log, at most. */
const APPLIED_MS = 60_000 + 20 * INPUTS
const TTL_MS = 2_000
const HOUR_MS = 3_600_000

const service = useService()

interface Claimed {
  session_id: string
  fence: number
  inputs: Array<{ id: string }>
}

/** Whether a call failed because its node was killed, so that nobody knows what it did. */
const isLost = (error: unknown) => (error as NodeJS.ErrnoException).code !== undefined

/** Claims, applies, says so and releases until there is nothing left to do, or its node dies. */
async function work(
  client: ApiClient,
  owner: string,
  applied: string[],
  isDone: () => boolean,
): Promise<void> {
  while (!isDone()) {
    try {
      const body = { owner, ttl_ms: TTL_MS, wait_ms: 200, max: 2 }
      const claimed = await client.request<{ items: Claimed[] }>('POST', '/api/v1/work/claim', { body })
      for (const { session_id, fence, inputs } of expectOk(claimed).items) {
        const at = `/api/v1/session/${session_id}`
        const headers = { 'Annals-Fence': String(fence) }
        const apply = inputs.map(({ id }) => id)
        const answer = await client.request('POST', `${at}/entries`, { body: { apply }, headers })
        if (answer.status === 201) applied.push(...apply)
        else expect(['fenced', 'not_pending']).toContain(answer.json.error)
        await client.request('DELETE', `${at}/lease`, { query: { fence } })
      }
    } catch (error) {
      if (!isLost(error)) throw error
      return
    }
  }
}

it('input is in the log once and in order, whichever node is killed at which step of which worker', {
  timeout: 5 * APPLIED_MS,
}, async () => {
  const { token } = await service.newProject()
  const api = await service.newClient({ token })
  const sessions: string[] = []
  for (let n = 0; n < SESSIONS; n++) sessions.push(expectOk(await api.createSession({}), 201).id)
  let isDone = false
  const doomed = [await service.startNode(), await service.startNode()]
  const workers: Promise<void>[] = []
  const applied: string[] = []
  for (let n = 0; n < WORKERS; n++) {
    const node = doomed[n % 4]
    const client = await service.newClient({ token, ...(node && { node }) })
    workers.push(work(client, `w${n}`, applied, () => isDone))
  }
  const sent = new Map<string, string[]>(sessions.map((id) => [id, []]))
  for (let n = 0; n < INPUTS; n++) {
    const id = randomUUID()
    const session_id = sessions[n % SESSIONS]!
    const body = { id, mode: 'queue', kind: 'event', type: 'input', data: { n } }
    expectOk(await api.request('POST', `/api/v1/session/${session_id}/inbox`, { body }), 201)
    sent.get(session_id)!.push(id)
    if (n === Math.floor(INPUTS / 3)) await doomed[0]!.kill()
    if (n === Math.floor(INPUTS / 2)) await doomed[1]!.kill()
  }
  const logs = () =>
    Promise.all(sessions.map((id) => walkPages((cursor) => api.listEvents(id, { limit: 200, cursor }))))
  for (const deadline = performance.now() + APPLIED_MS; ; await sleep(100)) {
    const stored = (await logs()).reduce((sum, { length }) => sum + length, 0)
    if (stored >= INPUTS || performance.now() > deadline) break
  }
  isDone = true
  await Promise.all(workers)
  const stored = (await logs()).map((events) => events.map(({ id }) => id))
  expect(stored).toEqual(sessions.map((id) => sent.get(id)))
  // No two workers were told that they had applied the same input.
  expect(new Set(applied).size).toBe(applied.length)
})

/** Has a process take the time for another one, as where a machine's clock is wrong. */
const clockOffBy = (ms: number) =>
  `data:text/javascript,${encodeURIComponent(`
const { now } = Date
Date.now = () => now() + ${ms}
globalThis.Date = new Proxy(Date, {
  construct: (real, given, target) => Reflect.construct(real, given.length > 0 ? given : [real.now()], target),
})`)}`

/** Holds a session's lease for as long as it lives. */
const LEASEHOLDER = `
import { Annals } from '@annals/client'
const [url, token, session, owner] = process.argv.slice(1)
const annals = new Annals({ url, token })
await annals.runs.withLease(session, { owner, ttl_ms: ${TTL_MS}, wait_ms: 30_000 }, ({ fence, signal }) => {
  process.send({ fence, now: new Date().getTime() })
  return new Promise((resolve) => signal.addEventListener('abort', resolve))
})
`

it.each([
  ['ahead', 'behind', HOUR_MS],
  ['behind', 'ahead', -HOUR_MS],
])(
  'when a holder is killed, another runner has the lease once its time is over, though the clocks of the one and its node are an hour %s and those of the other %s',
  { retry: 2 },
  async (_one, _other, off_ms) => {
    const { token } = await service.newProject()
    const nodeOff = (ms: number) => service.startNode({ NODE_OPTIONS: `--import=${clockOffBy(ms)}` })
    const nodes = [await nodeOff(off_ms), await nodeOff(-off_ms)] as const
    const api = await service.newClient({ token })
    const { id } = expectOk(await api.createSession({}), 201)
    const children: ChildProcess[] = []
    const hold = async (owner: string, { url }: { url: string }, ms: number) => {
      const args = [
        `--import=${clockOffBy(ms)}`,
        '--input-type=module',
        '-e',
        LEASEHOLDER,
        url,
        token,
        id,
        owner,
      ]
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
      children.push(child)
      const [held] = (await once(child, 'message')) as [{ fence: number; now: number }]
      expect(Math.abs(held.now - Date.now() - ms)).toBeLessThan(HOUR_MS / 2)
      return { child, ...held }
    }
    const run = async () =>
      (
        expectOk(await api.getSession(id)) as {
          run?: { owner: string; expires_at: string; taken_at: string }
        }
      ).run!
    try {
      const first = await hold('a', nodes[0], off_ms)
      const { expires_at } = await run()
      // It renews the lease.
      await vi.waitFor(async () => expect((await run()).expires_at).not.toBe(expires_at))
      const waiting = hold('b', nodes[1], -off_ms)
      first.child.kill('SIGKILL')
      await once(first.child, 'exit')
      const ended = await run()
      expect(ended.owner).toBe('a')
      const second = await waiting
      expect(second.fence).toBeGreaterThan(first.fence)
      const taken = await run()
      expect(taken.owner).toBe('b')
      // By the database's clock: the next lease began when the first was over, and less than a second later.
      const late_ms = Date.parse(taken.taken_at) - Date.parse(ended.expires_at)
      expect(late_ms).toBeGreaterThanOrEqual(0)
      expect(late_ms).toBeLessThan(1_000)
    } finally {
      for (const child of children) child.kill('SIGKILL')
    }
  },
)

/** Writes under a fence until so many writes were refused, and prints how many were accepted before and after the first of these. */
const HOLDER = `
import { Annals } from '@annals/client'
const [url, token, session, fence, late] = process.argv.slice(1)
const annals = new Annals({ url, token, retries: 0 })
let [before, after, refused] = [0, 0, 0]
const write = async () => {
  while (refused < Number(late))
    try {
      await annals.sessions.append(session, { type: 'write', data: { fence: Number(fence) } }, { fence: Number(fence) })
      refused === 0 ? (before += 1) : (after += 1)
      if (before === 20) process.stderr.write('writes')
    } catch (error) {
      if (error.error === 'fenced') refused += 1
      else if (error.status !== 0 && error.status !== undefined) throw error
    }
}
await Promise.all(Array.from({ length: 8 }, write))
console.log(JSON.stringify({ before, after, refused }))
`

it('a holder that was stopped beyond its time and goes on gets nothing more into the log', async () => {
  const { token } = await service.newProject()
  const api = await service.newClient({ token })
  const { id } = expectOk(await api.createSession({}), 201)
  const at = `/api/v1/session/${id}`
  const take = async (owner: string) => {
    const body = { owner, ttl_ms: 1_000, wait_ms: 30_000 }
    return expectOk(await api.request<{ fence: number }>('POST', `${at}/lease`, { body })).fence
  }
  // docs/reliability.md says how to send more.
  const late = Number(process.env.LATE_WRITES ?? (IS_THOROUGH ? 1_000 : 100))
  const first = await take('a')
  const asked = [service.node.url, token, id, String(first), String(late)]
  const holder = spawn(process.execPath, ['--input-type=module', '-e', HOLDER, ...asked])
  const printed = text(holder.stdout)
  try {
    await once(holder.stderr, 'data')
    holder.kill('SIGSTOP')
    const second = await take('b')
    const write = () =>
      api.request('POST', `${at}/events`, {
        body: { type: 'write', data: { fence: second } },
        headers: { 'Annals-Fence': String(second) },
      })
    expectOk(await write())
    holder.kill('SIGCONT')
    for (let n = 0; n < 50; n += 1) expectOk(await write())
    // What it had sent when it was stopped was accepted before the lease was taken, or not at all.
    expect(JSON.parse(await printed)).toMatchObject({ after: 0, refused: expect.any(Number) })
    const log = await walkPages((cursor) => api.listEvents(id, { limit: 200, cursor }))
    const fences = log.map(({ data }) => (data as { fence: number }).fence)
    const changes = fences.filter((fence, n) => fence !== fences[n - 1])
    expect(changes).toEqual([first, second])
  } finally {
    holder.kill('SIGKILL')
  }
})

/** Takes the lease once and writes under its fence; one that stops does so amid its writes, and goes on with late ones. */
const RUNNER = `
import { Annals } from '@annals/client'
const [url, token, session, stops, late] = process.argv.slice(1)
const annals = new Annals({ url, token })
let lease
while (!lease)
  lease = await annals.runs.takeLease(session, { owner: String(process.pid), ttl_ms: stops === 'true' ? 1_000 : 60_000, wait_ms: 30_000 }).catch((error) => {
    if (error.error !== 'leased') throw error
  })
const { fence } = lease
let [accepted, refused] = [0, 0]
const write = () =>
  annals.sessions.append(session, { type: 'write', data: { fence } }, { fence }).then(
    () => (accepted += 1),
    (error) => {
      if (error.error !== 'fenced') throw error
      refused += 1
    },
  )
for (let n = 0; n < 3; n += 1) await write()
const before = accepted
if (stops === 'true') {
  process.send({ fence })
  process.kill(process.pid, 'SIGSTOP')
  await Promise.all(Array.from({ length: Number(late) }, write))
} else await annals.runs.releaseLease(session, fence)
process.send({ before, after: accepted - before, refused })
process.disconnect()
`

it('of many processes on one session each has the lease for itself, and those that were stopped write nothing late', async () => {
  const { token } = await service.newProject()
  const api = await service.newClient({ token })
  const { id } = expectOk(await api.createSession({}), 201)
  const at = `/api/v1/session/${id}`
  // docs/reliability.md says how to have more.
  const count = Number(process.env.RUNNERS ?? 8)
  const late = 20
  const isStopped = (n: number) => n % 4 === 0
  /** Moves the fence on, and writes under it. */
  const takeOver = async (owner: string) => {
    for (;;) {
      const body = { owner, ttl_ms: 60_000, wait_ms: 30_000 }
      const taken = await api.request<{ fence: number }>('POST', `${at}/lease`, { body })
      if (taken.status === 409) continue
      const { fence } = expectOk(taken)
      const headers = { 'Annals-Fence': String(fence) }
      expectOk(
        await api.request('POST', `${at}/events`, { body: { type: 'write', data: { fence } }, headers }),
      )
      await api.request('DELETE', `${at}/lease`, { query: { fence } })
      return
    }
  }
  const children: ChildProcess[] = []
  const runOne = async (n: number) => {
    const stops = isStopped(n)
    const asked = [service.node.url, token, id, String(stops), String(late)]
    const child = spawn(process.execPath, ['--input-type=module', '-e', RUNNER, ...asked], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    children.push(child)
    const said: Array<Record<string, number>> = []
    const ended = once(child, 'exit')
    let takenOver: Promise<void> | undefined
    child.on('message', (message) => {
      said.push(message as Record<string, number>)
      if (stops && said.length === 1) takenOver = takeOver(`after ${n}`).finally(() => child.kill('SIGCONT'))
    })
    expect(await ended).toEqual([0, null])
    await takenOver
    return said.at(-1) as { before: number; after: number; refused: number }
  }
  try {
    const ends = await Promise.all(Array.from({ length: count }, (_, n) => runOne(n)))
    for (const [n, { before, after, refused }] of ends.entries()) {
      expect(after).toBe(0)
      expect(refused).toBe(3 - before + (isStopped(n) ? late : 0))
    }
    const log = await walkPages((cursor) => api.listEvents(id, { limit: 200, cursor }))
    const fences = log.map(({ data }) => (data as { fence: number }).fence)
    // Each fence's writes stand together, and none stands after those of a later one.
    expect(fences).toEqual([...fences].sort((a, b) => a - b))
    const wrote = ends.filter(({ before }) => before > 0)
    expect(new Set(fences).size).toBe(wrote.length + Math.ceil(count / 4))
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
})
