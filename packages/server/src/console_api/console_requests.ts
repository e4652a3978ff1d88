import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { CONSOLE_SESSION_DAYS_MAX } from '@annals/kits/limits.js'
import { OPENS } from '../projects/authenticate.js'

/**
 * How the console's requests prove who sends them. A browser keeps a session's token in a cookie that no script can
 * read, and sends it below /console only. So that no other page can use it, also one of the same site on another port,
 * a request must carry a header as well: a page of another origin may not send one without asking first, and CORS
 * never allows this one. The API itself accepts no cookie.
 */
/** The value of that header for the operator's API; otherwise it is a project's id. */
export const ADMIN = 'admin'
const SESSION = /^(__Secure-)?annals_([\w-]{1,64})$/
/** The API as the console reaches it. */
const API_BELOW_CONSOLE = /^\/console(?=\/(?:api|admin)\/v1\/)/

/** Rewrites a request below /console/: adds the header of its session, and sets the API's path. */
export function admitConsoleRequest(request: IncomingMessage): void {
  const { headers } = request
  if (headers.authorization === undefined && isOwnRequest(headers)) {
    const token = sessionsIn(headers).get(headers[OPENS] as string)
    if (token !== undefined) {
      headers.authorization = `Bearer ${token}`
      // Checks for repeated headers count this one, too.
      request.rawHeaders.push('authorization', headers.authorization)
    }
  }
  request.url = request.url!.replace(API_BELOW_CONSOLE, '')
}

/** Whether the console's own page sent a request: its header is there, and the browser names no other origin. */
export function isOwnRequest(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site']
  return typeof headers[OPENS] === 'string' && (site === undefined || site === 'same-origin')
}

/** The sessions in a request's cookies: by project id or `admin`. One that is there twice counts as none. */
export function sessionsIn(headers: IncomingHttpHeaders): Map<string, string> {
  const sessions = new Map<string, string>()
  const twice = new Set<string>()
  for (const cookie of (headers.cookie ?? '').split(';')) {
    const at = cookie.indexOf('=')
    const of = SESSION.exec(cookie.slice(0, Math.max(at, 0)).trim())?.[2]
    if (of === undefined) continue
    if (sessions.has(of)) twice.add(of)
    sessions.set(of, cookie.slice(at + 1).trim())
  }
  // Another host of the domain could have set one of them.
  for (const of of twice) sessions.delete(of)
  return sessions
}

/** The header that keeps a session in the browser; without a value, the one that removes it. */
export function sessionCookie(of: string, value: string | undefined, is_behind_tls: boolean): string {
  const age_s = value === undefined ? 0 : CONSOLE_SESSION_DAYS_MAX * 86_400
  const name = `${is_behind_tls ? '__Secure-' : ''}annals_${of}`
  const secure = is_behind_tls ? '; Secure' : ''
  return `${name}=${value ?? ''}; Path=/console; Max-Age=${age_s}; HttpOnly; SameSite=Strict${secure}`
}
