import type { ApiClient } from './api_client.ts'
import { expectOk } from './expectations.ts'
import type { HttpClient } from './http_client.ts'

export interface Demo {
  sessions: Array<{ session: object; entries: object[] }>
  learning_spaces: Array<{ user?: string; meta: object; learns_from: string[] }>
}

/** Adds the sessions of the demo, which the service keeps for its console, to a project. */
export async function addDemoSessions(service: { rawClient(): HttpClient }, api: ApiClient): Promise<Demo> {
  const demo = JSON.parse((await service.rawClient().request('GET', '/console/demo.json')).text) as Demo
  for (const { session, entries } of demo.sessions) {
    const { id } = expectOk(await api.createSession(session), 201)
    expectOk(await api.request('POST', `/api/v1/session/${id}/entries`, { body: { entries } }), 201)
  }
  return demo
}
