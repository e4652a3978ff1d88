import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ApiClient, Session } from '../harness/api_client.ts'
import { contains, type Json } from '../harness/containment.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { walkPages } from '../harness/walk_pages.ts'

const service = useSharedService()

/** A small vocabulary, so that filters often match. */
const key = fc.constantFrom('a', 'b', 'ü', '')
const scalar = fc.constantFrom<Json>(null, true, false, 0, 1, -1.5, '', '1', 'x', '😀')
const { value } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(key, tie('value'), { maxKeys: 3 }),
  ),
}))
const configs = fc.dictionary(key, value, { maxKeys: 3 }) as fc.Arbitrary<{ [key: string]: Json }>
const user = fc.constantFrom('ada', 'bob', 'Bob', 'é')
const sent = fc.record({
  user: fc.option(user, { nil: undefined }),
  configs,
  below: fc.option(fc.nat(), { freq: 2 }),
})

/** A filter that is random, or a part of something that was sent, so that it has a chance to match. */
const query = fc.record({
  user: fc.option(fc.oneof({ weight: 5, arbitrary: user }, fc.constant('nobody')), { nil: undefined }),
  filter: fc.option(configs, { nil: undefined }),
  /** Of which session the children; -1: only sessions without a parent. */
  parent: fc.option(fc.integer({ min: -1, max: 4 }), { freq: 2, nil: undefined }),
  likeSession: fc.nat(),
  partly: fc.boolean(),
  time_desc: fc.option(fc.boolean(), { nil: undefined }),
  limit: fc.integer({ min: 1, max: 9 }),
})
type Sent = { user: string | undefined; configs: { [key: string]: Json }; below: number | null }
type Asked = typeof query extends fc.Arbitrary<infer T> ? T : never

function filterOf(asked: Asked, sessions: Sent[]): { [key: string]: Json } | undefined {
  const example = asked.partly ? sessions[asked.likeSession % Math.max(sessions.length, 1)] : undefined
  if (!example) return asked.filter
  return Object.fromEntries(Object.entries(example.configs).slice(0, 1))
}

type Stored = Session & { user: string | undefined; parent: string | undefined }

async function store(api: ApiClient, sessions: Sent[]): Promise<Stored[]> {
  const stored: Stored[] = []
  for (const { below, ...session } of sessions) {
    const parent = below === null ? undefined : stored[below % Math.max(stored.length, 1)]?.id
    stored.push({
      ...expectOk(await api.createSession({ ...session, parent }), 201),
      user: session.user,
      parent,
    })
  }
  return stored
}

describe('the session list', () => {
  it('returns what a model in memory returns, for random sessions, users, filters and page sizes', async () => {
    const property = fc.asyncProperty(
      fc.array(sent, { maxLength: 14 }),
      fc.array(query, { minLength: 6, maxLength: 12 }),
      async (sessions, queries) => {
        const api = await service.newClient()
        const stored = await store(api, sessions)
        for (const asked of queries) {
          const filter = filterOf(asked, sessions)
          const wanted = asked.parent === -1 ? undefined : stored[asked.parent ?? 0]?.id
          const parent = asked.parent === undefined ? undefined : asked.parent === -1 ? 'none' : wanted
          const matching = stored.filter((session) => {
            const ofUser = asked.user === undefined || session.user === asked.user
            const ofParent = parent === undefined || session.parent === wanted
            return ofUser && ofParent && (filter === undefined || contains(session.configs as Json, filter))
          })
          const expected = asked.time_desc ? matching.reverse() : matching
          const { limit, time_desc } = asked
          const filter_by_configs = filter && JSON.stringify(filter)
          const seen = await walkPages((cursor) =>
            api.listSessions({ user: asked.user, parent, filter_by_configs, limit, time_desc, cursor }),
          )
          expect(seen.map((session) => session.id)).toEqual(expected.map((session) => session.id))
        }
      },
    )
    await fc.assert(property, { numRuns: 40, endOnFailure: false })
  }, 120_000)
})
