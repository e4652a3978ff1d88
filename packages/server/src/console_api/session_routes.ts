import type { Config } from '@annals/kits/configuration/config.js'
import { NoQuery, Strict } from '@annals/kits/contract/schema.js'
import { AnnalsError } from '@annals/kits/errors.js'
import { answer } from '@annals/kits/http/answer/answer.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import type { SharedDatabase } from '@annals/kits/postgres/database.js'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from '#typebox'
import type { Issuer } from '../people/issuer.js'
import type { TokenDirectory } from '../projects/authenticate.js'
import { isSameToken } from '../projects/authenticate.js'
import type { AdminSessions } from '../projects/tokens/admin_sessions.js'
import { ADMIN, isOwnRequest, sessionCookie, sessionsIn } from './console_requests.js'
import {
  beginSessionByCode,
  beginSessionByKey,
  type ConsoleSession,
  endSession,
  renewSession,
  shownProject,
} from './sign_in.js'

/** A caller who signs in has no session yet, so little may be sent. */
const SIGN_IN_BYTES_MAX = 1_024
/** Most projects that one browser keeps open; a cookie costs a look-up. */
const SESSIONS_MAX = 20

const SignInBody = Strict({
  code: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' })),
  token: Type.Optional(Type.String({ minLength: 1, maxLength: 512 })),
})
const SignOutBody = Strict({ of: Type.String({ minLength: 1, maxLength: 64 }) })

export interface SignInParts {
  config: Pick<Config, 'behind_tls'>
  tokens: TokenDirectory
  /** If there is an admin token. */
  adminSessions: AdminSessions | undefined
  issuer: Issuer | undefined
  database: SharedDatabase
}

/** How a browser signs in to the console, stays signed in, and signs out. Tokens are in cookies only. */
export function sessionRoutes(app: AppServer, parts: SignInParts): void {
  const { config, tokens, adminSessions } = parts
  const database = parts.database.of('sign_in')
  const keep = (reply: FastifyReply, of: string, value: string | undefined) =>
    reply.header('set-cookie', sessionCookie(of, value, config.behind_tls === 'true'))
  const described = async (
    { project_id, scopes }: Pick<ConsoleSession, 'project_id' | 'scopes'>,
    person?: string,
  ) => ({
    project_id,
    ...(await shownProject({ database, project_id })),
    scopes,
    person,
  })

  app.post(
    '/console/sign_in',
    {
      bodyLimit: SIGN_IN_BYTES_MAX,
      schema: { hide: true, querystring: NoQuery, body: SignInBody },
      onRequest: checkOwn,
    },
    async (request, reply) => {
      const { token = '' } = request.body
      const sessions = sessionsIn(request.headers)
      if (adminSessions && isSameToken(token, adminSessions.admin_token)) {
        await adminSessions.end(sessions.get(ADMIN))
        keep(reply, ADMIN, await adminSessions.begin())
        return answer(reply, '{"is_admin":true}')
      }
      const session = await begin(parts, request, request.body)
      const before = sessions.get(session.project_id)
      if (before !== undefined) await endSession({ database, project_id: session.project_id }, before)
      keep(reply, session.project_id, session.token)
      return answer(reply, JSON.stringify(await described(session)))
    },
  )

  app.get(
    '/console/access',
    { schema: { hide: true, querystring: NoQuery }, onRequest: checkOwn },
    async (request, reply) => {
      const projects = []
      const sessions = sessionsIn(request.headers)
      const admin = sessions.get(ADMIN)
      sessions.delete(ADMIN)
      for (const [project_id, token] of [...sessions].slice(0, SESSIONS_MAX)) {
        const grant = await tokens.findNow(token, request)
        if (grant?.project_id !== project_id) continue
        await renewSession({ database, project_id }, token)
        projects.push(await described({ project_id, scopes: [...grant.scopes] }, grant.person?.email))
      }
      const is_admin = (await adminSessions?.renew(admin)) ?? false
      if (is_admin) keep(reply, ADMIN, admin)
      return answer(reply, JSON.stringify({ projects, is_admin, has_issuer: parts.issuer !== undefined }))
    },
  )
  signOutRoute(app, parts)
}

/** Signing out: here, and with the last session of a person also the way to the issuer's own. */
function signOutRoute(app: AppServer, parts: SignInParts): void {
  const { config, tokens, adminSessions } = parts
  const database = parts.database.of('sign_in')
  app.post(
    '/console/sign_out',
    {
      bodyLimit: SIGN_IN_BYTES_MAX,
      schema: { hide: true, querystring: NoQuery, body: SignOutBody },
      onRequest: checkOwn,
    },
    async (request, reply) => {
      const { of } = request.body
      const sessions = sessionsIn(request.headers)
      const token = sessions.get(of)
      const grant = of === ADMIN || token === undefined ? undefined : await tokens.findNow(token, request)
      if (of === ADMIN) await adminSessions?.end(token)
      else if (token !== undefined) await endSession({ database, project_id: of }, token)
      if (token !== undefined)
        reply.header('set-cookie', sessionCookie(of, undefined, config.behind_tls === 'true'))
      // With the last session of a person that this browser has; that of a key or the operator was never at the issuer.
      const isLast = grant?.person !== undefined && sessions.size === 1
      const end_session_url = isLast ? await parts.issuer?.endSessionUrl() : undefined
      return answer(reply, JSON.stringify({ end_session_url }))
    },
  )
}

/** Signs in with a code or a key, always with a new session: no earlier one is taken over. */
async function begin(
  { tokens, database }: SignInParts,
  request: FastifyRequest,
  { code, token = '' }: Static<typeof SignInBody>,
): Promise<ConsoleSession> {
  if (code !== undefined) return beginSessionByCode(database.of('sign_in'), code)
  const grant = await tokens.find(token, undefined, request)
  if (!grant) throw new AnnalsError('unauthorized', 'This is not a valid API key.')
  if (!grant.scopes.has('read'))
    throw new AnnalsError('insufficient_scope', 'The console needs an API key with the scope "read".')
  return beginSessionByKey(database.of('sign_in'), grant)
}

async function checkOwn(request: FastifyRequest): Promise<void> {
  if (!isOwnRequest(request.headers))
    throw new AnnalsError('unauthorized', "Only the console's own page may do this.")
}
