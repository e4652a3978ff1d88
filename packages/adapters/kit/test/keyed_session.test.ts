import { isDeepStrictEqual } from 'node:util'
import {
  appendToKeyed,
  createSession,
  idempotencyKey,
  type KeyedNewSession,
  PART_TYPE,
  readEventData,
  splitLargeEvent,
  stableId,
  UnstorableEntries,
} from '@annals/adapter-kit'
import { Annals, type NewEntry } from '@annals/client'
import { beforeAll, describe, expect, it } from 'vitest'
import { useSharedService } from '../../../../tests/harness/service.ts'

const service = useSharedService()
let annals: Annals
let other: Annals
beforeAll(async () => {
  const { token } = await service.newProject()
  annals = new Annals({ url: service.node.url, token })
  other = new Annals({ url: service.secondNode.url, token })
})

let sessions = 0
function newKey(): KeyedNewSession {
  sessions += 1
  return { use_uuid: stableId('kit-test', `${sessions}`), configs: { key: `${sessions}` } }
}
const event = (n: number, more: object = {}): NewEntry => ({
  kind: 'event',
  type: 'note',
  data: { n },
  ...more,
})
async function numbersIn(session: KeyedNewSession): Promise<unknown[]> {
  const numbers: unknown[] = []
  for await (const item of annals.sessions.timeline(session.use_uuid, { limit: 1_000 }))
    numbers.push(item.kind === 'event' && item.data.n)
  return numbers
}

describe('a session with a stable id', () => {
  it('is created by its first append, also if several appends at several nodes are the first', async () => {
    const session = newKey()
    const appends = [annals, other, annals, other].map((client, n) =>
      appendToKeyed(client, session, [event(n)], { idempotency_key: `first-${n}` }),
    )
    expect((await Promise.all(appends)).flat()).toHaveLength(4)
    expect((await numbersIn(session)).sort()).toEqual([0, 1, 2, 3])
    expect((await annals.sessions.get(session.use_uuid)).configs).toEqual(session.configs)
  })

  it('is not created again, and is no error, when its configs have changed', async () => {
    const session = newKey()
    await createSession(annals, session)
    await annals.sessions.configs.merge(session.use_uuid, { changed: true })
    await createSession(annals, session)
    expect((await annals.sessions.get(session.use_uuid)).configs).toEqual({
      ...session.configs,
      changed: true,
    })
  })

  it('stores an append once that is repeated with what the framework calls it', async () => {
    const session = newKey()
    const idempotency_key = idempotencyKey('kit-test', 'run-1', 'step-1')
    const entries = Array.from({ length: 1_200 }, (_, n) => event(n))
    const first = await appendToKeyed(annals, session, entries, { idempotency_key })
    const again = await appendToKeyed(other, session, entries, { idempotency_key })
    expect(again).toEqual(first)
    expect(await numbersIn(session)).toEqual(entries.map((_, n) => n))
  })

  it('gets more than 1,000 entries, and more than a body carries, in several requests and in order', async () => {
    const session = newKey()
    const padding = 'x'.repeat(900)
    const entries = Array.from({ length: 2_500 }, (_, n) => event(n, { data: { n, padding } }))
    await appendToKeyed(annals, session, entries, { idempotency_key: 'many' })
    expect(await numbersIn(session)).toEqual(entries.map((_, n) => n))
  })

  it('refuses what must stay together and is too much, before anything is stored', async () => {
    const session = newKey()
    const entries = Array.from({ length: 1_001 }, (_, n) => event(n))
    for (const options of [{ is_atomic: true }, { if_match: 0 }]) {
      const append = appendToKeyed(annals, session, entries, { idempotency_key: 'together', ...options })
      await expect(append).rejects.toThrow(UnstorableEntries)
    }
    const huge = [event(0), event(1, { data: { text: 'é'.repeat(600_000) } })]
    const append = appendToKeyed(annals, session, huge, { idempotency_key: 'huge' })
    await expect(append).rejects.toThrow(/^Entry 1 has 120/)
    await expect(annals.sessions.get(session.use_uuid)).rejects.toMatchObject({ error: 'session_not_found' })
  })

  it('stores a repeated id once, and refuses it with other content by its name', async () => {
    const session = newKey()
    const id = stableId('kit-test', 'entry')
    await appendToKeyed(annals, session, [event(1, { id }), event(2), event(1, { id })], {
      idempotency_key: 'a',
    })
    expect(await numbersIn(session)).toEqual([1, 2])
    const append = appendToKeyed(annals, session, [event(1, { id }), event(3, { id })], {
      idempotency_key: 'b',
    })
    await expect(append).rejects.toThrow(id)
    expect(await numbersIn(session)).toEqual([1, 2])
  })

  it('lets the first entry with an id win where a framework repeats ids', async () => {
    const session = newKey()
    const ids = [1, 2].map((n) => stableId('kit-test', `first-wins-${n}`))
    const append = (entries: NewEntry[], idempotency_key: string) =>
      appendToKeyed(annals, session, entries, {
        idempotency_key: `wins-${idempotency_key}`,
        keeps_stored: true,
      })
    await append([event(1, { id: ids[0] })], 'a')
    const late = [event(2, { id: ids[0] }), event(3, { id: ids[1] }), event(4)]
    await append(late, 'b')
    await append(late, 'b')
    await append([event(5, { id: ids[0] })], 'c')
    expect(await numbersIn(session)).toEqual([1, 3, 4])
  })

  it('holds an event larger than any body in parts, and stores it once when it is sent again', async () => {
    const session = newKey()
    const data = { n: 1, image: 'é😀'.repeat(500_000), nul: '\0\uFDD0\uD800' }
    const entries = splitLargeEvent({ kind: 'event', type: 'large', id: stableId('kit-test', 'large'), data })
    for (const idempotency_key of ['once', 'again'])
      await appendToKeyed(annals, session, [...entries, event(2)], { idempotency_key })
    const read: unknown[] = []
    for await (const item of annals.sessions.timeline(session.use_uuid))
      if (item.kind === 'event' && item.type !== PART_TYPE)
        read.push(await readEventData(annals, session.use_uuid, item))
    expect(isDeepStrictEqual(read, [data, { n: 2 }, { n: 2 }])).toBe(true)
  })
})
