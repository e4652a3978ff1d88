import { AnnalsError } from '@annals/kits/errors.js'
import { answer } from '@annals/kits/http/answer/answer.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import type { Kits } from '@annals/kits/module.js'
import { CALLBACK_PATH, type Issuer, SignInRefused } from '../people/issuer.js'
import { keepIdentity } from '../people/sign_ins.js'
import type { AdminSessions } from '../projects/tokens/admin_sessions.js'
import { ADMIN, sessionCookie } from './console_requests.js'
import { createLoginCode, LOGIN, LoginBody, loginPage, takeLoginCode } from './login.js'
import { beginSessionOfMember, nameOfProject } from './sign_in.js'

interface OidcParts extends Pick<Kits, 'config' | 'database' | 'logger'> {
  issuer: Issuer
  adminSessions: AdminSessions | undefined
}

/** Projects that one sign-in opens: as many as a browser keeps open. */
const PROJECTS_MAX = 20
const KEPT_S = 600
const LOGIN_BYTES_MAX = 1_024
const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
}

/**
 * How somebody signs in at the issuer. The browser is sent to the issuer, and comes back with a code, and to nothing but
 * the console: neither address is taken from a request. What it keeps meanwhile is encrypted, and only this path gets it.
 */
export function oidcRoutes(app: AppServer, { issuer, adminSessions, config, ...kits }: OidcParts): void {
  const is_behind_tls = config.behind_tls === 'true'
  const name = `${is_behind_tls ? '__Secure-' : ''}annals-oidc`
  const kept = (value: string, age_s: number) =>
    `${name}=${value}; Path=/console/oidc; Max-Age=${age_s}; HttpOnly; SameSite=Lax${is_behind_tls ? '; Secure' : ''}`
  const database = kits.database.of('sign_in')
  const headers = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }

  app.get('/console/oidc/start', { schema: { hide: true } }, async (request, reply) => {
    const login = new URL(request.raw.url!, 'http://annals').searchParams.get('login') ?? undefined
    if (login !== undefined && !LOGIN.test(login))
      throw new AnnalsError('invalid_request', 'login is not from `annals login`: run that again.')
    const begun = await issuer.begin(login).catch((cause: unknown) => {
      throw new AnnalsError('unavailable', 'The OIDC issuer does not answer. Try again shortly.', {
        cause,
      })
    })
    return reply.headers(headers).header('set-cookie', kept(begun.kept, KEPT_S)).redirect(begun.url, 303)
  })

  app.get(CALLBACK_PATH, { schema: { hide: true } }, async (request, reply) => {
    reply.headers(headers).header('set-cookie', kept('', 0))
    const query = request.raw.url!.slice(CALLBACK_PATH.length)
    try {
      const { identity, login } = await issuer.finish(query, cookieIn(request.headers.cookie, name))
      const { members, is_owner, person_id } = await keepIdentity(database, identity)
      if (members.length === 0 && !(is_owner && adminSessions)) throw new SignInRefused('no_project')
      if (login !== undefined) {
        if (members.length === 0) throw new SignInRefused('no_project')
        const codes: Array<[string, string]> = []
        for (const member of members.slice(0, PROJECTS_MAX)) {
          const project = await nameOfProject({ database, project_id: member.project_id })
          codes.push([project, await createLoginCode(database, member, login)])
        }
        return reply.headers(PAGE_HEADERS).send(loginPage(identity.email, codes, login))
      }
      for (const member of members.slice(0, PROJECTS_MAX)) {
        const { project_id, token } = await beginSessionOfMember(database, member)
        reply.header('set-cookie', sessionCookie(project_id, token, is_behind_tls))
      }
      if (is_owner && adminSessions)
        reply.header('set-cookie', sessionCookie(ADMIN, await adminSessions.begin(person_id), is_behind_tls))
      return reply.redirect('/console', 303)
    } catch (error) {
      if (!(error instanceof SignInRefused)) throw error
      // Neither codes nor tokens are in the messages of these errors' names.
      const { name, code } = (error.cause ?? {}) as { name?: unknown; code?: unknown }
      kits.logger.warn({ reason: error.reason, error: name, code }, 'a sign-in at the issuer was refused')
      return reply.redirect(`/console?sign_in_failed=${error.reason}`, 303)
    }
  })
}

/** The command line's half: no cookie counts here, only a code with the verifier of who asked for it. */
export function loginRoute(app: AppServer, { database }: Pick<Kits, 'database'>): void {
  const schema = { hide: true, body: LoginBody }
  app.post('/console/oidc/login', { bodyLimit: LOGIN_BYTES_MAX, schema }, async (request, reply) =>
    answer(reply.header('cache-control', 'no-store'), await takeLoginCode(database, request)),
  )
}

/** One that is there twice counts as none: another host of the domain could have set one of them. */
function cookieIn(header = '', name: string): string {
  const found = header
    .split(';')
    .map((cookie) => cookie.trim())
    .filter((cookie) => cookie.startsWith(`${name}=`))
  return found.length === 1 ? found[0]!.slice(name.length + 1) : ''
}
