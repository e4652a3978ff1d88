import type { Answer, HttpClient, RequestOptions } from './http_client.ts'

/** The console's requests as its page sends them: the cookie that it was given, and the header that no other page can send. */
export interface ConsoleSession {
  /** The cookies, as the browser sends them. */
  readonly cookie: string
  /** The Set-Cookie header of the sign-in. */
  readonly set_cookie: string
  request<T = Record<string, unknown>>(
    method: string,
    path: string,
    options?: RequestOptions,
  ): Promise<Answer<T>>
}

/** Headers of a request that the console's page sends for a project or for `admin`. */
export function consoleHeaders(cookie: string, opens: string): Record<string, string> {
  return { cookie, 'x-annals-console': opens, 'sec-fetch-site': 'same-origin' }
}

/** Signs in with a key or a code, and gives the session and the answer. */
export async function signInToConsole(
  client: HttpClient,
  body: { token: string } | { code: string },
): Promise<{ answer: Answer<{ project_id: string }>; session: ConsoleSession }> {
  const answer = await client.request<{ project_id: string }>('POST', '/console/sign_in', {
    body,
    headers: consoleHeaders('', 'none'),
  })
  const set_cookie = String(answer.headers['set-cookie'] ?? '')
  const cookie = set_cookie.split(';')[0]!
  const opens = answer.status === 200 ? (answer.json.data.project_id ?? 'admin') : 'none'
  const session: ConsoleSession = {
    cookie,
    set_cookie,
    request: (method, path, options = {}) =>
      client.request(method, path, {
        ...options,
        headers: { ...consoleHeaders(cookie, opens), ...options.headers },
      }),
  }
  return { answer, session }
}
