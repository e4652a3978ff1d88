import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Annals, type AnnalsError } from '../../packages/client/dist/index.js'
import type { AnnalsServer } from '../harness/annals_process.ts'
import { type Project, useService } from '../harness/service.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'
import { issueToken } from '../harness/tokens.ts'

/** Each takes a second of a processor, so only the gate makes all of them. */
const RESTARTS = IS_THOROUGH ? 10 : 3
const event = { type: 'note', data: {} }

const service = useService()
let project: Project
let annals: Annals
let sessionId: string

beforeAll(async () => {
  project = await service.newProject()
  annals = new Annals({ url: service.node.url, token: project.token })
})
beforeEach(async () => {
  sessionId = (await annals.sessions.create()).id
})

describe('a tail', () => {
  it('returns what is there and what comes, from every node, with the items of the timeline', async () => {
    const node = await service.startNode()
    const other = new Annals({ url: node.url, token: project.token })
    for (let n = 0; n < 5; n += 1) await annals.sessions.append(sessionId, event)
    const seen: unknown[] = []
    for await (const item of annals.sessions.tail(sessionId, { after: 2 })) {
      seen.push(item)
      if (item.seq === 5)
        await other.sessions.appendMessage(sessionId, { blob: { role: 'user', content: '😀' } })
      if (item.seq === 6) break
    }
    const { items } = await annals.sessions.timeline(sessionId, { after_seq: 2 }).page()
    expect(seen).toEqual(items)
  })

  it('returns one kind or type only, where that is asked for', async () => {
    const blob = { role: 'user', content: 'Hi' }
    const entries = Array.from({ length: 6 }, (_, n) =>
      n % 2 ? { kind: 'event' as const, type: `t${n}`, data: {} } : { kind: 'message' as const, blob },
    )
    await annals.sessions.appendBatch(sessionId, entries)
    const take = async (filter: { kind?: 'message'; type?: string }, last: number) => {
      const seqs: number[] = []
      for await (const { seq } of annals.sessions.tail(sessionId, filter)) {
        seqs.push(seq)
        if (seq === last) break
      }
      return seqs
    }
    expect(await take({ kind: 'message' }, 5)).toEqual([1, 3, 5])
    expect(await take({ type: 't3' }, 4)).toEqual([4])
  })

  it('passes on entries of any size', async () => {
    const text = 'ä😀'.repeat(100_000)
    await annals.sessions.append(sessionId, { type: 'big', data: { text } })
    for await (const item of annals.sessions.tail(sessionId)) {
      expect(item).toMatchObject({ data: { text } })
      break
    }
  })

  it('ends with an error when the session goes or the token is revoked', async () => {
    const { token, id } = await issueToken(service.adminClient(), project.id, { name: 'tail' })
    const short = new Annals({ url: service.node.url, token })
    const follow = async (client: Annals, session: string) => {
      for await (const _item of client.sessions.tail(session));
    }
    const other = (await annals.sessions.create()).id
    const whenRevoked = expect(follow(short, sessionId)).rejects.toMatchObject({ error: 'unauthorized' })
    const whenGone = expect(follow(annals, other)).rejects.toMatchObject({ error: 'session_not_found' })
    await sleep(200)
    await annals.sessions.delete(other)
    await service.adminClient().request('DELETE', `/admin/v1/projects/${project.id}/tokens/${id}`)
    await Promise.all([whenRevoked, whenGone])
  })
})

/** A port outside the range that systems give to connections, so that it is still free after a restart. */
const fixedPort = () => String(20_000 + Math.floor(Math.random() * 10_000))

describe('a tail of a service that restarts again and again while others append', () => {
  it('returns every entry once and in order', async () => {
    const PORT = fixedPort()
    let node: AnnalsServer = await service.startNode({ PORT })
    const client = new Annals({ url: node.url, token: project.token, retries: 200, timeout_ms: 120_000 })
    const lost: AnnalsError[] = []
    const seqs: number[] = []
    const end = new AbortController()
    const tailing = (async () => {
      const options = { signal: end.signal, on_disconnect: (error: AnnalsError) => lost.push(error) }
      for await (const { seq } of client.sessions.tail(sessionId, options)) seqs.push(seq)
    })()
    let appended = 0
    let enough = false
    const appending = (async () => {
      for (; !enough; appended += 1) await client.sessions.append(sessionId, event)
    })()
    for (let restart = 0; restart < RESTARTS; restart += 1) {
      const before = seqs.length
      await expect.poll(() => seqs.length).toBeGreaterThan(before + 3)
      await (restart % 2 ? node.kill() : node.stop())
      node = await service.startNode({ PORT })
    }
    enough = true
    await appending
    await expect.poll(() => seqs.at(-1)).toBe(appended)
    end.abort()
    await tailing
    expect(seqs).toEqual(Array.from({ length: appended }, (_, n) => n + 1))
    expect(lost.length).toBeGreaterThanOrEqual(RESTARTS)
  }, 600_000)
})
