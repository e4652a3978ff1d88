import { randomUUID } from 'node:crypto'
import { BenchFailure } from './failure.ts'
import type { LoadRequest } from './load.ts'
import type { Service } from './service.ts'

/** Calls the API once and gives the answer's `data`; anything but success is a failure. */
export async function callApi<Data>(service: Service, { method, path, body }: LoadRequest): Promise<Data> {
  const answer = await fetch(`${service.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${service.token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body }),
  })
  const text = await answer.text()
  if (!answer.ok) throw new BenchFailure(`${method} ${path} answered ${answer.status}: ${text.slice(0, 500)}`)
  return JSON.parse(text).data
}

/** Creates sessions and gives their ids. */
export async function createSessions(service: Service, count: number): Promise<string[]> {
  const ids: string[] = []
  const create = async () => {
    const body = JSON.stringify({ configs: { agent: 'gpt-4o', env: 'airline' } })
    ids.push((await callApi<{ id: string }>(service, { method: 'POST', path: '/api/v1/session', body })).id)
  }
  for (let left = count; left > 0; left -= 50) {
    await Promise.all(Array.from({ length: Math.min(left, 50) }, create))
  }
  return ids
}

/** An event as an agent stores it, a call of a tool: about 270 bytes, each a little different. */
export function toolCall(index: number): { type: string; data: Record<string, unknown> } {
  const reservation_id = (index + 1_000_000).toString(36).toUpperCase()
  return {
    type: 'tool_call',
    data: {
      id: `call_${reservation_id}8cXAcnfHzfAZcVHqt5FRRQ`,
      type: 'function',
      function: {
        name: 'update_reservation_flights',
        arguments: JSON.stringify({
          reservation_id,
          cabin: 'economy',
          flights: [{ flight_number: `HAT${index % 300}`, date: '2024-05-21' }],
          payment_id: `credit_card_${2_929_732 + index}`,
        }),
      },
    },
  }
}

/** Appends of one event each, `count` different ones, to the sessions in turn. */
export function appendsTo(sessions: readonly string[], count = 1_000): LoadRequest[] {
  return Array.from({ length: Math.max(count, sessions.length) }, (_, index) => ({
    method: 'POST',
    path: `/api/v1/session/${sessions[index % sessions.length]}/events`,
    body: JSON.stringify(toolCall(index)),
  }))
}

/** The service as it is to a new project. */
export async function newProject(service: Service): Promise<Service> {
  const body = JSON.stringify({ name: `bench-${randomUUID()}` })
  const admin = { ...service, token: service.admin_token }
  const made = await callApi<{ token: string }>(admin, { method: 'POST', path: '/admin/v1/projects', body })
  return { ...service, token: made.token }
}

/** The service as it is to the holder of a key of another project. */
export async function openProject(service: Service, project_id: string): Promise<Service> {
  const answer = await fetch(`${service.url}/admin/v1/projects/${project_id}/tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.admin_token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'bench' }),
  })
  if (!answer.ok) throw new BenchFailure(`No token for project ${project_id}: ${await answer.text()}`)
  const { data } = (await answer.json()) as { data: { token: string } }
  return { ...service, token: data.token }
}
