import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { entryText } from '@annals/messages/search'
import { BenchFailure } from './failure.ts'
import type { LoadRequest } from './load.ts'
import { recordedRuns } from './recorded_runs.ts'
import type { Service } from './service.ts'
import { callApi } from './sessions.ts'

const WRITERS = 16
const INDEXED_MS_MAX = 3_600_000

/** A project of a service: its key, and what is said about it. */
export interface SearchedProject {
  service: Service
  id: string
}

export async function newProject(service: Service, name: string): Promise<SearchedProject> {
  const admin = { ...service, token: service.admin_token }
  const body = JSON.stringify({ name })
  const made = await callApi<{ project: { id: string }; token: string }>(admin, {
    method: 'POST',
    path: '/admin/v1/projects',
    body,
  })
  return { service: { ...service, token: made.token }, id: made.project.id }
}

export async function switchSearchOn({ service, id }: SearchedProject): Promise<void> {
  const admin = { ...service, token: service.admin_token }
  await callApi(admin, { method: 'PATCH', path: `/admin/v1/projects/${id}`, body: '{"search":true}' })
}

/** A request that searches. */
export function searchFor(q: string, more: Record<string, string> = {}): LoadRequest {
  return { method: 'GET', path: `/api/v1/search?${new URLSearchParams({ q, ...more })}` }
}

/** Waits until everything that is stored now is found. */
export async function untilIndexed({ service }: SearchedProject): Promise<void> {
  const { created_at } = await callApi<{ created_at: string }>(service, {
    method: 'POST',
    path: '/api/v1/session',
    body: '{}',
  })
  const until = performance.now() + INDEXED_MS_MAX
  while (performance.now() < until) {
    const { indexed_through } = await callApi<{ indexed_through: string | null }>(service, searchFor('x'))
    if (indexed_through !== null && indexed_through > created_at) return
    await sleep(500)
  }
  throw new BenchFailure('What was stored was not indexed within an hour.')
}

/**
 * Fills a project with copies of the recorded runs, a session each, in which ids and numbers differ: so the index has as
 * many rare words as a project of this size. Returns the bytes of text that a search looks at, and of the messages.
 */
export async function storeRuns({ service }: SearchedProject, entries_min: number) {
  const runs = recordedRuns()
  const stored = { entries: 0, text_bytes: 0, data_bytes: 0 }
  const store = async () => {
    while (stored.entries < entries_min) {
      const copy = next++
      const run = runs[copy % runs.length]!
      const messages = run.messages.map((message) => varied(JSON.stringify(message), copy))
      stored.entries += messages.length
      for (const data of messages) {
        stored.data_bytes += Buffer.byteLength(data)
        stored.text_bytes += Buffer.byteLength(entryText({ type: null, format: 'openai', data }))
      }
      const body = JSON.stringify({ user: run.user, configs: { run: copy % 1_000 } })
      const { id } = await callApi<{ id: string }>(service, { method: 'POST', path: '/api/v1/session', body })
      const entries = messages.map((blob) => `{"kind":"message","format":"openai","blob":${blob}}`)
      await callApi(service, {
        method: 'POST',
        path: `/api/v1/session/${id}/entries`,
        body: `{"entries":[${entries}]}`,
      })
    }
  }
  let next = 0
  await Promise.all(Array.from({ length: WRITERS }, store))
  return stored
}

/** Codes such as 3JA7XV and names such as omar_davis_3817 are others in each copy. */
function varied(json: string, copy: number): string {
  const other = (code: string) => createHash('md5').update(`${code} ${copy}`).digest('hex')
  return json
    .replaceAll(/\b[A-Z\d]{6}\b/g, (code) => other(code).slice(0, 6).toUpperCase())
    .replaceAll(/(?<=_)\d{4,7}\b/g, (number) => String(Number.parseInt(other(number).slice(0, 8), 16)))
}
