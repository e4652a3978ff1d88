import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import type { Json } from '../harness/containment.ts'
import { expectOk } from '../harness/expectations.ts'
import { termsOutOfStep } from '../harness/list_terms.ts'
import { useSharedService } from '../harness/service.ts'
import { queryRows } from '../harness/sql.ts'
import { walkPages } from '../harness/walk_pages.ts'

/*
 * A filtered list against PostgreSQL's own `configs @> filter` over the whole table: the index that finds the
 * pages is only a way to them, so nothing may be missed and nothing added, whatever is stored, changed and asked.
 * JSON goes as text throughout, since equal numbers may be written in many ways.
 */

const service = useSharedService()

const scalar = fc.constantFrom(
  ...[
    'null',
    'true',
    'false',
    '0',
    '1',
    '1.0',
    '1.00e0',
    '10',
    '1e1',
    '0.10',
    '-0.0',
    '12345678901234567890',
  ],
  ...['12345678901234567891', '""', '"1"', '"x"', '"{"', '"["', '"null"', '"ü"'],
)
const key = fc.constantFrom('a', 'b', 'c', '', '[')
const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }).map((elements) => `[${elements.join(',')}]`),
    fc.dictionary(key, tie('value'), { maxKeys: 3 }).map(objectText),
  ),
}))
/** An object in an object in an object …, past the levels that the index looks into. */
const nested = fc.tuple(fc.integer({ min: 1, max: 12 }), value).map(([levels, inner]) => {
  return objectText({ a: '{"a":'.repeat(levels) + inner + '}'.repeat(levels) })
})
/** More values than the index keeps of one document, at the first level or the second. */
const many = fc.tuple(fc.boolean(), key, value).map(([deep, name, inner]) => {
  const leaves = Array.from({ length: 300 }, (_, index) => `"k${index}":${index % 7}`).join(',')
  return deep
    ? objectText({ [name]: inner, d: `{${leaves}}` })
    : `{${leaves},${JSON.stringify(name)}:${inner}}`
})
const object = fc.oneof(
  { weight: 12, arbitrary: fc.dictionary(key, value, { maxKeys: 4 }).map(objectText) },
  { weight: 2, arbitrary: nested },
  { weight: 1, arbitrary: many },
)
const filter = fc.oneof(
  { weight: 8, arbitrary: fc.dictionary(key, value, { maxKeys: 3 }).map(objectText) },
  { weight: 2, arbitrary: nested },
  fc.constantFrom('{"d":{"k3":3}}', '{"k3":3}', '{"k3":3,"k299":5}', '{"d":{"k3":3},"a":1}', '{"d":{}}'),
)

const user = fc.option(fc.constantFrom('ada', 'bob'), { nil: undefined })
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ does: fc.constant('create' as const), user, configs: object }) },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant('replace' as const), at: fc.nat(), configs: object }),
  },
  { weight: 4, arbitrary: fc.record({ does: fc.constant('merge' as const), at: fc.nat(), configs: object }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('copy' as const), at: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('delete' as const), at: fc.nat() }) },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
const question = fc.record({
  user: fc.option(fc.constantFrom('ada', 'bob', 'nobody'), { nil: undefined }),
  filter,
  /** Ask for what some session has, rather than for `filter`. */
  likeSession: fc.option(fc.nat(), { nil: undefined }),
  time_desc: fc.boolean(),
  limit: fc.integer({ min: 1, max: 9 }),
})

function objectText(members: Record<string, string>): string {
  return `{${Object.entries(members).map(([name, text]) => `${JSON.stringify(name)}:${text}`)}}`
}

async function take(api: ApiClient, ids: string[], { does, ...rest }: Step): Promise<void> {
  const id = 'at' in rest ? ids[rest.at % ids.length] : undefined
  const raw = 'configs' in rest ? `"configs":${rest.configs}` : ''
  if (does === 'create') {
    const body = 'user' in rest && rest.user ? `{${raw},"user":"${rest.user}"}` : `{${raw}}`
    ids.push(
      expectOk(await api.request<{ id: string }>('POST', '/api/v1/session', { rawBody: body }), 201).id,
    )
  } else if (id === undefined) {
    return
  } else if (does === 'copy') {
    const copied = await api.request<{ new_session_id: string }>('POST', `/api/v1/session/${id}/copy`)
    ids.push(expectOk(copied).new_session_id)
  } else if (does === 'delete') {
    expectOk(await api.deleteSession(id))
    ids.splice(ids.indexOf(id), 1)
  } else {
    const method = does === 'replace' ? 'PUT' : 'PATCH'
    expectOk(await api.request(method, `/api/v1/session/${id}/configs`, { rawBody: `{${raw}}` }))
  }
}

/** What plain containment over the table gives. */
async function contained(
  projectId: string,
  asked: { user?: string | undefined; filter: string; time_desc: boolean },
) {
  const direction = asked.time_desc ? 'DESC' : 'ASC'
  const rows = await queryRows<{ id: string }>(
    service.databaseUrl,
    `SELECT s.id FROM sessions s LEFT JOIN users u ON u.project_id = $1 AND u.id = s.user_id
     WHERE s.project_id = $1 AND s.configs @> $2::jsonb AND ($3::text IS NULL OR u.identifier = $3)
     ORDER BY s.created_at ${direction}, s.id ${direction}`,
    [projectId, asked.filter, asked.user ?? null],
  )
  return rows.map((row) => row.id)
}

async function storedConfigs(projectId: string, nth: number): Promise<string | undefined> {
  const rows = await queryRows<{ part: string }>(
    service.databaseUrl,
    `SELECT jsonb_build_object(e.key, e.value)::text AS part FROM sessions s CROSS JOIN LATERAL jsonb_each(s.configs) e
     WHERE s.project_id = $1 ORDER BY s.id, e.key LIMIT 50`,
    [projectId],
  )
  return rows[nth % Math.max(rows.length, 1)]?.part
}

describe('a list filtered by configs', () => {
  it('shows what @> shows, page by page, whatever was created, replaced, merged, copied and deleted', async () => {
    const property = fc.asyncProperty(
      fc.array(step, { maxLength: 16 }),
      fc.array(question, { minLength: 4, maxLength: 10 }),
      async (steps, questions) => {
        const project = await service.newProject()
        const api = await service.newClient({ token: project.token })
        const ids: string[] = []
        for (const next of steps) await take(api, ids, next)
        expect(await termsOutOfStep(service.databaseUrl, project.id)).toEqual([])
        for (const { likeSession, ...asked } of questions) {
          const part = likeSession === undefined ? undefined : await storedConfigs(project.id, likeSession)
          const { user, time_desc, limit, filter } = { ...asked, filter: part ?? asked.filter }
          const seen = await walkPages((cursor) =>
            api.listSessions({ user, filter_by_configs: filter, time_desc, limit, cursor }),
          )
          const expected = await contained(project.id, { user, filter, time_desc })
          expect(seen.map((session) => session.id)).toEqual(expected)
        }
      },
    )
    await fc.assert(property, { numRuns: 30 })
  }, 240_000)

  it('keeps its index in step when one session is changed from many sides at once', async () => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token })
    const { id } = expectOk(await api.createSession({ user: 'ada', configs: { turn: 0 } }), 201)
    const changes = Array.from({ length: 40 }, (_, turn) =>
      turn % 3 === 0
        ? api.request('PUT', `/api/v1/session/${id}/configs`, { body: { configs: { turn, kept: [turn] } } })
        : api.request('PATCH', `/api/v1/session/${id}/configs`, {
            body: { configs: { turn, [`k${turn}`]: turn } },
          }),
    )
    for (const answer of await Promise.all(changes)) expectOk(answer)
    expect(await termsOutOfStep(service.databaseUrl, project.id)).toEqual([])
  })

  it('leaves nothing in its index when sessions, users and projects are erased', async () => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token })
    const configs: Json = {
      agent: 'a',
      tags: ['x', { y: 1 }],
      d: Object.fromEntries(Array.from({ length: 300 }, (_, n) => [n, n])),
    }
    for (const name of ['ada', 'ada', 'bob', undefined]) {
      expectOk(await api.createSession({ user: name, configs }), 201)
      expectOk(await api.createLearningSpace({ user: name, meta: configs }), 201)
    }
    const terms = async () => {
      const [row] = await queryRows<{ count: string }>(
        service.databaseUrl,
        'SELECT count(*) FROM list_terms WHERE project_id = $1',
        [project.id],
      )
      return Number(row!.count)
    }
    expect(await terms()).toBeGreaterThan(8 * 4)
    expectOk(await api.request('DELETE', '/api/v1/user/ada'))
    expect(await termsOutOfStep(service.databaseUrl, project.id)).toEqual([])
    expectOk(await service.adminClient().request('DELETE', `/admin/v1/projects/${project.id}`))
    expect(await terms()).toBe(0)
  })
})
