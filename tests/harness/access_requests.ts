import type { ApiClient } from './api_client.ts'
import { describedOperations, sampleOf } from './described_operations.ts'
import { expectOk } from './expectations.ts'
import type { Answer, HttpClient, RequestOptions } from './http_client.ts'

type Described = (typeof describedOperations)[number]

/** An operation of a project's API, and who may call it. */
export interface GuardedOperation extends Described {
  name: string
  scope: string
  reach: 'narrowed' | 'any' | undefined
}

/** All of them: a test that goes through these covers a new one by itself. */
export const guardedOperations: GuardedOperation[] = describedOperations
  .filter(({ path }) => path.startsWith('/api/'))
  .map((described) => {
    const {
      operationId,
      'x-scope': scope,
      'x-reach': reach,
    } = described.operation as unknown as Record<string, string>
    return { ...described, name: operationId!, scope: scope!, reach: reach as GuardedOperation['reach'] }
  })

export const KEY_SCOPES = ['read', 'write', 'append', 'ingest', 'admin']
export const ROLES = ['viewer', 'member', 'admin']
export const TOKEN_SCOPES = ['read', 'append', 'inbox', 'resolve']

export type Cell = 'yes' | 'own' | 'nothing' | 'no'

export function keyMay({ scope }: GuardedOperation, key: string): Cell {
  const writes = key === 'write' && scope !== 'read' && scope !== 'admin'
  return scope === 'any' || scope === key || writes ? 'yes' : 'no'
}

/** What a person may do in a project. */
export function roleMay({ scope }: GuardedOperation, role: string): Cell {
  const roles: Record<string, string[]> = { read: ROLES, any: ROLES, admin: ['admin'], erase: ['admin'] }
  return (roles[scope] ?? ['member', 'admin']).includes(role) ? 'yes' : 'no'
}

export function tokenMay({ path, method, scope, reach, operation }: GuardedOperation, token: string): Cell {
  if (reach === 'any') return 'yes'
  if (reach === 'narrowed' || path.startsWith('/api/v1/session/{session_id}'))
    return scope === token ? 'own' : 'no'
  const isList = method === 'get' && JSON.stringify(operation).includes('"items"')
  return /\{(\w+_id|identifier|sha256)\}/.test(path) || isList ? 'nothing' : 'no'
}

/** Values for the parameters of paths and, by name, of queries; and bodies of operations, where a sample would not do. */
export interface Given {
  ids: Record<string, string>
  query?: Record<string, string>
  bodies?: Record<string, object>
  headers?: Record<string, string>
}

/** A body whose members that name something name what is given: `session_id`, `request_id`, and the like. */
function naming(body: unknown, ids: Record<string, string>): unknown {
  if (Array.isArray(body)) return body.map((item) => naming(item, ids))
  if (typeof body !== 'object' || body === null) return body
  const named = Object.entries(body).map(([name, value]) => [name, ids[name] ?? naming(value, ids)])
  return Object.fromEntries(named)
}

/** Sends a request that is well-formed. */
export function tryOperation(
  client: HttpClient,
  { path, method, name, operation }: GuardedOperation,
  { ids, query = {}, bodies = {}, headers = {} }: Given,
): Promise<Answer> {
  const asked: Record<string, string> = {}
  for (const { name, in: place, required, example, schema } of operation.parameters ?? [])
    if (place === 'query' && (required || name in query))
      asked[name] = query[name] ?? String(example ?? sampleOf(schema ?? {}) ?? 'x')
  const target = path.replace(/\{(\w+)\}/g, (_, id: string) => encodeURIComponent(ids[id]!))
  const content = operation.requestBody?.content
  const options: RequestOptions = { query: asked, headers }
  if (content?.['application/json'])
    options.body = bodies[name] ?? naming(sampleOf(content['application/json'].schema), ids)
  else if (content?.['multipart/form-data']) {
    options.rawBody = '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n--x--\r\n'
    options.headers = { ...headers, 'Content-Type': 'multipart/form-data; boundary=x' }
  } else if (content) {
    options.rawBody = 'x'
    options.headers = { ...headers, 'Content-Type': Object.keys(content)[0]! }
  }
  return client.request(method.toUpperCase(), target, options)
}

export type Sessions = { session_id: string } | { user: string } | { parent: string }

/** Makes a token with a key, at 10 minutes' life unless told otherwise. */
export async function tokenFor(
  client: ApiClient,
  reach: Sessions,
  scopes: string[],
  more: { ttl_s?: number; origin?: string } = {},
): Promise<string> {
  const body = { for: reach, scopes, ttl_s: 600, ...more }
  const answer = await client.request<{ token: string; expires_at: string }>('POST', '/api/v1/tokens', {
    body,
  })
  return expectOk(answer, 201).token
}
