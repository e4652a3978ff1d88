import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { useTransfers } from '../harness/exports.ts'
import type { Query } from '../harness/http_client.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'

const service = useSharedService()
const transfers = useTransfers(service)
let project: Project
let api: ApiClient
let other: ApiClient

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
  other = await service.newClient({ token: project.token, node: service.secondNode })
})

interface Figures {
  name: string
  calls: number
  failures: number
  unanswered: number
  sessions: number
  p50_ms: number | null
  p95_ms: number | null
  complete: boolean
  groups: Array<{
    message: string
    failures: number
    sessions: number
    examples: Array<Record<string, unknown>>
  }>
}

/** Complete, however long that takes on a busy machine. */
async function counted<T extends { complete: boolean }>(read: () => Promise<T>): Promise<T> {
  for (;;) {
    const answer = await read()
    if (answer.complete) return answer
  }
}
const toolsOf = (query: Query = {}) =>
  counted(async () =>
    expectOk(await other.request<{ items: Figures[]; complete: boolean }>('GET', '/api/v1/tools', { query })),
  )
const toolOf = (name: string, query: Query = {}) =>
  counted(async () =>
    expectOk(await api.request<Figures>('GET', `/api/v1/tools/${encodeURIComponent(name)}`, { query })),
  )
const call = (name: string, call_id: string, more: object = {}) => ({
  kind: 'event',
  type: 'tool_call',
  data: { name, call_id, arguments: {} },
  ...more,
})
const result = (call_id: string, text: string, more: object = {}) => ({
  kind: 'event',
  type: 'tool_result',
  data: { call_id, result: text },
  ...more,
})
const said = (content: string) => ({ kind: 'message', blob: { role: 'assistant', content } })

describe('the calls of tools', { timeout: 120_000 }, () => {
  it('are counted exactly, however much else is in the logs, and failures by what they have in common', async () => {
    expect(await toolsOf()).toMatchObject({ items: [], has_more: false, counted_from: null, indexing: null })
    let calls = 0
    const sessions: string[] = []
    for (let session = 0; session < 4; session++) {
      const log = await newSessionLog(api, { user: `user ${session % 2}`, configs: { agent: `a${session}` } })
      sessions.push(log.id)
      const entries: object[] = []
      const of = session === 0 ? 76 : 75
      for (let index = 0; index < of; index++) {
        const id = `c${calls++}`
        const at = (ms: number) =>
          new Date(Date.UTC(2026, 0, 1 + session) + index * 10_000 + ms).toISOString()
        const failed = calls % 10 === 0 && calls < 291
        entries.push(call('run', id, { occurred_at: at(0) }))
        for (let n = 0; n < 7; n++) entries.push({ kind: 'event', type: 'progress', data: { n } })
        entries.push(result(id, failed ? `Error: no file "${id}"` : 'fine', { occurred_at: at(2_000) }))
        if (failed) entries.push(said(`Sorry for ${id}.`))
      }
      for (let from = 0; from < entries.length; from += 100)
        expectOk(await log.batch(entries.slice(from, from + 100)), 201)
    }
    const run = {
      name: 'run',
      calls: 301,
      failures: 29,
      unanswered: 0,
      sessions: 4,
      p50_ms: 2_000,
      p95_ms: 2_000,
    }
    expect((await toolsOf()).items).toMatchObject([run])
    const { groups } = await toolOf('run')
    expect(groups).toMatchObject([{ message: 'no file …', failures: 29, sessions: 4 }])
    expect(groups[0]!.examples).toHaveLength(3)
    expect(groups[0]!.examples[0]).toMatchObject({
      session_id: sessions[3],
      result: 'Error: no file "c289"',
      said: { text: 'Sorry for c289.' },
    })
    expect((await toolsOf({ user: 'user 0' })).items).toMatchObject([{ calls: 151, sessions: 2 }])
    expect((await toolsOf({ filter_by_configs: '{"agent":"a3"}' })).items).toMatchObject([{ calls: 75 }])
    expect((await toolsOf({ user: 'nobody' })).items).toEqual([])
    const from = '2026-01-02T00:00:00Z'
    expect((await toolsOf({ from, to: '2026-01-03T00:00:00Z' })).items).toMatchObject([{ calls: 75 }])
    expect(await toolOf('run', { to: from })).toMatchObject({ calls: 76, failures: 7 })
    expect(await toolOf('a/b c')).toMatchObject({ name: 'a/b c', calls: 0, groups: [], p50_ms: null })
    const stranger = await service.newClient()
    expect(expectOk(await stranger.request('GET', '/api/v1/tools'))).toMatchObject({ items: [] })
    expect((await transfers.run('verify', '--project', project.name)).code).toBe(0)
  })

  it('fail by their cause, however far down a long report names it', async () => {
    const log = await newSessionLog(api)
    const steps = Array.from({ length: 20 }, (_, at) => `  File "/srv/step_${at}.py", line ${at}, in run`)
    const reportOf = (cause: string) => ['Traceback (most recent call last):', ...steps, cause].join('\n')
    const entries = [
      call('selftest', 'r1'),
      result('r1', reportOf('ValueError: no doors in house 7')),
      call('selftest', 'r2'),
      result('r2', reportOf('ValueError: no doors in house 8')),
      call('selftest', 'r3'),
      result('r3', reportOf('KeyError: knob')),
    ]
    expectOk(await log.batch(entries), 201)
    const { groups } = await toolOf('selftest')
    expect(groups.map(({ message, failures }) => [message, failures])).toEqual([
      ['ValueError: no doors in house …', 2],
      ['KeyError: knob', 1],
    ])
    expect(groups[1]!.examples[0]!.result).toMatch(/^Traceback [\s\S]*\n…\nKeyError: knob$/)
  })

  it('follow the log: open, answered, retracted, replaced, copied and deleted', async () => {
    const configs = { agent: 'grows' }
    const query = { filter_by_configs: JSON.stringify(configs) }
    const log = await newSessionLog(api, { configs })
    const now = async () => (await toolsOf(query)).items[0]
    expectOk(await log.batch([call('pay', 'x')]), 201)
    expect(await now()).toMatchObject({ calls: 1, failures: 0, unanswered: 1 })
    expectOk(await log.batch([result('x', 'Error: no money')]), 201)
    expect(await now()).toMatchObject({ calls: 1, failures: 1, unanswered: 0 })
    expectOk(await log.batch([said('There is no money.')]), 201)
    const [{ examples }] = (await toolOf('pay', query)).groups as [Figures['groups'][number]]
    expect(examples).toMatchObject([{ seq: 1, result_seq: 2, said: { seq: 3, text: 'There is no money.' } }])
    const { new_session_id } = expectOk(await log.copy())
    expect(await now()).toMatchObject({ calls: 1, failures: 1, sessions: 1 })
    const retract = (body: object) => api.request('POST', `/api/v1/session/${log.id}/retractions`, { body })
    expectOk(await retract({ after_seq: 1, entries: [result('x', 'paid')] }))
    expect(await now()).toMatchObject({ calls: 1, failures: 0, unanswered: 0 })
    expect(await toolOf('pay', query)).toMatchObject({ failures: 0, groups: [] })
    expectOk(await retract({ after_seq: 0 }))
    expect(await now()).toBeUndefined()
    // What the copy has of its own is counted there.
    const copied = { entries: [call('pay', 'y'), result('y', 'paid')] }
    expectOk(await api.request('POST', `/api/v1/session/${new_session_id}/entries`, { body: copied }), 201)
    expect(await now()).toMatchObject({ calls: 1, failures: 0, sessions: 1 })
    expectOk(await api.deleteSession(new_session_id))
    expect(await now()).toBeUndefined()
  })

  it('are asked for by what exists', async () => {
    const refused = await api.request('GET', '/api/v1/tools', { query: { from: 'yesterday' } })
    expectError(refused, 400, 'invalid_request', 'from')
    expectError(await api.request('GET', '/api/v1/tools?limit=0'), 400, 'invalid_request', 'limit')
  })
})
