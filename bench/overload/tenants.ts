import type { LoadRequest } from '../load.ts'
import type { Service } from '../service.ts'
import { appendsTo, callApi, createSessions } from '../sessions.ts'

const SESSIONS = 100

/** A project, and appends to its sessions. */
export interface Tenant {
  token: string
  requests: LoadRequest[]
}

export async function createTenants(service: Service, count: number): Promise<Tenant[]> {
  const tenants: Tenant[] = []
  for (let at = 0; at < count; at += 1) {
    const { token } = await callApi<{ token: string }>(
      { ...service, token: service.admin_token },
      {
        method: 'POST',
        path: '/admin/v1/projects',
        body: JSON.stringify({ name: `tenant-${crypto.randomUUID()}` }),
      },
    )
    const sessions = await createSessions({ ...service, token }, Math.max(Math.ceil(SESSIONS / count), 1))
    tenants.push({ token, requests: appendsTo(sessions, 100) })
  }
  return tenants
}

/** What an offer says of whose requests it makes. */
export function together(tenants: Tenant[]): { tokens: string[]; requests: LoadRequest[][] } {
  return { tokens: tenants.map(({ token }) => token), requests: tenants.map(({ requests }) => requests) }
}
