import { Annals, AnnalsError } from '@annals/client'
import { parseAnswer } from '@annals/messages/json'

const ATTEMPT_MS_MAX = 20_000

/** A client of the service that serves this page. */
export function clientFor(token: string): Annals {
  return new Annals({
    url: location.origin,
    token,
    parse: parseAnswer,
    retries: 2,
    timeout_ms: ATTEMPT_MS_MAX,
  })
}

interface Request {
  method?: string
  token?: string | undefined
  body?: object
  signal?: AbortSignal | undefined
}

/** Requests what is not part of a project's API. @throws AnnalsError */
export async function ask<Data>(
  path: string,
  { method = 'GET', token, body, signal }: Request = {},
): Promise<Data> {
  const headers = new Headers()
  if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
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

/** What a token gives access to. */
export interface Access {
  project_id: string
  project: string
  scopes: string[]
}

export function readAccess(token: string): Promise<Access> {
  return ask('/console/data/access', { token })
}

/** Exchanges the code of the printed link for a token. */
export async function exchangeCode(code: string): Promise<string> {
  const { token } = await ask<{ token: string }>('/console/sign_in', { method: 'POST', body: { code } })
  return token
}
