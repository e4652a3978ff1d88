import { isDeepStrictEqual } from 'node:util'
import { stableId } from '@annals/adapter-kit'
import { AnnalsSessionService } from '@annals/adk'
import { Annals } from '@annals/client'
import { createEvent, createEventActions, type Event, isCompactedEvent } from '@google/adk'
import { describe, expect, it } from 'vitest'
import { useService, useSharedService } from '../../../../tests/harness/service.ts'

const shared = useSharedService()
const NAME = { appName: 'app', userId: 'alice', sessionId: 'one' }

async function newService() {
  const { token } = await shared.newProject()
  const annals = new Annals({ url: shared.node.url, token })
  return { annals, service: new AnnalsSessionService(annals) }
}

let events = 0
function event(text: string, stateDelta: Record<string, unknown> = {}, more: Partial<Event> = {}): Event {
  events += 1
  return createEvent({
    id: `event-${events}`,
    invocationId: 'run',
    author: 'user',
    content: { role: 'user', parts: [{ text }] },
    actions: createEventActions({ stateDelta }),
    ...more,
  })
}
const textsOf = ({ events }: { events: Event[] }) => events.map(({ content }) => content?.parts?.[0]?.text)

describe('a session service of ADK', () => {
  it('creates a session with state of three scopes and leaves out what is temporary', async () => {
    const { service } = await newService()
    const state = { 'app:a': 1, 'user:u': [2], own: { deep: '\0' }, 'temp:t': 4 }
    const session = await service.createSession({ ...NAME, state })
    const { 'temp:t': _temporary, ...kept } = state
    expect(session).toMatchObject({ id: 'one', appName: 'app', userId: 'alice', state: kept, events: [] })
    const other = await service.createSession({ appName: 'app', userId: 'alice' })
    expect(other.state).toEqual({ 'app:a': 1, 'user:u': [2] })
    const stranger = await service.createSession({ appName: 'app', userId: 'bob', sessionId: 'one' })
    expect(stranger.state).toEqual({ 'app:a': 1 })
  })

  it('refuses an id that the user has already, and finds nothing under another', async () => {
    const { service } = await newService()
    await service.createSession(NAME)
    await expect(service.createSession(NAME)).rejects.toThrow('Session with id one already exists.')
    expect(await service.getSession({ ...NAME, sessionId: 'two' })).toBeUndefined()
    expect(await service.getSession({ ...NAME, userId: 'bob' })).toBeUndefined()
    expect((await service.getOrCreateSession(NAME)).id).toBe('one')
  })

  it('stores an event and the state of all scopes that it changes', async () => {
    const { service } = await newService()
    const session = await service.createSession(NAME)
    const first = event(
      'hello',
      { 'app:a': 1, 'user:u': 2, own: 3, 'temp:t': 4 },
      { longRunningToolIds: ['x'] },
    )
    await service.appendEvent({ session, event: first })
    expect(session.state).toEqual({ 'app:a': 1, 'user:u': 2, own: 3 })
    const read = (await service.getSession(NAME))!
    expect(read.state).toEqual(session.state)
    expect(read.events).toEqual(JSON.parse(JSON.stringify([first])))
    expect(JSON.stringify(read.events)).not.toContain('temp:')
  })

  it('does not store partial events', async () => {
    const { service } = await newService()
    const session = await service.createSession(NAME)
    await service.appendEvent({ session, event: event('hel', { a: 1 }, { partial: true }) })
    expect((await service.getSession(NAME))!).toMatchObject({ events: [], state: {} })
    expect(session.events).toEqual([])
  })

  it('replaces an event that is appended again with other content, at its place', async () => {
    const { service } = await newService()
    const session = await service.createSession(NAME)
    const changed = event('first')
    for (const one of [
      changed,
      event('second'),
      { ...changed, content: { role: 'user', parts: [{ text: 'new' }] } },
    ])
      await service.appendEvent({ session, event: one })
    expect(textsOf(session)).toEqual(['new', 'second'])
    expect(textsOf((await service.getSession(NAME))!)).toEqual(['new', 'second'])
  })

  it('returns the newest events, or those from a time on', async () => {
    const { service } = await newService()
    const session = await service.createSession(NAME)
    for (const timestamp of [1_000, 2_000, 3_000])
      await service.appendEvent({ session, event: event(`${timestamp}`, { n: timestamp }, { timestamp }) })
    const newest = await service.getSession({ ...NAME, config: { numRecentEvents: 2 } })
    expect(textsOf(newest!)).toEqual(['2000', '3000'])
    const later = await service.getSession({ ...NAME, config: { afterTimestamp: 2_000 } })
    expect(textsOf(later!)).toEqual(['2000', '3000'])
    expect(newest!.state).toEqual({ n: 3_000 })
  })

  it('lists the sessions of a user or an app, in pages and by their last change', async () => {
    const { service } = await newService()
    for (const sessionId of ['a', 'b', 'c']) await service.createSession({ ...NAME, sessionId })
    await service.createSession({ ...NAME, userId: 'bob' })
    const session = (await service.getSession({ ...NAME, sessionId: 'a' }))!
    await service.appendEvent({ session, event: event('later') })
    const ids = ({ sessions }: { sessions: { id: string }[] }) => sessions.map(({ id }) => id)
    const query = { appName: 'app', userId: 'alice', order: 'desc' as const }
    expect(ids(await service.listSessions(query))).toEqual(['a', 'c', 'b'])
    const page = await service.listSessions({ ...query, limit: 2, page: 2 })
    expect([ids(page), page.totalItems, page.totalPages, page.page]).toEqual([['b'], 3, 2, 2])
    expect((await service.listSessions({ appName: 'app' })).totalItems).toBe(4)
    expect((await service.listSessions({ appName: 'none' })).totalPages).toBe(0)
  })

  it('deletes a session, which cannot be appended to any more, and keeps what others share', async () => {
    const { service } = await newService()
    const session = await service.createSession({ ...NAME, state: { 'user:u': 1, own: 2 } })
    await service.deleteSession(NAME)
    await service.deleteSession(NAME)
    expect(await service.getSession(NAME)).toBeUndefined()
    await expect(service.appendEvent({ session, event: event('late') })).rejects.toThrow('not found')
    expect((await service.createSession(NAME)).state).toEqual({ 'user:u': 1 })
  })

  it('loses nothing of two runners on one session: each sees what the other has stored', async () => {
    const { annals } = await newService()
    const runners = [new AnnalsSessionService(annals), new AnnalsSessionService(annals)]
    await runners[0]!.createSession(NAME)
    const sessions = await Promise.all(runners.map(async (one) => (await one.getSession(NAME))!))
    const append = async (runner: number) => {
      for (let n = 0; n < 10; n++) {
        const delta = { [`${runner}/${n}`]: n, 'app:last': `${runner}/${n}` }
        await runners[runner]!.appendEvent({
          session: sessions[runner]!,
          event: event(`${runner}/${n}`, delta),
        })
      }
    }
    await Promise.all([append(0), append(1)])
    const read = (await runners[0]!.getSession(NAME))!
    expect(textsOf(read)).toHaveLength(20)
    for (const runner of [0, 1]) {
      const own = Array.from({ length: 10 }, (_, n) => `${runner}/${n}`)
      expect(textsOf(read).filter((text) => text?.startsWith(`${runner}/`))).toEqual(own)
      for (const [n, name] of own.entries()) expect(read.state[name]).toBe(n)
      // What a runner sees is a beginning of the log, without gaps.
      expect(textsOf(sessions[runner]!)).toEqual(textsOf(read).slice(0, sessions[runner]!.events.length))
    }
  })

  it('keeps an event that is larger than a body', async () => {
    const { service } = await newService()
    const session = await service.createSession(NAME)
    const text = 'é'.repeat(1_000_000)
    await service.appendEvent({ session, event: event(text, { big: true }) })
    await service.appendEvent({ session, event: event('after') })
    const read = (await service.getSession(NAME))!
    expect([textsOf(read)[0] === text, textsOf(read)[1], read.state]).toEqual([true, 'after', { big: true }])
  })

  it('keeps a photo of 2 MB, a text beyond a body, and much beside its content as messages', async () => {
    const { annals, service } = await newService()
    const session = await service.createSession(NAME)
    const data = Buffer.alloc(2_000_000, 7).toString('base64')
    const photo = { role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data } }] }
    const customMetadata = { trace: 'x'.repeat(100_000) }
    const given = [
      event('', {}, { content: photo }),
      event('é'.repeat(600_000)),
      event('traced', {}, { customMetadata }),
    ]
    for (const one of given) await service.appendEvent({ session, event: one })
    const read = (await service.getSession(NAME))!.events
    const isKept = (at: number) =>
      isDeepStrictEqual(
        [read[at]!.content, read[at]!.customMetadata],
        [given[at]!.content, given[at]!.customMetadata],
      )
    expect([0, 1, 2].map(isKept)).toEqual([true, true, true])
    const id = stableId('adk', 'app', 'alice', 'one')
    const { items } = await annals.sessions.messages(id, { format: 'gemini' }).page()
    expect(items.map(({ role }) => role)).toEqual(['user', 'user', 'user'])
    expect(JSON.stringify(items[0]).includes(data)).toBe(true)
  })

  it('reads as messages in Annals', async () => {
    const { annals, service } = await newService()
    const session = await service.createSession(NAME)
    await service.appendEvent({ session, event: event('hello') })
    const page = await annals.sessions
      .messages(stableId('adk', 'app', 'alice', 'one'), { format: 'openai' })
      .page()
    expect(page.items).toEqual([{ role: 'user', content: 'hello' }])
  })
})

describe('a service that is killed in the middle of a run', () => {
  const own = useService()

  it('loses and doubles nothing', async () => {
    const { token } = await own.newProject()
    const first = own.node
    const { port } = new URL(first.url)
    const service = new AnnalsSessionService(
      new Annals({ url: first.url, token, retries: 200, timeout_ms: 120_000 }),
    )
    const session = await service.createSession(NAME)
    const run = (async () => {
      for (let n = 0; n < 30; n++) {
        if (n === 11) void first.kill()
        await service.appendEvent({ session, event: event(`${n}`, { n, 'user:n': n }) })
      }
    })()
    await first.exited
    await own.startNode({ PORT: port })
    await run
    const read = (await service.getSession(NAME))!
    expect(textsOf(read)).toEqual(Array.from({ length: 30 }, (_, n) => `${n}`))
    expect(read.state).toEqual({ n: 29, 'user:n': 29 })
  })
})

describe('a compaction of ADK', () => {
  const compaction = (compactedContent: string, startTime: number, endTime: number): Event => {
    const compacted = { isCompacted: true, compactedContent, startTime, endTime }
    const { content: _, ...empty } = event('', {}, { timestamp: 99 })
    return Object.assign(empty, compacted)
  }

  it('comes back as the event that it is, and contexts begin with what it says', async () => {
    const { annals, service } = await newService()
    const session = await service.createSession(NAME)
    for (const timestamp of [1, 2, 3, 4])
      await service.appendEvent({ session, event: event(`said ${timestamp}`, {}, { timestamp }) })
    await service.appendEvent({ session, event: compaction('one and two', 1, 2) })
    const [{ id = '' } = {}] = (await annals.sessions.list().page()).items
    const texts = async () => (await annals.sessions.context(id)).items.map(({ content }) => content)
    expect(await texts()).toEqual(['one and two', 'said 3', 'said 4'])
    // The first one goes further back, so both are said.
    await service.appendEvent({ session, event: compaction('two and three', 2, 3) })
    const [first, ...rest] = await texts()
    expect(JSON.stringify(first)).toMatch(/one and two.*two and three/)
    expect(rest).toEqual(['said 4'])
    await service.appendEvent({ session, event: compaction('all', 1, 4) })
    expect(await texts()).toEqual(['all'])
    const again = (await service.getSession(NAME))!
    expect(again.events.filter(isCompactedEvent).map(({ compactedContent }) => compactedContent)).toEqual([
      'one and two',
      'two and three',
      'all',
    ])
  })
})
