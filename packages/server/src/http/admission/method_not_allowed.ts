import type { FastifyReply, FastifyRequest } from 'fastify'
import { AnnalsError } from '../../errors.js'
import { answerError } from '../answer/answer.js'
import type { AppServer } from '../app_server.js'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY', 'TRACE'] as const

/**
 * Records the methods with which each path is registered. Call the returned function after the last route: it answers
 * every other method there with 405 and Allow.
 */
export function watchMethods(app: AppServer): () => void {
  const methodsByUrl = new Map<string, Set<string>>()
  app.addHook('onRoute', (route) => {
    const methods = methodsByUrl.get(route.url) ?? new Set<string>()
    methodsByUrl.set(route.url, methods)
    for (const method of [route.method].flat()) methods.add(method)
  })
  return () => {
    // The routes added here also go through the hook, hence the copy.
    const known = [...methodsByUrl]
    for (const [url, methods] of known) {
      // A fixed path must not refuse a method that a pattern accepts for it: /user/ls is also a user.
      const patterns = known.filter(([pattern]) => pattern !== url && matches(pattern, url))
      addRoute(app, url, methods, new Set(patterns.flatMap(([, taken]) => [...taken])))
    }
  }
}

function matches(pattern: string, url: string): boolean {
  const parts = pattern.split('/')
  const own = url.split('/')
  return (
    parts.length === own.length && parts.every((part, index) => part.startsWith(':') || part === own[index])
  )
}

function addRoute(app: AppServer, url: string, own: Set<string>, others: Set<string>): void {
  const allow = [...own].sort().join(', ')
  const refuse = async (request: FastifyRequest, reply: FastifyReply) => {
    const sentence = `${request.method} is not supported here; use ${allow}.`
    return answerError(reply.header('allow', allow), new AnnalsError('method_not_allowed', sentence))
  }
  app.route({
    method: METHODS.filter((method) => !own.has(method) && !others.has(method)),
    url,
    schema: { hide: true },
    // Before the body, which need not be read, and before what the framework requires of some methods.
    onRequest: refuse,
    handler: refuse,
  })
}
