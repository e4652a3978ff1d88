import { expect, vi } from 'vitest'
import type { ApiClient, Page } from './api_client.ts'
import { expectOk } from './expectations.ts'
import type { Answer, HttpClient, Query } from './http_client.ts'
import type { Project, Service } from './service.ts'

/** An entry that a search found. */
export interface Found {
  session_id: string
  seq: number
  kind: 'message' | 'event'
  type?: string
  role?: string
  created_at: string
  snippet: { text: string; hits: Array<[number, number]> }
}

export interface FoundPage extends Page<Found> {
  indexed_through: string | null
  indexing: { sessions_done: number; sessions: number } | null
}

export function search(api: HttpClient, q: string, query: Query = {}): Promise<Answer<FoundPage>> {
  return api.request('GET', '/api/v1/search', { query: { q, ...query } })
}

/** What a search finds on its first page, as `session_id seq`. */
export async function placesOf(api: HttpClient, q: string, query: Query = {}): Promise<string[]> {
  return expectOk(await search(api, q, { limit: 200, ...query })).items.map(placeOf)
}

export function placeOf({ session_id, seq }: { session_id: string; seq: number }): string {
  return `${session_id} ${seq}`
}

export async function switchSearch(
  admin: HttpClient,
  project_id: string,
  isOn: boolean | null,
): Promise<void> {
  expectOk(await admin.request('PATCH', `/admin/v1/projects/${project_id}`, { body: { search: isOn } }))
}

/** Projects with search on. It takes some seconds until every node knows of that: so all of a file's at once. */
export function newSearchingProjects(
  service: Pick<Service, 'newProject' | 'newClient' | 'adminClient'>,
  count: number,
): Promise<Project[]> {
  const made = Array.from({ length: count }, async () => {
    const project = await service.newProject()
    await switchSearch(service.adminClient(), project.id, true)
    await untilIndexed(await service.newClient({ token: project.token }))
    return project
  })
  return Promise.all(made)
}

/** Waits until all that was stored at a time of the service's is found; by default all that is stored now. */
export async function untilIndexed(api: ApiClient, stored_at?: string): Promise<void> {
  const at = stored_at ?? expectOk(await api.createSession(), 201).created_at
  await vi.waitFor(
    async () => {
      const { indexed_through } = expectOk(await search(api, 'x'))
      expect(indexed_through).not.toBeNull()
      expect(indexed_through! > at).toBe(true)
    },
    { timeout: 90_000 },
  )
}
