import type { FastifyReply, FastifyRequest } from 'fastify'
import { AnnalsError } from '../../errors.js'
import { answerError } from '../answer/answer.js'
import { answerPreflight } from '../answer/cors.js'
import { answerNotFound } from '../answer/errors.js'
import type { AppServer } from '../app_server.js'

/**
 * Answers a request for which the router finds no route: 405, with the methods that there are in Allow, where its path
 * is that of a route added after this call, else 404. So the router needs no routes for methods that are refused.
 */
export function answersUnrouted(app: AppServer): (request: FastifyRequest, reply: FastifyReply) => void {
  const methodsByUrl = new Map<string, Set<string>>()
  app.addHook('onRoute', (route) => {
    const methods = methodsByUrl.get(route.url) ?? new Set<string>()
    methodsByUrl.set(route.url, methods)
    for (const method of [route.method].flat()) methods.add(method)
  })
  return (request, reply) => {
    if (answerPreflight(request, reply)) return
    const url = routeOf(request.url, [...methodsByUrl.keys()])
    if (url === undefined) return answerNotFound(request, reply)
    const allow = [...methodsByUrl.get(url)!].sort().join(', ')
    const sentence = `${request.method} is not supported here; use ${allow}.`
    answerError(reply.header('allow', allow), new AnnalsError('method_not_allowed', sentence))
  }
}

/** The most specific pattern that fits a request's target, as the router reads both. */
function routeOf(target: string, patterns: string[]): string | undefined {
  const [path = ''] = target.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)
  const parts = decoded(path).split('/')
  // In the order of characters, a word comes after a parameter, and a parameter after a wildcard.
  return patterns
    .filter((pattern) => matches(pattern.split('/'), parts))
    .sort()
    .at(-1)
}

function matches(pattern: string[], parts: string[]): boolean {
  const isOpen = pattern.at(-1) === '*'
  const length = isOpen ? pattern.length - 1 : pattern.length
  return (
    (isOpen ? parts.length > length : parts.length === length) &&
    pattern.slice(0, length).every((part, index) => part.startsWith(':') || part === parts[index])
  )
}

function decoded(path: string): string {
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}
