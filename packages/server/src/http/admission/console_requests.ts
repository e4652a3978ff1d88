import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { CONSOLE_IDLE_HOURS_MAX, CONSOLE_SESSION_DAYS_MAX } from '../../limits.js'

/**
 * How the console's requests prove who sends them. A browser keeps a session's token in a cookie that no script can
 * read, and sends it below /console only. So that no other page can use it, also one of the same site on another port,
 * a request must carry a header as well: a page of another origin may not send one without asking first, and CORS
 * never allows this one. The API itself accepts no cookie.
 */
export const OPENS = 'x-annals-console'
/** The value of that header for the operator's API; otherwise it is a project's id. */
export const ADMIN = 'admin'
const SESSION = /^(__Secure-)?annals_([\w-]{1,64})$/
/** The API as the console reaches it. */
const API_BELOW_CONSOLE = /^\/console(?=\/(?:api|admin)\/v1\/)/
const HOUR_MS = 3_600_000

/** Gives a request below /console/ the header that its session stands for, and the path that the API has. */
export function admitConsoleRequest(request: IncomingMessage, admin_token: string | undefined): void {
  const { headers } = request
  if (headers.authorization === undefined && isOwnRequest(headers)) {
    const value = sessionsIn(headers).get(headers[OPENS] as string)
    const token = headers[OPENS] === ADMIN ? value && adminTokenFor(value, admin_token) : value
    if (token !== undefined) {
      headers.authorization = `Bearer ${token}`
      // Who counts headers, to find what is there twice, counts this one too.
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

/**
 * The value of the administrator's session, which every node with the same admin token accepts: when it began, when it
 * was last used, and a signature.
 */
export function signAdminSession(admin_token: string, began_ms = Date.now()): string {
  const times = `${began_ms}.${Date.now()}`
  return `${times}.${signatureOf(times, admin_token)}`
}

/** When a session of the administrator began; undefined if it is forged, idle for too long, or too old. */
export function beginOfAdminSession(value: string, admin_token: string): number | undefined {
  const [began, used, signature] = value.split('.')
  // Compared as bytes: characters beyond ASCII have more of them, and unequal lengths are an error to Node.
  const expected = Buffer.from(signatureOf(`${began}.${used}`, admin_token))
  const given = Buffer.from(signature ?? '')
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined
  const is_over =
    Date.now() - Number(used) > CONSOLE_IDLE_HOURS_MAX * HOUR_MS ||
    Date.now() - Number(began) > CONSOLE_SESSION_DAYS_MAX * 24 * HOUR_MS
  return is_over ? undefined : Number(began)
}

function adminTokenFor(value: string, admin_token: string | undefined): string | undefined {
  const is_valid = admin_token !== undefined && beginOfAdminSession(value, admin_token) !== undefined
  return is_valid ? admin_token : undefined
}

function signatureOf(text: string, admin_token: string): string {
  const key = createHash('sha256').update(`console session:${admin_token}`).digest()
  return createHmac('sha256', key).update(text).digest('base64url')
}
