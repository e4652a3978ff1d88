import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AppendRequest, appendsOf, type PendingAppend } from '../../../src/log/append/append_request.ts'
import { cutFlush, FLUSH_BYTES_MAX, FLUSH_ENTRIES_MAX } from '../../../src/log/append/lane.ts'
import { anEntry, anEvent, PROJECT } from './requests.ts'

const NONE: ReadonlySet<string> = new Set()

function pend(request: AppendRequest, bytes = request.entries[0]!.bytes): PendingAppend {
  return { request, bytes, enqueued_at: 0, followers: [], resolve: () => {}, reject: () => {} }
}

/** Few sessions, keys and ids, so that they meet often; sizes up to the bounds, so that these are met as well. */
const pending: fc.Arbitrary<PendingAppend> = fc
  .record({
    session: fc.nat(3),
    // Further sessions, of a request for several.
    further: fc.oneof(
      { weight: 3, arbitrary: fc.constant<number[]>([]) },
      { weight: 1, arbitrary: fc.subarray([0, 1, 2, 3]) },
    ),
    if_match: fc.option(fc.nat(3), { freq: 3, nil: undefined }),
    idempotency: fc.option(
      fc.record({ key: fc.constantFrom('k1', 'k2', 'k3'), request_hash: fc.constantFrom('h1', 'h2') }),
      {
        freq: 2,
        nil: undefined,
      },
    ),
    given: fc.uniqueArray(fc.constantFrom('i1', 'i2', 'i3', 'i4'), { maxLength: 2 }),
    others: fc.oneof(
      { weight: 8, arbitrary: fc.nat(2) },
      { weight: 1, arbitrary: fc.integer({ min: 300, max: 1_000 }) },
    ),
    bytes: fc.oneof(
      { weight: 8, arbitrary: fc.nat(5_000) },
      { weight: 1, arbitrary: fc.integer({ min: FLUSH_BYTES_MAX / 4, max: FLUSH_BYTES_MAX + 1_000 }) },
    ),
  })
  .map(({ session, further, if_match, idempotency, given, others, bytes }) => {
    const entry = (id: string, id_given: boolean) => ({ ...anEntry(), id, id_given })
    const fresh = Array.from({ length: given.length === 0 ? others + 1 : others }, (_, index) =>
      entry(`fresh ${index}`, false),
    )
    const entries = [...given.map((id) => entry(id, true)), ...fresh]
    const more = further.filter((other) => other !== session)
    const appends = [session, ...more].map((name, index) => ({
      session_id: `s${name}`,
      entries: index === 0 ? entries : [entry('another', false)],
      if_match: index === 0 ? if_match : undefined,
    }))
    const request: AppendRequest = {
      project_id: PROJECT,
      session_id: `s${session}`,
      kind: 'entries',
      entries: appends.flatMap((append) => append.entries),
      unmarked_until: 0,
      ...(more.length > 0 ? { appends } : { if_match }),
      idempotency,
    }
    return pend(request, bytes)
  })
const queue = fc.array(pending, { maxLength: 40 })

/** Sessions whose last flush is under way still. */
const sessionsInFlight = fc.subarray(['s0', 's1', 's2', 's3']).map((sessions) => new Set(sessions))

const sessionsOf = ({ request }: PendingAppend) => appendsOf(request).map(({ session_id }) => session_id)

/** Those with nothing before them, on any of their sessions, that has to wait for a flush in flight. */
function freeOf(waiting: PendingAppend[], inFlight: Set<string>): PendingAppend[] {
  const blocked = new Set(inFlight)
  return waiting.filter((one) => {
    const isFree = !sessionsOf(one).some((session) => blocked.has(session))
    if (!isFree) for (const session of sessionsOf(one)) blocked.add(session)
    return isFree
  })
}

function property(
  check: (waiting: PendingAppend[], cut: ReturnType<typeof cutFlush>, inFlight: Set<string>) => void,
): void {
  fc.assert(
    fc.property(queue, sessionsInFlight, (waiting, inFlight) =>
      check([...waiting], cutFlush(waiting, inFlight), inFlight),
    ),
    { numRuns: process.env.TEST_THOROUGH ? 500 : 200 },
  )
}

describe('the cut of a flush from a queue', () => {
  it('puts every request in exactly one place: taken, deferred, or following one that is taken', () => {
    property((waiting, { taken, deferred }) => {
      const places = [...taken, ...deferred, ...taken.flatMap((leader) => leader.followers)]
      expect(places).toHaveLength(waiting.length)
      expect(new Set(places)).toEqual(new Set(waiting))
      for (const { followers } of deferred) expect(followers).toEqual([])
    })
  })

  it('takes something whenever something waits for no session in flight, and nothing else', () => {
    property((waiting, { taken }, inFlight) => {
      expect(taken.length > 0).toBe(freeOf(waiting, inFlight).length > 0)
      expect(taken.flatMap(sessionsOf).filter((session) => inFlight.has(session))).toEqual([])
    })
  })

  it('keeps the order of the queue, and the order within each session across flushes', () => {
    property((waiting, { taken, deferred }) => {
      const placeOf = (one: PendingAppend) => waiting.indexOf(one)
      expect(taken.map(placeOf)).toEqual(taken.map(placeOf).sort((a, b) => a - b))
      expect(deferred.map(placeOf)).toEqual(deferred.map(placeOf).sort((a, b) => a - b))
      for (const late of deferred) {
        const overtaking = taken.filter(
          (one) =>
            placeOf(one) > placeOf(late) &&
            sessionsOf(one).some((session) => sessionsOf(late).includes(session)),
        )
        expect(overtaking).toEqual([])
      }
    })
  })

  it('takes a request with If-Match only alone on its session', () => {
    property((_waiting, { taken }) => {
      for (const { request } of taken) {
        for (const { session_id, if_match } of appendsOf(request)) {
          if (if_match === undefined) continue
          expect(taken.filter((one) => sessionsOf(one).includes(session_id))).toHaveLength(1)
        }
      }
    })
  })

  it('takes each idempotency key once, and each given id once a session', () => {
    property((_waiting, { taken }) => {
      const keys = taken.flatMap(({ request }) => request.idempotency?.key ?? [])
      expect(new Set(keys).size).toBe(keys.length)
      const ids = taken.flatMap(({ request }) =>
        appendsOf(request).flatMap(({ session_id, entries }) =>
          entries.filter((entry) => entry.id_given).map((entry) => `${session_id} ${entry.id}`),
        ),
      )
      expect(new Set(ids).size).toBe(ids.length)
    })
  })

  it('lets only repetitions of the same request follow, and only after it', () => {
    property((waiting, { taken }) => {
      for (const leader of taken) {
        for (const follower of leader.followers) {
          expect(follower.request.idempotency).toEqual(leader.request.idempotency)
          expect(waiting.indexOf(follower)).toBeGreaterThan(waiting.indexOf(leader))
        }
      }
    })
  })

  it('keeps within the bounds of entries and bytes, unless one request alone is larger', () => {
    property((_waiting, { taken }) => {
      if (taken.length === 1) return
      expect(sum(taken, (one) => one.request.entries.length)).toBeLessThanOrEqual(FLUSH_ENTRIES_MAX)
      expect(sum(taken, (one) => one.bytes)).toBeLessThanOrEqual(FLUSH_BYTES_MAX)
    })
  })

  it('takes everything when nothing stands against it', () => {
    const waiting = Array.from({ length: FLUSH_ENTRIES_MAX }, (_, index) =>
      pend(anEvent({ session_id: `s${index % 7}` })),
    )
    const { taken, deferred } = cutFlush(waiting, NONE)
    expect({ taken, deferred }).toEqual({ taken: waiting, deferred: [] })
    expect(cutFlush([...waiting, pend(anEvent())], NONE).deferred).toHaveLength(1)
  })

  it('empties any queue, cut after cut', () => {
    fc.assert(
      fc.property(queue, (waiting) => {
        let rest = waiting
        let cuts = 0
        while (rest.length > 0) {
          rest = cutFlush(rest, NONE).deferred
          cuts += 1
        }
        expect(cuts).toBeLessThanOrEqual(waiting.length)
      }),
    )
  })

  it('cuts a long queue of conditional appends to one session without looking at each pair', () => {
    const waiting = Array.from({ length: 10_000 }, () => pend(anEvent({ session_id: 's', if_match: 1 })))
    let looks = 0
    const watched = waiting.map((pending): PendingAppend => {
      const { request } = pending
      const looked = () => {
        looks += 1
        return request
      }
      return Object.defineProperty({ ...pending }, 'request', { get: looked })
    })
    expect(cutFlush(watched, NONE).taken).toHaveLength(1)
    // Pairs would be fifty million.
    expect(looks).toBeGreaterThanOrEqual(waiting.length)
    expect(looks).toBeLessThan(10 * waiting.length)
  })
})

function sum(list: PendingAppend[], measure: (one: PendingAppend) => number): number {
  return list.reduce((total, one) => total + measure(one), 0)
}
