import { describe, expect, it } from 'vitest'
import { gullible } from '../../lab/model_scripts.ts'
import { watchEventLoop } from '../harness/event_loop_watch.ts'
import { expectOk } from '../harness/expectations.ts'
import { agent, planted, useModelProjects, user } from '../harness/model_project.ts'
import { useService } from '../harness/service.ts'
import { execute } from '../harness/sql.ts'

const watch = watchEventLoop()
const service = useService(watch.env)
const newModelProject = useModelProjects(service)

/** As many as a space may have, each as long as it may be: words that differ, and lines that rendering joins. */
const FILL = `
INSERT INTO statements SELECT (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid(), 'rule_key', n::text,
  'text', (SELECT string_agg(chr(19968 + (n * 7 + c) % 20000), E'\\n') FROM generate_series(1, 1000) c)))).*
FROM statements s, generate_series(1, 1999) n WHERE s.id = $1`

describe('a full learning space holds the event loop for 20 ms at most', () => {
  it('when it is read, and when a statement is changed', async () => {
    const api = await service.newClient()
    const space = expectOk(await api.request<{ id: string }>('POST', '/api/v1/learning_spaces'), 201)
    const path = `/api/v1/learning_spaces/${space.id}`
    const body = { text: 'Ask first.' }
    const { id } = expectOk(await api.request<{ id: string }>('POST', `${path}/statements`, { body }), 201)
    await execute(service.databaseUrl, FILL, [id])
    const [skill] = expectOk(await api.request<[{ id: string }]>('GET', `${path}/skills`))
    const q = encodeURIComponent(String.fromCodePoint(...Array.from({ length: 1_500 }, (_, n) => 19_968 + n)))
    const requests = {
      context: () => api.request('GET', `${path}/context?max_tokens=100000&q=${q}`),
      change: () => api.request('PATCH', `/api/v1/statements/${id}`, { body: { state: 'active' } }),
      file: () => api.request('GET', `/api/v1/agent_skills/${skill!.id}/file?file_path=SKILL.md`),
      zip: () => api.request('GET', `/api/v1/agent_skills/${skill!.id}/download_zip`),
    }
    for (const [name, request] of Object.entries(requests)) await watch.check(name, request)
    expect(watch.noted().join('\n')).toBe('')
  })

  it('when what a model says of a session is compared with it', async () => {
    const { api, newSpace, addRun, reflected } = await newModelProject(gullible)
    const space_id = await newSpace('suggest')
    const path = `/api/v1/learning_spaces/${space_id}/statements`
    const body = { text: 'Ask first.' }
    const { id } = expectOk(await api.request<{ id: string }>('POST', path, { body }), 201)
    await execute(service.databaseUrl, FILL, [id])
    const text = String.fromCodePoint(...Array.from({ length: 390 }, (_, n) => 19_968 + n * 40))
    const cites = [{ run: 'A', seq: 1, quote: 'I looked it up' }]
    const said = planted({ kind: 'fact', text, tool: null, cites })
    await watch.check('reflection', async () => {
      const session_id = await addRun(space_id, 'ada', [agent('I looked it up'), user(said)])
      await reflected(space_id, session_id)
      return { status: 200 }
    })
    expect(watch.noted().join('\n')).toBe('')
  })
})
