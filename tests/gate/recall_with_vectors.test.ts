import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { type EmbeddingsServer, startEmbeddingsServer, vectorsOf } from '../../lab/embeddings_server.ts'
import { tokenFor } from '../harness/access_requests.ts'
import type { AnnalsServer } from '../harness/annals_process.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { runCommand } from '../harness/command_process.ts'
import { doctor } from '../harness/doctor.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import type { Query } from '../harness/http_client.ts'
import { newSearchingProjects, switchSearch, untilIndexed } from '../harness/search.ts'
import { type Project, useService } from '../harness/service.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'

interface Answer {
  items: Array<{
    session_id: string
    seq?: number
    score: number
    entries: { seq: number; before?: object }[]
  }>
  vectors?: 'used' | 'filling' | 'unavailable'
}

const { serverUrl } = inject('testServer')
const FIND_EXTENSION = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
const hasExtension = (await queryRows(serverUrl, FIND_EXTENSION)).length > 0
const reason = hasExtension ? reasonForNoOwnDatabase() : 'the server lacks the extension vector'

const TIMES = { timeout: 60_000, interval: 200 }
const KEY = 'embeddings-key-of-test'
const service = useService()

it.skipIf(reasonForNoOwnDatabase())(
  'a start with a model says in a sentence that the database lacks the extension',
  async () => {
    const env = { ANNALS_EMBEDDINGS_URL: 'http://127.0.0.1:9/v1', ANNALS_EMBEDDINGS_MODEL: 'scripted' }
    const started = await runCommand(['serve'], { DATABASE_URL: service.databaseUrl, PORT: '0', ...env })
    expect(started.code).not.toBe(0)
    expect(started.stderr).toContain('run CREATE EXTENSION vector')
    const { of } = await doctor({ DATABASE_URL: service.databaseUrl, ...env })
    expect(of('vectors')).toMatchObject([{ state: 'failure' }])
    const half = await runCommand(['serve'], {
      DATABASE_URL: service.databaseUrl,
      ANNALS_EMBEDDINGS_MODEL: 'm',
    })
    expect(half.stderr).toContain('must be set together')
  },
)

describe.skipIf(reason)(`vectors${reason ? `, skipped because ${reason}` : ''}`, () => {
  let model: EmbeddingsServer
  let node: AnnalsServer
  let projects: Project[]
  beforeAll(async () => {
    await execute(service.databaseUrl, 'CREATE EXTENSION vector')
    // Those that are there when the node starts have vectors at once; others have to wait for its next look.
    projects = await newSearchingProjects(service, 8)
    model = await startEmbeddingsServer()
    node = await startWith('scripted')
  })
  afterAll(() => model?.close())

  const startWith = (name: string) =>
    service.startNode({
      ANNALS_EMBEDDINGS_URL: model.url,
      ANNALS_EMBEDDINGS_MODEL: name,
      ANNALS_EMBEDDINGS_KEY: KEY,
    })

  async function newProject() {
    const project = projects.pop()!
    return { ...project, api: await service.newClient({ token: project.token, node }) }
  }

  async function store(api: ApiClient, lines: string[], user?: string): Promise<string> {
    const { id } = expectOk(await api.createSession({ ...(user && { user }) }), 201)
    const entries = lines.map((content, index) => ({
      kind: 'message',
      format: 'openai',
      blob: { role: index % 2 === 0 ? 'user' : 'assistant', content },
    }))
    expectOk(await api.request('POST', `/api/v1/session/${id}/entries`, { body: { entries } }), 201)
    return id
  }

  const vectorsIn = async (project_id: string) =>
    queryRows<{ session_id: string; seq: number; model: string }>(
      service.databaseUrl,
      'SELECT session_id, seq::int AS seq, model FROM search_vectors WHERE project_id = $1 ORDER BY 1, 2',
      [project_id],
    )

  const untilEmbedded = (project_id: string, count: number) =>
    vi.waitFor(async () => expect(await vectorsIn(project_id)).toHaveLength(count), TIMES)

  const ask = async (api: ApiClient, q: string, query: Query = {}) =>
    expectOk(await api.request<Answer>('GET', '/api/v1/search', { query: { mode: 'recall', q, ...query } }))
  const asked = async (api: ApiClient, q: string, query: Query = {}) => {
    const { items, vectors } = await ask(api, q, query)
    expect(vectors).not.toBe('unavailable')
    return items.map(({ session_id }) => session_id)
  }

  it('find what was said in other words, which words alone do not, and leave answers without them as they are', async () => {
    const { api, id, token } = await newProject()
    const refund = await store(api, ['Please give me my reimbursement.', 'It is on its way.'])
    const cat = await store(api, ['My kitten sleeps all day.', 'How sweet!'])
    await untilEmbedded(id, 4)
    await untilIndexed(api)
    await vi.waitFor(async () => expect((await ask(api, 'money')).vectors).toBe('used'), TIMES)
    const found = await ask(api, 'Where is the money?')
    expect(found.items[0]).toMatchObject({ session_id: refund, entries: [{ seq: 1 }, { seq: 2 }] })
    expect((await asked(api, 'Is there a feline?'))[0]).toBe(cat)
    const [entry] = (await ask(api, 'Is there a feline?', { group: 'entry' })).items
    expect(entry).toMatchObject({
      session_id: cat,
      seq: 1,
      snippet: { text: 'My kitten sleeps all day.', hits: [] },
    })
    // What words find well stays first, and phrases and exclusions mean what they say.
    expect((await asked(api, 'kitten'))[0]).toBe(cat)
    expect(await asked(api, '"sleeps all day" money')).toEqual([cat])
    expect(await asked(api, 'money -reimbursement', { group: 'entry' })).not.toContain(undefined)
    expect((await ask(api, 'money -reimbursement', { group: 'entry' })).items).not.toContainEqual(
      expect.objectContaining({ session_id: refund, seq: 1 }),
    )
    const env = { ANNALS_EMBEDDINGS_URL: model.url, ANNALS_EMBEDDINGS_MODEL: 'scripted' }
    const { of } = await doctor({ DATABASE_URL: service.databaseUrl, ...env })
    expect(of('vectors')).toMatchObject([{ state: 'ok', found: '0 changed sessions wait for vectors' }])
    const plain = await service.newClient({ token })
    const without = await ask(plain, 'Where is the money?')
    expect(without.items).toEqual([])
    expect(Object.keys(without)).not.toContain('vectors')
    expect(new Set(model.keys)).toEqual(new Set([KEY]))
  })

  it('find nothing of other projects, users and filters, and nothing that was retracted, has expired or was erased', async () => {
    const [mine, other] = await Promise.all([newProject(), newProject()])
    const { api, id } = mine
    const line = ['I want my reimbursement.']
    const theirs = await store(other.api, line, 'ada')
    const [ada, bob, retracted, deleted, expiring] = await Promise.all(
      ['ada', 'bob', 'ada', 'ada', 'ada'].map((user) => store(api, line, user)),
    )
    await store(api, line, 'eve')
    await untilEmbedded(id, 6)
    await untilEmbedded(other.id, 1)
    expect(await asked(other.api, 'money')).toEqual([theirs])
    expect((await asked(api, 'money', { user: 'ada' })).toSorted()).toEqual(
      [ada, retracted, deleted, expiring].toSorted(),
    )
    expect(await asked(api, 'money', { user: 'bob' })).toEqual([bob])
    expect(await asked(api, 'money', { user: 'nobody' })).toEqual([])
    expect(await asked(api, 'money', { session_id: bob! })).toEqual([bob])
    expect(await asked(api, 'money', { role: 'assistant' })).toEqual([])
    expect(await asked(api, 'money', { kind: 'event' })).toEqual([])
    expect(await asked(api, 'money', { to: '2020-01-01T00:00:00Z' })).toEqual([])
    expect(await asked(api, 'money', { filter_by_configs: '{"agent":"none"}' })).toEqual([])
    expectOk(await api.request('POST', `/api/v1/session/${retracted}/retractions`, { body: { last: 1 } }))
    expectOk(await api.request('DELETE', `/api/v1/session/${deleted}`))
    await execute(service.databaseUrl, `UPDATE sessions SET expires_in_s = 1 WHERE id = '${expiring}'`)
    await vi.waitFor(async () => expect(await asked(api, 'money', { user: 'ada' })).toEqual([ada]), TIMES)
    expect((await vectorsIn(id)).map(({ session_id }) => session_id)).not.toContain(deleted)
    expectOk(await api.request('DELETE', '/api/v1/user/eve'))
    expect((await asked(api, 'money')).toSorted()).toEqual([ada, bob].toSorted())
    const body = { name: 'masked', scopes: ['read'], masked: true }
    const admin = service.adminClient()
    const masked = expectOk(
      await admin.request<{ token: string }>('POST', `/admin/v1/projects/${id}/tokens`, { body }),
      201,
    )
    const reader = await service.newClient({ token: masked.token, node })
    expect(await ask(reader, 'money')).toMatchObject({ items: [] })
    expect(Object.keys(await ask(reader, 'money'))).not.toContain('vectors')
    const token = await tokenFor(api, { session_id: bob! }, ['read'])
    const narrow = await service.newClient({ token, node })
    expectError(
      await narrow.request('GET', '/api/v1/search', { query: { mode: 'recall', q: 'money' } }),
      403,
      'insufficient_scope',
    )
    await switchSearch(service.adminClient(), id, false)
    await untilEmbedded(id, 0)
    expect(await vectorsIn(other.id)).toHaveLength(1)
  })

  it('find all that may be seen and nothing that is hidden, whatever is stored, asked and done to it', async () => {
    const words = ['reimbursement', 'kitten', 'plane', 'kettle', 'seat', 'naïve', '東京駅']
    const anyText = fc
      .array(fc.constantFrom(...words), { minLength: 1, maxLength: 4 })
      .map((said) => said.join(' '))
    const anySession = fc.record({
      lines: fc.array(anyText, { minLength: 1, maxLength: 3 }),
      user: fc.constantFrom('ada', 'bo', undefined),
      fate: fc.constantFrom('kept', 'kept', 'copied', 'retracted', 'expired', 'deleted', 'erased'),
    })
    const projects = await Promise.all([newProject(), newProject()])
    const seen = projects.map(() => new Map<string, string | undefined>())
    for (const [index, { api, id: project_id }] of projects.entries()) {
      const sessions = await Promise.all(
        fc.sample(anySession, 14).map(async (one) => {
          const id = await store(api, one.lines, one.fate === 'erased' ? 'gone' : one.user)
          return { ...one, id, ids: [id] }
        }),
      )
      for (const one of sessions.filter(({ fate }) => fate === 'copied')) {
        const path = `/api/v1/session/${one.id}/copy`
        const made = await api.request<{ new_session_id: string }>('POST', path, { body: {} })
        one.ids.push(expectOk(made).new_session_id)
      }
      const count = sessions.reduce((sum, { lines, ids }) => sum + lines.length * ids.length, 0)
      await untilEmbedded(project_id, count)
      await untilIndexed(api)
      for (const { id, ids, fate, lines, user } of sessions) {
        const path = `/api/v1/session/${id}`
        if (fate === 'retracted')
          expectOk(await api.request('POST', `${path}/retractions`, { body: { after_seq: 1 } }))
        if (fate === 'expired') {
          const old = "UPDATE session_heads SET updated_at = now() - interval '1 day' WHERE session_id = $1"
          expectOk(await api.request('PATCH', path, { body: { expires_in_s: 60 } }))
          await execute(service.databaseUrl, old, [id])
        }
        if (fate === 'deleted') expectOk(await api.request('DELETE', path))
        const left: Record<string, number> = { kept: 3, copied: 3, retracted: 1 }
        const there = lines.slice(0, left[fate] ?? 0)
        for (const id of ids) for (const at of there.keys()) seen[index]!.set(`${id} ${at + 1}`, user)
      }
      if (sessions.some(({ fate }) => fate === 'erased'))
        expectOk(await api.request('DELETE', '/api/v1/user/gone'))
    }
    const check = async (q: string, user: string | undefined) => {
      for (const [index, { api }] of projects.entries()) {
        const query = { limit: 50, ...(user && { user }) }
        const { items, vectors } = await ask(api, q, { ...query, group: 'entry' })
        expect(vectors).not.toBe('unavailable')
        const visible = [...seen[index]!].flatMap(([place, owner]) =>
          !user || owner === user ? [place] : [],
        )
        // The event that notes a retraction has no vector, and can be found by its words only.
        expect(items.map(({ session_id, seq }) => `${session_id} ${seq}`).toSorted()).toEqual(
          visible.toSorted(),
        )
        const ids = new Set(visible.map((place) => place.split(' ')[0]))
        const sessions = (await ask(api, q, query)).items
        expect(new Set(sessions.map(({ session_id }) => session_id))).toEqual(ids)
      }
    }
    await fc.assert(fc.asyncProperty(anyText, fc.constantFrom('ada', 'bo', undefined), check), {
      numRuns: 25,
    })
    for (const [index, { id }] of projects.entries()) {
      const left = new Set((await vectorsIn(id)).map(({ session_id }) => session_id))
      for (const place of seen[index]!.keys()) expect(left).toContain(place.split(' ')[0])
    }
  })

  it('are left out of an answer while the model hangs or fails, and neither words nor other projects wait', async () => {
    const { api, id } = await newProject()
    const cat = await store(api, ['A kitten and a ball.'])
    await untilEmbedded(id, 1)
    const failures = [
      () => 'silent' as const,
      () => ({ status: 429 }),
      () => ({ status: 307, location: 'http://169.254.169.254/' }),
      () => ({ body: '{"data":[]}' }),
      (texts: string[]) => ({ body: vectorsOf(texts, 64).replaceAll(/0\.\d+/g, 'NaN') }),
      (texts: string[]) => ({ body: vectorsOf(texts, 32) }),
      (texts: string[]) => ({ body: vectorsOf(texts, 64) + ' '.repeat(10_000_000) }),
    ]
    for (const [index, failure] of failures.entries()) {
      model.script = failure
      const began = performance.now()
      // Its words are there, and those of what is stored meanwhile.
      await store(api, [`Number ${index} is a kitten, too.`])
      await untilIndexed(api)
      const answer = await ask(api, 'kitten', { limit: 50 })
      expect(answer.vectors).toBe('unavailable')
      expect(answer.items.length).toBeGreaterThanOrEqual(index + 1)
      expect(answer.items.map(({ session_id }) => session_id)).toContain(cat)
      expect(performance.now() - began).toBeLessThan(15_000)
    }
    model.script = () => 'vectors'
    await vi.waitFor(async () => expect(await vectorsIn(id)).toHaveLength(failures.length + 1), 120_000)
    expect(new Set((await vectorsIn(id)).map((row) => row.model))).toEqual(new Set(['64 scripted']))
    await vi.waitFor(async () => expect((await ask(api, 'feline')).vectors).toBe('used'), TIMES)
  }, 300_000)

  it('are made of all other texts when the model fails at one, which is skipped and counted', async () => {
    const { api, id } = await newProject()
    const isPoison = (text: string) => text.includes('poison')
    model.script = (texts) => (texts.some(isPoison) ? { status: 500 } : 'vectors')
    const lines = Array.from({ length: 70 }, (_, index) =>
      index === 41 ? 'poison' : `Line ${index} of a plane.`,
    )
    const session = await store(api, lines)
    await untilEmbedded(id, 69)
    expect((await vectorsIn(id)).map(({ seq }) => seq)).not.toContain(42)
    expect((await asked(api, 'aviation'))[0]).toBe(session)
    const metrics = await (await fetch(`${node.url}/metrics`)).text()
    expect(metrics).toContain('annals_embeddings_skipped_total 1\n')
    model.script = () => 'vectors'
  })

  it('are made anew for another model, of another length, never mixed, and erased where none is named', async () => {
    const { api, id, token } = await newProject()
    const session = await store(api, ['The plane is late.', 'Sorry.'])
    await untilEmbedded(id, 2)
    model.dimension = 128
    await node.stop()
    node = await startWith('another')
    const client = await service.newClient({ token, node })
    await vi.waitFor(async () => {
      const rows = await vectorsIn(id)
      expect(rows.map((row) => row.model)).toEqual(['128 another', '128 another'])
    }, TIMES)
    expect(await asked(client, 'aircraft')).toEqual([session])
    await vi.waitFor(async () => expect((await ask(client, 'aircraft')).vectors).toBe('used'), TIMES)
    await service.startNode()
    await untilEmbedded(id, 0)
  })
})
