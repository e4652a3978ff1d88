import { expectOk } from './expectations.ts'
import type { HttpClient } from './http_client.ts'

export interface IssuedToken {
  id: string
  name: string
  scopes: string[]
  expires_at: string | null
  token: string
}

/** One more token of a project, made through the admin API. */
export async function issueToken(
  admin: HttpClient,
  projectId: string,
  body: { name: string; scopes?: string[]; expires_at?: string },
): Promise<IssuedToken> {
  const path = `/admin/v1/projects/${projectId}/tokens`
  return expectOk(await admin.request<IssuedToken & Record<string, unknown>>('POST', path, { body }), 201)
}
