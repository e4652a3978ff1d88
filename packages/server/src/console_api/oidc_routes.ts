import { AnnalsError } from '@annals/kits/errors.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import type { Kits } from '@annals/kits/module.js'
import { CALLBACK_PATH, type Issuer, SignInRefused } from '../people/issuer.js'
import { keepIdentity } from '../people/sign_ins.js'
import type { AdminSessions } from '../projects/tokens/admin_sessions.js'
import { ADMIN, sessionCookie } from './console_requests.js'
import { askAboutDevice, deviceRoutes, userCodeIn } from './device_login.js'
import { createLoginCode, LOGIN, loginRoute, type ProjectCodes, sendLinks } from './login.js'
import { beginSessionOfMember, nameOfProject } from './sign_in.js'

interface OidcParts extends Pick<Kits, 'config' | 'database' | 'logger'> {
  issuer: Issuer
  adminSessions: AdminSessions | undefined
}

/** Projects that one sign-in opens: as many as a browser keeps open. */
const PROJECTS_MAX = 20
const KEPT_S = 600
const WRONG_LOGIN =
  'This address is not complete, or comes from an `annals login` that is older than the service and would wait for a code to be pasted. Update the command, and run it again.'

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
  loginRoute(app, kits)
  deviceRoutes(app, kits)

  app.get('/console/oidc/start', { schema: { hide: true } }, async (request, reply) => {
    const login = new URL(request.raw.url!, 'http://annals').searchParams.get('login') ?? undefined
    if (login !== undefined && !LOGIN.test(login) && !userCodeIn(login))
      throw new AnnalsError('invalid_request', WRONG_LOGIN)
    const begun = await issuer.begin(login).catch((cause: unknown) => {
      throw new AnnalsError('unavailable', 'The OIDC issuer does not answer. Try again shortly.', {
        cause,
      })
    })
    reply.headers({ 'referrer-policy': 'no-referrer', 'set-cookie': kept(begun.kept, KEPT_S) })
    return reply.redirect(begun.url, 303)
  })

  app.get(CALLBACK_PATH, { schema: { hide: true } }, async (request, reply) => {
    reply.headers({ 'referrer-policy': 'no-referrer', 'set-cookie': kept('', 0) })
    const query = request.raw.url!.slice(CALLBACK_PATH.length)
    try {
      const { identity, login } = await issuer.finish(query, cookieIn(request.headers.cookie, name))
      const { members, is_owner, person_id } = await keepIdentity(database, identity)
      if (members.length === 0 && !(is_owner && adminSessions)) throw new SignInRefused('no_project')
      if (login !== undefined) {
        if (members.length === 0) throw new SignInRefused('no_project')
        const user_code = userCodeIn(login)
        const codes: ProjectCodes = []
        for (const member of members.slice(0, PROJECTS_MAX)) {
          const project = await nameOfProject({ database, project_id: member.project_id })
          codes.push([project, await createLoginCode(database, member, user_code ?? LOGIN.exec(login)![1]!)])
        }
        if (user_code === undefined) return sendLinks(reply, identity.email, codes, login)
        return await askAboutDevice(reply, database, { person_id, email: identity.email, user_code }, codes)
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

/** One that is there twice counts as none: another host of the domain could have set one of them. */
function cookieIn(header = '', name: string): string {
  const found = header
    .split(';')
    .map((cookie) => cookie.trim())
    .filter((cookie) => cookie.startsWith(`${name}=`))
  return found.length === 1 ? found[0]!.slice(name.length + 1) : ''
}
