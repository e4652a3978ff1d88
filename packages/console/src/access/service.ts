import { Annals, AnnalsError } from '@annals/client'
import { parseAnswer } from '@annals/messages/json'
import type { Account } from './accounts.ts'

const ATTEMPT_MS_MAX = 20_000
/** Goes with every request of the console, and says which session it is for; other pages cannot send it. */
const OPENS = 'x-annals-console'
/** Opens the operator's API. */
export const ADMIN = 'admin'

/** A client of the service that serves this page. The browser adds the session's cookie below /console. */
export function clientFor(project_id: string): Annals {
  return new Annals({
    url: `${location.origin}/console`,
    token: 'in-the-cookie',
    fetch: (input, init) => {
      const headers = new Headers(init?.headers)
      headers.delete('authorization')
      headers.set(OPENS, project_id)
      return fetch(input, { ...init, headers })
    },
    parse: parseAnswer,
    retries: 2,
    timeout_ms: ATTEMPT_MS_MAX,
  })
}

interface Request {
  method?: string
  /** The project whose session it needs, or ADMIN. */
  opens?: string
  body?: object
  signal?: AbortSignal | undefined
}

/** Requests what is not part of a project's API. @throws AnnalsError */
export async function ask<Data>(
  path: string,
  { method = 'GET', opens = 'none', body, signal }: Request = {},
): Promise<Data> {
  const headers = new Headers({ [OPENS]: opens })
  if (body) headers.set('content-type', 'application/json')
  const limit = AbortSignal.timeout(ATTEMPT_MS_MAX)
  const response = await fetch(path, {
    method,
    headers,
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
    ...(body && { body: JSON.stringify(body) }),
  }).catch((cause: unknown) => {
    const message = 'The service does not answer. Is Annals still running?'
    throw new AnnalsError({ status: 0, error: 'connection_failed', message, cause })
  })
  const answer = (await response.json().catch(() => ({}))) as { error?: string; msg?: string; data?: Data }
  if (response.ok) return answer.data as Data
  const { status } = response
  const message = answer.msg ?? `The service answered ${status}.`
  throw new AnnalsError({ status, error: answer.error ?? 'unexpected_answer', message })
}

/** What this browser has signed in to. Asking for it also puts off the end of these sessions. */
export function readAccess(): Promise<{ projects: Account[]; is_admin: boolean; has_issuer?: boolean }> {
  return ask('/console/access')
}

/** Signs in with a link's code, an API key or the admin token. */
export function signIn(body: { code: string } | { token: string }): Promise<Account | { is_admin: true }> {
  return ask('/console/sign_in', { method: 'POST', body })
}

/** Signs out of a project, or of ADMIN. The answer may have an address at which the session at the issuer ends. */
export function signOut(of: string): Promise<{ end_session_url?: string }> {
  return ask('/console/sign_out', { method: 'POST', body: { of } })
}
