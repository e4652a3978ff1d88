import { describe, expect, it } from 'vitest'
import { expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { mixedEntries, sessionLog } from '../harness/session_log.ts'
import { range, type TailOptions, useTails } from '../harness/tails.ts'

const RECONNECTS = 20

const service = useSharedService()
const tails = useTails(service)

describe('a live tail', () => {
  it('sends what is stored and then what comes, as the items of the timeline, in well-formed frames', async () => {
    expectOk(await tails.log.batch(mixedEntries(3)), 201)
    const tail = await tails.open()
    expect([tail.status, tail.contentType]).toEqual([200, expect.stringMatching(/^text\/event-stream\b/)])
    await tail.received(3)
    expectOk(await tails.log.add({ role: 'user', content: 'line 1\nline 2\r\n\u2028 😀' }), 201)
    expectOk(await tails.log.addEvent('data: x\n\nid: 99', { 'event:': '\n\n' }))
    const frames = await tail.received(5)
    const { items } = expectOk(await tails.log.timeline())
    expect(frames.map((frame) => frame.item)).toEqual(items)
    for (const { id, event, dataLines, item } of frames)
      expect([id, event, dataLines]).toEqual([String(item.seq), item.kind, 1])
  })

  it.each([
    ['after_seq', { query: { after_seq: 4 } }],
    ['Last-Event-ID', { headers: { 'Last-Event-ID': '4' } }],
    [
      'Last-Event-ID ahead of after_seq, which a browser keeps in its URL',
      { query: { after_seq: 1 }, headers: { 'Last-Event-ID': '4' } },
    ],
  ])('starts behind %s', async (_name, options) => {
    expectOk(await tails.log.batch(mixedEntries(7)), 201)
    const tail = await tails.open(options)
    await tail.received(3)
    expectOk(await tails.log.addEvent())
    await tail.received(4)
    expect(tail.seqs()).toEqual([5, 6, 7, 8])
  })

  it('sends only what its filters let through', async () => {
    const messages = await tails.open({ query: { kind: 'message' } })
    const typed = await tails.open({ query: { type: 'type-2' } })
    expectOk(await tails.log.batch(mixedEntries(6)), 201)
    expectOk(await tails.log.batch(mixedEntries(3)), 201)
    await messages.received(3)
    await typed.received(3)
    expect([messages.seqs(), typed.seqs()]).toEqual([
      [1, 4, 7],
      [3, 6, 9],
    ])
  })

  it('sends each of ten followers of a session the same, once', async () => {
    const followers = await Promise.all(Array.from({ length: 10 }, () => tails.open()))
    for (let at = 0; at < 10; at += 1) expectOk(await tails.log.addEvent())
    const received = await Promise.all(followers.map((tail) => tail.received(10)))
    const { items } = expectOk(await tails.log.timeline())
    for (const frames of received) expect(frames.map(({ item }) => item)).toEqual(items)
  })

  it('at another node sends what was stored at this one, without looking at the database by itself', async () => {
    // It would look once a minute, which is longer than anything here waits.
    const listening = await service.startNode({ ANNALS_FEED_POLL_MS: '60000' })
    const tail = await tails.open({ node: listening })
    for (const seq of range(1, 10)) {
      expectOk(await tails.log.addEvent())
      await tail.received(seq)
    }
    expect(tail.seqs()).toEqual(range(1, 10))
  })

  it('misses and repeats nothing of what many write at two nodes while it catches up', async () => {
    // Each is small enough to be read at once: a busy machine may refuse what has to wait for a thread.
    for (const _ of range(1, 10)) expectOk(await tails.log.batch(mixedEntries(100)), 201)
    const other = sessionLog(
      await service.newClient({ token: tails.project.token, node: service.secondNode }),
      tails.log.id,
    )
    const writing = range(1, 40).map((n) => (n % 2 ? tails.log.addEvent() : other.batch(mixedEntries(n))))
    const [here, there] = [await tails.open(), await tails.open({ node: service.secondNode })]
    await Promise.all(writing)
    const { items } = expectOk(await tails.log.timeline({ limit: 1, time_desc: true }))
    const last = items[0]!.seq
    for (const tail of [here, there]) {
      await tail.received(last, 20_000)
      expect(tail.seqs()).toEqual(range(1, last))
    }
  })

  it(`that is reconnected ${RECONNECTS} times during appends misses and repeats nothing`, async () => {
    let enough = false
    const appending = (async () => {
      for (let n = 0; !enough; n += 1) {
        if (n % 5 > 0) expectOk(await tails.log.addEvent())
        else expectOk(await tails.log.batch(mixedEntries(7)), 201)
      }
    })()
    const seen: number[] = []
    try {
      for (const connection of range(0, RECONNECTS)) {
        const node = connection % 2 ? service.secondNode : service.node
        const headers: Record<string, string> =
          seen.length > 0 ? { 'Last-Event-ID': String(seen.at(-1)) } : {}
        const tail = await tails.open({ node, headers })
        await tail.received(1 + Math.floor(Math.random() * 12))
        seen.push(...tail.seqs())
        tail.close()
      }
    } finally {
      enough = true
      await appending
    }
    expect(seen).toEqual(range(1, seen.length))
  }, 60_000)

  it('goes on at a restarted node after a kill -9', async () => {
    const node = await service.startNode()
    const there = sessionLog(await service.newClient({ token: tails.project.token, node }), tails.log.id)
    const tail = await tails.open({ node })
    for (const _n of range(1, 5)) expectOk(await there.addEvent())
    await tail.received(3)
    await node.kill()
    await tail.whenEnded()
    expectOk(await tails.log.addEvent())
    const restarted = await service.startNode()
    const headers = { 'Last-Event-ID': tail.frames.at(-1)!.id }
    const resumed = await tails.open({ node: restarted, headers })
    const rest = 6 - tail.frames.length
    await resumed.received(rest)
    expectOk(await tails.log.addEvent())
    await resumed.received(rest + 1)
    expect([...tail.seqs(), ...resumed.seqs()]).toEqual(range(1, 7))
  }, 60_000)

  it('shows that it lives within 15 seconds', async () => {
    const tail = await tails.open()
    await expect.poll(() => tail.comments.length, { timeout: 17_000, interval: 100 }).toBeGreaterThan(0)
  })
})

describe('a live tail is refused', () => {
  const expectRefused = async (options: TailOptions, status: number, error: string, word = '') => {
    const tail = await tails.open(options)
    await tail.whenEnded()
    expect(tail.status, tail.text).toBe(status)
    expect(tail.contentType).toMatch(/^application\/json/)
    expect(JSON.parse(tail.text)).toEqual({
      code: status,
      error,
      msg: expect.stringMatching(new RegExp(word, 'i')),
    })
  }

  it('with 404 in the envelope for an unknown session and for that of another project', async () => {
    await expectRefused({ sessionId: NOBODYS_ID }, 404, 'session_not_found')
    await expectRefused({ token: (await service.newProject()).token }, 404, 'session_not_found')
  })

  it('with 401 without a valid token', async () => {
    await expectRefused({ token: 'sk-unknown' }, 401, 'unauthorized')
  })

  it.each(['x', '-1', '1.5', '', '1e3', '99999999999999999999'])(
    'with 400 for the Last-Event-ID "%s"',
    async (id) => {
      await expectRefused({ headers: { 'Last-Event-ID': id } }, 400, 'invalid_request', 'last-event-id')
    },
  )

  it.each([{ limit: 10 }, { kind: 'note' }, { after_seq: -1 }, { surprise: 1 }])(
    'with 400 for %j',
    async (query) => {
      await expectRefused(
        { query: query as Record<string, string | number> },
        400,
        'invalid_request',
        Object.keys(query)[0],
      )
    },
  )
})
