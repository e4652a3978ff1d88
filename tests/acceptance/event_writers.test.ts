import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient, SessionEvent } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { walkPages } from '../harness/walk_pages.ts'

const WRITERS = 8
const EVENTS_PER_WRITER = 60

const service = useSharedService()
let nodes: ApiClient[]

beforeAll(async () => {
  const { token } = await service.newProject()
  const { secondNode } = service
  nodes = [await service.newClient({ token }), await service.newClient({ token, node: secondNode })]
})

async function writeEvents(writer: number, sessionId: string): Promise<SessionEvent[]> {
  const answered: SessionEvent[] = []
  for (let index = 0; index < EVENTS_PER_WRITER; index += 1) {
    const client = nodes[writer % nodes.length]!
    answered.push(
      expectOk(await client.appendEvent(sessionId, { type: `w${writer}`, data: { writer, index } })),
    )
  }
  return answered
}

const readAll = (sessionId: string) =>
  walkPages((cursor) => nodes[0]!.listEvents(sessionId, { limit: 200, cursor }))

describe('8 writers at 2 nodes on one session', () => {
  it('get gapless seqs, each answered event is there, and each writer keeps its own order', async () => {
    const { id } = expectOk(await nodes[0]!.createSession({}), 201)
    const writers = Array.from({ length: WRITERS }, (_, writer) => writeEvents(writer, id))
    const answered = (await Promise.all(writers)).flat()
    const stored = await readAll(id)
    expect(stored.map((event) => event.seq)).toEqual(stored.map((_, index) => index + 1))
    expect(stored).toEqual([...answered].sort((a, b) => a.seq - b.seq))
    const times = stored.map((event) => event.created_at)
    expect([...times].sort()).toEqual(times)
    for (let writer = 0; writer < WRITERS; writer += 1) {
      const own = stored.filter((event) => event.data.writer === writer)
      expect(own.map((event) => event.data.index)).toEqual([...Array(EVENTS_PER_WRITER).keys()])
    }
  })

  it('never show a reader an entry after one that it has already passed', async () => {
    const { id } = expectOk(await nodes[0]!.createSession({}), 201)
    let writing = true
    const writers = Promise.all(
      Array.from({ length: WRITERS }, (_, writer) => writeEvents(writer, id)),
    ).finally(() => {
      writing = false
    })
    const readUpTo = async (client: ApiClient) => {
      while (writing) {
        const newest = expectOk(await client.listEvents(id, { time_desc: true, limit: 200 })).items
        const last = newest[0]?.seq ?? 0
        const expected = Array.from({ length: Math.min(last, 200) }, (_, index) => last - index)
        expect(newest.map((event) => event.seq)).toEqual(expected)
      }
    }
    await Promise.all([writers, ...nodes.map(readUpTo)])
    expect(await readAll(id)).toHaveLength(WRITERS * EVENTS_PER_WRITER)
  })
})

describe('writers on many sessions at 2 nodes', () => {
  it('keep every session gapless', async () => {
    const created = Array.from({ length: 12 }, () => nodes[0]!.createSession({}))
    const ids = (await Promise.all(created)).map((answer) => expectOk(answer, 201).id)
    const appends = Array.from({ length: 360 }, (_, index) =>
      nodes[index % 2]!.appendEvent(ids[(index * 7) % ids.length]!, { type: 'note', data: { index } }),
    )
    const answered = (await Promise.all(appends)).map((answer) => expectOk(answer))
    for (const id of ids) {
      const own = answered.filter((event) => event.session_id === id).sort((a, b) => a.seq - b.seq)
      expect(await readAll(id)).toEqual(own)
      expect(own.map((event) => event.seq)).toEqual(own.map((_, index) => index + 1))
    }
  })

  it('are not held up by entries of others that are refused', async () => {
    const { id } = expectOk(await nodes[0]!.createSession({}), 201)
    const bodies = Array.from({ length: 60 }, (_, index) => {
      return index % 5 === 0 ? { type: 'bad', data: { text: '\u0000' } } : { type: 'good', data: { index } }
    })
    const answers = await Promise.all(bodies.map((body) => nodes[0]!.appendEvent(id, body)))
    const statuses = answers.map((answer) => answer.status)
    expect(statuses).toEqual(bodies.map((body) => (body.type === 'bad' ? 400 : 200)))
    expect((await readAll(id)).map((event) => event.seq)).toEqual(Array.from({ length: 48 }, (_, n) => n + 1))
  })
})
