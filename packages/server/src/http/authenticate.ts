import type { FastifyRequest } from 'fastify'
import { AnnalsError } from '../errors.js'
import type { Scope, TokenDirectory } from '../tokens/token_directory.js'
import type { AppServer } from './app_parts.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The project that the token names: every query of the request is bound to it. */
    project_id: string
  }
  interface FastifyContextConfig {
    /** What the token must be allowed to do; by default reading for GET, writing for the rest. */
    scope?: Scope
  }
}

const BEARER = /^Bearer ([\x21-\x7e]{1,512})$/

const UNAUTHORIZED = 'A valid API key is needed: send it as "Authorization: Bearer <API_KEY>".'

/** Lets only requests with a valid project token through to the routes of `app`. */
export function authenticate(app: AppServer, tokens: TokenDirectory): void {
  app.addHook('onRequest', async (request) => {
    const token = bearerToken(request)
    const grant = token === undefined ? undefined : await tokens.find(token)
    if (!grant) throw new AnnalsError('unauthorized', UNAUTHORIZED)
    request.project_id = grant.project_id
    const scope = request.routeOptions.config.scope ?? (isRead(request.method) ? 'read' : 'write')
    if (!grant.scopes.has(scope)) {
      throw new AnnalsError(
        'insufficient_scope',
        `This API key has no scope "${scope}". Use one that has it.`,
      )
    }
  })
}

/** The token of an Authorization header in the one form that is taken, undefined without one. */
export function bearerToken(request: FastifyRequest): string | undefined {
  return BEARER.exec(request.headers.authorization ?? '')?.[1]
}

function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}
