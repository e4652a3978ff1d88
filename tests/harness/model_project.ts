import { afterAll, expect, vi } from 'vitest'
import { type ModelServer, type Script, startModelServer } from '../../lab/model_server.ts'
import type { ApiClient, Page } from './api_client.ts'
import { expectOk } from './expectations.ts'
import type { Service } from './service.ts'
import { queryRows } from './sql.ts'

export interface LearntStatement {
  id: string
  kind: string
  state: string
  author: string
  text: string
  supports: number
  contradicts: number
  cites: { session_id: string; seq: number; polarity: string }[]
}

/** Makes models that say what a script says. */
export function useScriptedModels() {
  const servers: ModelServer[] = []
  afterAll(() => Promise.all(servers.map((server) => server.close())))
  return async (script: Script) => {
    const model = await startModelServer(script)
    servers.push(model)
    return model
  }
}

/** Makes projects with such a model. */
export function useModelProjects(service: Service) {
  const newModel = useScriptedModels()
  return async (script: Script) => {
    const model = await newModel(script)
    return { model, ...(await projectWithModel(service, model)) }
  }
}

async function projectWithModel(service: Service, model: ModelServer) {
  const project = await service.newProject()
  const settings = { model: { url: model.url, name: 'scripted', key: 'model-key-of-test' } }
  const answer = await service
    .adminClient()
    .request('PATCH', `/admin/v1/projects/${project.id}`, { body: settings })
  expect(expectOk(answer)).toMatchObject({ model: { url: model.url, name: 'scripted' } })
  expect(JSON.stringify(answer)).not.toContain('model-key-of-test')
  const api = await service.newClient({ token: project.token })
  return { project, ...learnerOf(service.databaseUrl, api, project.id) }
}

export function learnerOf(databaseUrl: string, api: ApiClient, project_id: string) {
  const post = <T = Record<string, unknown>>(path: string, body: unknown) =>
    api.request<T>('POST', `/api/v1${path}`, { body })
  const newSpace = async (mode: string, body: object = {}, policy: object = {}) => {
    const { id } = expectOk(await api.createLearningSpace(body), 201)
    expectOk(await api.request('PUT', `/api/v1/learning_spaces/${id}/policy`, { body: { mode, ...policy } }))
    return id
  }
  /** A session with these messages and an outcome, which the space has learnt from. */
  const addRun = async (space: string, user: string | undefined, blobs: object[], outcome: object = {}) => {
    const { id } = expectOk(await api.createSession(user === undefined ? {} : { user }), 201)
    const entries = [
      ...blobs.map((blob) => ({ kind: 'message', blob })),
      { kind: 'event', type: 'outcome', data: outcome },
    ]
    expectOk(await post(`/session/${id}/entries`, { entries }), 201)
    expectOk(await post(`/learning_spaces/${space}/learn`, { session_id: id, now: true }), 201)
    return id
  }
  const reflected = async (space: string, session: string) => {
    await vi.waitFor(async () => {
      const rows = await queryRows(
        databaseUrl,
        'SELECT status, error, reflected_seq > 0 AS is_reflected FROM space_sessions WHERE project_id = $1 AND learning_space_id = $2 AND session_id = $3',
        [project_id, space, session],
      )
      expect(rows).toEqual([{ status: 'completed', error: null, is_reflected: true }])
    }, 100_000)
    return session
  }
  const statementsOf = async (space: string, query = '') =>
    expectOk(
      await api.request<Page<LearntStatement>>(
        'GET',
        `/api/v1/learning_spaces/${space}/statements?limit=200${query}`,
      ),
    ).items
  return { api, post, newSpace, addRun, reflected, statementsOf }
}

export const user = (content: string) => ({ role: 'user', content })
export const agent = (content: string) => ({ role: 'assistant', content })
export const calls = (name: string, given: object = {}, id = 'c1') => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: JSON.stringify(given) } }],
})
export const result = (content: string, id = 'c1') => ({ role: 'tool', tool_call_id: id, content })
export const planted = (statement: object) => `PLANT ${JSON.stringify(statement)} END`
