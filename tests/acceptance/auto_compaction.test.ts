import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { summing } from '../../lab/model_scripts.ts'
import { conversation, toldIn } from '../../packages/messages/test/fit/conversations.ts'
import { brokenRules } from '../../packages/messages/test/fit/provider_rules.ts'
import type { ApiClient, SessionEvent } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { agent, calls, result, useModelProjects, user, useScriptedModels } from '../harness/model_project.ts'
import { useSharedService } from '../harness/service.ts'
import { queryRows } from '../harness/sql.ts'

const FORMATS = ['openai', 'anthropic', 'gemini', 'acontext', 'responses'] as const

const service = useSharedService()
const newModel = useScriptedModels()
const newModelProject = useModelProjects(service)

interface Context {
  items: Array<{ role: string; content: string; tool_calls?: unknown[]; tool_call_id?: string }>
  tokens: number
  compaction_seq: number
}

const words = (text: string, count = 400) => `${text} ${'word '.repeat(count)}`
const turns = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => [
    user(words(`question ${from + n}`)),
    agent(words(`answer ${from + n}`)),
  ]).flat()

const setTokens = (project_id: string, auto_compact_tokens: number | null) =>
  service
    .adminClient()
    .request('PATCH', `/admin/v1/projects/${project_id}`, { body: { auto_compact_tokens } })

/** A project with a model, whose contexts may have so many tokens. */
async function compactingProject(tokens: number | null = 4_000) {
  const made = await newModelProject(summing)
  expect(expectOk(await setTokens(made.project.id, tokens))).toMatchObject({ auto_compact_tokens: tokens })
  return { ...made, ...loggingWith(made.api, made.project.id) }
}

function loggingWith(api: ApiClient, project_id: string) {
  const newSession = async (blobs: object[], format = 'openai') => {
    const { id } = expectOk(await api.createSession({}), 201)
    await add(id, blobs, format)
    return id
  }
  const add = async (id: string, blobs: object[], format = 'openai') => {
    const entries = blobs.map((blob) => ({ kind: 'message', format, blob }))
    return expectOk<{ items: Array<{ id: string; seq: number }> }>(
      await api.request('POST', `/api/v1/session/${id}/entries`, { body: { entries } }),
      201,
    ).items
  }
  const contextOf = async (id: string, query = '') =>
    expectOk<Context>(await api.request('GET', `/api/v1/session/${id}/context?${query}`))
  const compactions = async (id: string) =>
    expectOk<{ items: Array<SessionEvent & { retracted_by?: number }> }>(
      await api.request('GET', `/api/v1/session/${id}/timeline?type=annals.compaction&limit=200`),
    ).items
  /** Until the service has looked at all that changed, and nothing waits for a summary. */
  const settled = () =>
    vi.waitFor(
      async () => {
        const left = await queryRows(
          service.databaseUrl,
          `SELECT session_id FROM change_marks WHERE project_id = $1 AND consumer = 'compaction'
          UNION ALL SELECT session_id FROM auto_compactions WHERE project_id = $1 AND due_at IS NOT NULL`,
          [project_id],
        )
        expect(left).toEqual([])
      },
      { timeout: 100_000, interval: 100 },
    )
  return { newSession, add, contextOf, compactions, settled, request: api.request.bind(api) }
}

describe('auto_compact_tokens', { timeout: 120_000 }, () => {
  it('has the model summarise a session whose context is longer, once, and keeps its newest turns', async () => {
    const { newSession, add, contextOf, compactions, settled, model, project } = await compactingProject()
    const session = await newSession([{ role: 'system', content: 'Be brief.' }, ...turns(0, 4)])
    await settled()
    expect(model.asked).toEqual([])
    await add(session, turns(4, 6))
    await settled()
    const [event, ...others] = await compactions(session)
    expect(others).toEqual([])
    expect(event).toMatchObject({ data: { from_seq: 1, to_seq: 9, by: 'annals', model: 'scripted' } })
    const { items, compaction_seq, tokens } = await contextOf(session)
    expect(compaction_seq).toBe(event!.seq)
    expect(items.map(({ content }) => content.slice(0, 10).trim())).toEqual([
      ...['Be brief.', 'Summary of', 'question 4', 'answer 4 w', 'question 5', 'answer 5 w'],
    ])
    expect(items[1]!.content).toMatch(/\n\n8 entries from 2 to 9$/)
    expect(tokens).toBeLessThan(4_000 / 2 + 200)
    expect(model.asked.map(({ step, data }) => [step, data.entries!.map(({ by }) => by).join(' ')])).toEqual([
      ['compact', 'user agent user agent user agent user agent'],
    ])
    expect(model.asked[0]!.prompt.user).not.toContain('Be brief.')
    const ledger = await queryRows(
      service.databaseUrl,
      'SELECT step, status, answer, attempts, session_id, learning_space_id FROM learning_calls WHERE project_id = $1',
      [project.id],
    )
    const paid = {
      status: 'applied',
      answer: null,
      attempts: 1,
      session_id: session,
      learning_space_id: null,
    }
    expect(ledger).toEqual([{ step: 'compact', ...paid }])
  })

  it('goes on from the summary before, and covers what it covers', async () => {
    const { newSession, add, contextOf, compactions, settled, model } = await compactingProject()
    const session = await newSession(turns(0, 6))
    await settled()
    await add(session, turns(6, 10))
    await settled()
    const events = await compactions(session)
    expect(events.map(({ data }) => (data as { to_seq: number }).to_seq)).toEqual([8, 17])
    expect(model.asked).toHaveLength(2)
    expect(model.asked[1]!.data.earlier![0]).toMatch(/8 entries from 1 to 8$/)
    const { items } = await contextOf(session)
    expect(items[0]!.content).toMatch(/8 entries from 1 to 8; 8 entries from 9 to 17$/)
  })

  it('sums up what no prompt has room for part by part, each with the summary before', async () => {
    const { newSession, contextOf, compactions, settled, model } = await compactingProject(20_000)
    const session = await newSession(turns(0, 40))
    await settled()
    const seqs = (await compactions(session)).map(({ data }) => (data as { to_seq: number }).to_seq)
    expect(seqs.length).toBeGreaterThan(1)
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b))
    expect(model.asked).toHaveLength(seqs.length)
    for (const { prompt } of model.asked) expect(prompt.user.length).toBeLessThan(120_000)
    // Each entry was shown once, up to where the newest turns begin.
    expect(model.asked.flatMap(({ data }) => data.entries!.map(({ seq }) => seq))).toEqual(
      Array.from({ length: seqs.at(-1)! }, (_, n) => n + 1),
    )
    expect((await contextOf(session)).tokens).toBeLessThan(20_000 / 2 + 500)
  })

  it('asks no model, and stores nothing, where it is off or the project has no model', async () => {
    const off = await compactingProject(null)
    const session = await off.newSession(turns(0, 8))
    const bare = await service.newProject()
    expectOk(await setTokens(bare.id, 4_000))
    const without = loggingWith(await service.newClient({ token: bare.token }), bare.id)
    const other = await without.newSession(turns(0, 8))
    // Both nodes look for what is due every two seconds.
    await vi.waitFor(
      async () => {
        const waiting = await queryRows(
          service.databaseUrl,
          "SELECT session_id, due_at < now() - interval '6 s' AS is_long_due FROM auto_compactions WHERE project_id = ANY ($1)",
          [[bare.id, off.project.id]],
        )
        expect(waiting).toEqual([{ session_id: other, is_long_due: true }])
      },
      { timeout: 100_000, interval: 200 },
    )
    const path = `/api/v1/session/${other}/token_counts`
    expect(expectOk(await without.request('GET', path))).toMatchObject({ auto_compaction: 'waits' })
    expect(off.model.asked).toEqual([])
    expect([...(await off.compactions(session)), ...(await without.compactions(other))]).toEqual([])
    const sent = await queryRows(
      service.databaseUrl,
      'SELECT id FROM learning_calls WHERE project_id = ANY ($1)',
      [[bare.id, off.project.id]],
    )
    expect(sent).toEqual([])
    // A model, from now on, takes up what waits; and what waits is gone when it is switched off.
    const model = await newModel(summing)
    const body = { model: { url: model.url, name: 'later' } }
    expectOk(await service.adminClient().request('PATCH', `/admin/v1/projects/${bare.id}`, { body }))
    await without.settled()
    expect(await without.compactions(other)).toMatchObject([{ data: { model: 'later' } }])
    expectOk(await setTokens(bare.id, null))
    await vi.waitFor(
      async () =>
        expect(
          await queryRows(service.databaseUrl, 'SELECT 1 FROM auto_compactions WHERE project_id = $1', [
            bare.id,
          ]),
        ).toEqual([]),
      100_000,
    )
  })

  it('keeps the question, and never parts a call from its result, of a turn that is too long by itself', async () => {
    const { newSession, contextOf, compactions, settled } = await compactingProject()
    const steps = Array.from({ length: 12 }, (_, n) => [
      calls('look', { n }, `c${n}`),
      result(words(`result ${n}`), `c${n}`),
    ]).flat()
    const session = await newSession([user('Look twelve times.'), ...steps])
    await settled()
    const events = await compactions(session)
    expect(events.length).toBeGreaterThan(0)
    expect(events.at(-1)!.data).toMatchObject({ except_seqs: [1] })
    const { items, tokens } = await contextOf(session)
    expect(items[0]!.content).toContain('Summary of')
    expect(items[1]!.content).toBe('Look twelve times.')
    expect(items[2]!.tool_calls).toHaveLength(1)
    expect(items.filter(({ tool_call_id }) => tool_call_id)).toHaveLength(
      items.filter((item) => item.tool_calls).length,
    )
    expect(tokens).toBeLessThan(4_000)
    for (const format of FORMATS)
      expect(brokenRules(format, (await contextOf(session, `format=${format}`)).items)).toEqual([])
  })

  it('takes a summary back with what is retracted, pays for another one, and writes none again that a person took back', async () => {
    const { newSession, contextOf, compactions, settled, api, model } = await compactingProject()
    const session = await newSession(turns(0, 6))
    await settled()
    const retract = async (id: string) =>
      expectOk(await api.request('POST', `/api/v1/session/${session}/retractions`, { body: { ids: [id] } }))
    const { items } = expectOk<{ items: Array<{ id: string }> }>(
      await api.request('GET', `/api/v1/session/${session}/timeline`),
    )
    await retract(items[2]!.id)
    expect((await contextOf(session)).compaction_seq).toBe(0)
    await settled()
    const [first, second, ...others] = await compactions(session)
    expect(others).toEqual([])
    expect(first!.retracted_by).toBeGreaterThan(0)
    expect(second!.data).toMatchObject({ to_seq: 8 })
    expect(model.asked).toHaveLength(2)
    expect(model.asked[1]!.data.entries!.map(({ seq }) => seq)).toEqual([1, 2, 4, 5, 6, 7, 8])
    await retract(second!.id)
    await settled()
    expect((await contextOf(session)).compaction_seq).toBe(0)
    expect(model.asked).toHaveLength(2)
  })

  it('is seen while it is written, and is not stored over what is retracted meanwhile', async () => {
    const { newSession, compactions, contextOf, settled, api, model } = await compactingProject()
    let mayAnswer = false
    model.script = async (asked) => {
      await vi.waitUntil(() => mayAnswer, { timeout: 100_000 })
      return summing(asked)
    }
    const session = await newSession(turns(0, 6))
    const state = async () =>
      expectOk<{ auto_compaction?: string }>(
        await api.request('GET', `/api/v1/session/${session}/token_counts`),
      ).auto_compaction
    await vi.waitUntil(() => model.asked.length > 0, { timeout: 100_000 })
    expect(await state()).toBe('running')
    const { items } = expectOk<{ items: Array<{ id: string }> }>(
      await api.request('GET', `/api/v1/session/${session}/timeline`),
    )
    const body = { ids: [items[2]!.id] }
    expectOk(await api.request('POST', `/api/v1/session/${session}/retractions`, { body }))
    mayAnswer = true
    await settled()
    expect(await state()).toBe(undefined)
    const [event, ...others] = await compactions(session)
    expect(others).toEqual([])
    expect(event!.retracted_by).toBe(undefined)
    expect((await contextOf(session)).compaction_seq).toBe(event!.seq)
    expect(model.asked.map(({ data }) => data.entries!.some(({ seq }) => seq === 3))).toEqual([true, false])
  })

  it('is seen to have failed, after three unusable answers', async () => {
    const { newSession, settled, api, model } = await compactingProject()
    model.script = () => ({ answer: { nothing: true } })
    const session = await newSession(turns(0, 6))
    await vi.waitUntil(() => model.asked.length > 0, { timeout: 100_000 })
    await settled()
    expect(model.asked).toHaveLength(3)
    const path = `/api/v1/session/${session}/token_counts`
    expect(expectOk(await api.request('GET', path))).toMatchObject({ auto_compaction: 'failed' })
  })

  it('is erased with the session: nothing of the summary is left', async () => {
    const { newSession, compactions, settled, api, model, project } = await compactingProject()
    model.script = () => ({ answer: { summary: 'Ada wants seat 77Q.' } })
    const session = await newSession(turns(0, 6))
    await settled()
    expect(JSON.stringify(await compactions(session))).toContain('77Q')
    expectOk(await api.request('DELETE', `/api/v1/session/${session}`))
    const left = await queryRows(
      service.databaseUrl,
      `SELECT to_jsonb(c) AS row FROM learning_calls c WHERE c.project_id = $1
      UNION ALL SELECT to_jsonb(a) FROM auto_compactions a WHERE a.project_id = $1
      UNION ALL SELECT to_jsonb(e) FROM entries e WHERE e.project_id = $1`,
      [project.id],
    )
    expect(JSON.stringify(left)).not.toContain('77Q')
    expect(left).toEqual([
      { row: expect.objectContaining({ step: 'compact', session_id: null, answer: null }) },
    ])
    expect(left[0]!.row.tokens_in).toBeGreaterThan(0)
  })

  it('gives contexts that each provider takes, of any conversation', async () => {
    const { newSession, add, contextOf, compactions, settled } = await compactingProject()
    const told = fc.sample(conversation, { numRuns: 15, seed: 8 }).map((steps, nth) => {
      const format = FORMATS[nth % FORMATS.length]!
      return { format, blobs: toldIn(format, steps) }
    })
    const sessions = await Promise.all(
      told.map(async ({ format, blobs }) => {
        const session = await newSession(turns(0, 2))
        for (let n = 0; n < blobs.length; n += 3) {
          await add(session, blobs.slice(n, n + 3), format)
          await add(session, [n % 2 === 0 ? agent(words(`said ${n}`)) : user(words(`asked ${n}`))])
        }
        await add(session, turns(2, 5))
        return session
      }),
    )
    await settled()
    for (const session of sessions) {
      expect((await compactions(session)).length).toBeGreaterThan(0)
      for (const format of FORMATS)
        expect(brokenRules(format, (await contextOf(session, `format=${format}`)).items)).toEqual([])
    }
  })

  it('must leave room for a summary', async () => {
    const { id } = await service.newProject()
    expectError(await setTokens(id, 3_999), 400, 'invalid_request', '/auto_compact_tokens')
  })
})
