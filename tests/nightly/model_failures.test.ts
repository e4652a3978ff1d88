import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { type Asked, type Reply, startModelServer } from '../../lab/model_server.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { learnerOf, user } from '../harness/model_project.ts'
import { freePort } from '../harness/pgbouncer.ts'
import { useService } from '../harness/service.ts'
import { queryRows } from '../harness/sql.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'

const EMPTY: Reply = { answer: { statements: [] } }
const model = await startModelServer(() => EMPTY)
afterAll(() => model.close())
const service = useService({
  ANNALS_MODEL_URL: model.url,
  ANNALS_MODEL: 'scripted',
  ANNALS_MODEL_KEY: 'key',
  ANNALS_MODEL_MS_MAX: '1000',
})

const textOf = ({ data }: Asked) => data.runs![0]!.entries[0]!.text

/** What the server does, and what the session says of it. */
const FAILURES: Record<string, { reply: Reply; error: string }> = {
  'a lost connection': { reply: 'reset', error: 'could not be reached' },
  'no answer': { reply: 'silent', error: 'did not answer within 1 s' },
  'a slow stream': { reply: 'drip', error: 'did not answer within 1 s' },
  'an exhausted quota': { reply: { status: 429 }, error: 'answered 429: its quota or rate is exhausted' },
  'a wrong key': { reply: { status: 401 }, error: 'answered 401: check its key, URL and name' },
  'its own error': { reply: { status: 500, body: '<h1>' }, error: 'answered 500' },
  'a refusal of the input': { reply: { status: 400 }, error: 'answered 400' },
  'cut JSON': { reply: { content: '{"statements":[{"kind' }, error: 'not what it was asked for, at "/"' },
  'another shape': { reply: { answer: { statements: [{ kind: 'law' }] } }, error: 'at "/statements/0' },
  'an answer that was cut off': { reply: { content: '{}', finish_reason: 'length' }, error: 'too long' },
  'a page': { reply: { body: '<html>welcome</html>' }, error: 'not JSON' },
  'no choices': { reply: { body: '{"choices":{}}' }, error: 'gave no answer' },
  'an endless answer': { reply: 'endless', error: 'answered too much' },
}

// In a database that all files share, nodes without a model take up these sessions too.
const withOwnDatabase = describe.skipIf(reasonForNoOwnDatabase())

withOwnDatabase('a model that fails', () => {
  it('is told of in the session, disturbs no request, and is tried again by itself', async () => {
    const newLearner = async () => {
      const { id, token } = await service.newProject()
      return { project_id: id, ...learnerOf(service.databaseUrl, await service.newClient({ token }), id) }
    }
    const [learner, away] = [await newLearner(), await newLearner()]
    const setModel = async (url: string) => {
      const body = { model: { url, name: 'scripted' } }
      const path = `/admin/v1/projects/${away.project_id}`
      expectOk(await service.adminClient().request('PATCH', path, { body }))
    }
    await setModel(`http://127.0.0.1:${await freePort()}/v1`)
    let healed = false
    model.script = (asked) => (healed ? EMPTY : FAILURES[textOf(asked)]!.reply)
    const begin = async (
      { newSpace, addRun, api, reflected }: typeof learner,
      text: string,
      error: string,
    ) => {
      const space = await newSpace('suggest')
      const session = await addRun(space, 'ada', [user(text)], { reward: 1 })
      const path = `/api/v1/learning_spaces/${space}/sessions/${session}`
      return {
        text,
        error,
        read: () => api.request<Read>('GET', path),
        ended: () => reflected(space, session),
      }
    }
    const begun = await Promise.all([
      ...Object.entries(FAILURES).map(([name, { error }]) => begin(learner, name, error)),
      begin(away, 'nobody is there', 'could not be reached'),
    ])
    const neighbour = appendUntil(await service.newClient(), () => healed)
    for (const { text, error, read } of begun)
      await vi.waitFor(async () => expect(expectOk(await read()).error, text).toContain(error), 40_000)
    const logged = service.node.logLines.join('\n')
    expect(logged).not.toContain('learning will be tried again')
    healed = true
    await setModel(model.url)
    for (const { ended } of begun) await ended()
    expect(await neighbour).toBeGreaterThan(0)
  })
})

interface Read {
  error: string | null
}

/** Appends, one event after the other, and gives how many; each must be stored. */
async function appendUntil(api: ApiClient, isOver: () => boolean): Promise<number> {
  const { id } = expectOk(await api.createSession({}), 201)
  let stored = 0
  while (!isOver()) {
    const { seq } = expectOk(await api.appendEvent(id, { type: 'note', data: {} }))
    stored += 1
    expect(seq).toBe(stored)
  }
  return stored
}

withOwnDatabase('a node that is killed while it learns', () => {
  it('loses no session, applies nothing twice, and sends no input again that was answered', async () => {
    const project = await service.newProject()
    const learner = learnerOf(
      service.databaseUrl,
      await service.newClient({ token: project.token }),
      project.id,
    )
    const space = await learner.newSpace('suggest')
    model.asked.length = 0
    model.script = async (asked) => {
      await sleep(60)
      if (asked.step === 'curate')
        return {
          answer: {
            decisions: asked.data.candidates!.map(({ number }) => ({
              candidate: number,
              action: 'support',
              statement: 0,
            })),
          },
        }
      const cites = [{ run: 'A', seq: 1, quote: 'I have seen it' }]
      return { answer: { statements: [{ kind: 'fact', text: 'Gates close early.', tool: null, cites }] } }
    }
    let node = service.node
    const numbers = Array.from({ length: 24 }, (_, number) => `I have seen it ${number}.`)
    const sessions = new Map<string, string>()
    for (const text of numbers)
      sessions.set(await learner.addRun(space, 'ada', [{ role: 'assistant', content: text }]), text)
    const rows = (sql: string) => queryRows(service.databaseUrl, sql, [project.id])
    for (const progress of [5, 20]) {
      await vi.waitFor(() => expect(model.asked.length).toBeGreaterThan(progress), {
        timeout: 40_000,
        interval: 5,
      })
      await node.kill()
      const answered = await rows(
        "SELECT session_id, step FROM learning_calls WHERE project_id = $1 AND status IN ('answered', 'applied') AND step = 'reflect'",
      )
      expect(answered).not.toEqual([])
      const texts = new Set(answered.map(({ session_id }) => sessions.get(session_id)))
      const before = model.asked.length
      node = await service.startNode()
      await vi.waitFor(() => expect(model.asked.length).toBeGreaterThan(before), 40_000)
      const again = model.asked.slice(before).filter(({ step }) => step === 'reflect')
      expect(again.filter((asked) => texts.has(textOf(asked)))).toEqual([])
    }
    await vi.waitFor(async () => {
      const left = await rows(
        "SELECT session_id FROM space_sessions WHERE project_id = $1 AND status <> 'completed'",
      )
      expect(left).toEqual([])
    }, 60_000)
    const statements = await rows('SELECT supports, text FROM statements WHERE project_id = $1')
    expect(statements).toEqual([{ supports: 24, text: 'Gates close early.' }])
    const calls = await rows(
      "SELECT count(*)::int AS calls, sum(attempts)::int AS attempts FROM learning_calls WHERE project_id = $1 AND status = 'applied'",
    )
    // One that was under way at a kill is sent once more.
    expect(calls[0]!.attempts).toBeLessThanOrEqual(calls[0]!.calls + 2)
    expect(model.asked.length).toBe(calls[0]!.attempts)
  })
})
