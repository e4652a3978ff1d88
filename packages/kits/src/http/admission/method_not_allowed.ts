import type { FastifyReply, FastifyRequest } from 'fastify'
import { AnnalsError } from '../../errors.js'
import { answerError } from '../answer/answer.js'
import { answerPreflight } from '../answer/cors.js'
import { answerNotFound } from '../answer/errors.js'
import type { AppServer } from '../app_server.js'

/**
 * Answers a request for which the router finds no route: with 405 and the methods in Allow if its path is that of a
 * route added after this call, otherwise with 404. So the router needs no routes for methods that are refused.
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
    if (url === undefined) return answerNotFound(request, reply, meantPath(request, methodsByUrl))
    const allow = [...methodsByUrl.get(url)!].sort().join(', ')
    const sentence = `${request.method} is not supported here; use ${allow}.`
    answerError(reply.header('allow', allow), new AnnalsError('method_not_allowed', sentence))
  }
}

/** The path of a route that takes this method and has one letter other than the request's, or the right prefix. */
function meantPath(
  { method, url }: FastifyRequest,
  methodsByUrl: Map<string, Set<string>>,
): string | undefined {
  const parts = partsOf(url)
  const rest = parts.slice(1).filter((part) => part !== 'api' && part !== 'v1')
  if (rest.at(-1) === '') rest.pop()
  for (const tried of [parts, ['', 'api', 'v1', ...rest]]) {
    for (const [pattern, methods] of methodsByUrl) {
      const path = pathLike(tried, pattern.split('/'))
      if (path && methods.has(method)) return path.join('/')
    }
  }
  return undefined
}

/** The pattern with the parts of a path as its parameters, if they differ by one letter at most. */
function pathLike(parts: string[], pattern: string[]): string[] | undefined {
  if (parts.length !== pattern.length || pattern.at(-1) === '*') return undefined
  const path = pattern.map((part, index) => (part.startsWith(':') ? parts[index]! : part))
  const wrong = parts.flatMap((part, index) => (part === path[index] ? [] : index))
  const isMeant = wrong.length === 0 || (wrong.length === 1 && isNear(parts[wrong[0]!]!, path[wrong[0]!]!))
  return isMeant && !path.includes('', 1) ? path : undefined
}

/** Whether one letter more, less or other makes the words the same. */
function isNear(one: string, other: string): boolean {
  let start = 0
  while (start < one.length && one[start] === other[start]) start++
  const rests = [one.slice(start), other.slice(start)]
  return [
    [1, 0],
    [0, 1],
    [1, 1],
  ].some(([left, right]) => rests[0]!.slice(left) === rests[1]!.slice(right))
}

/** The most specific pattern that fits a request's target, as the router reads both. */
function routeOf(target: string, patterns: string[]): string | undefined {
  const parts = partsOf(target)
  // In the order of characters, a word comes after a parameter, and a parameter after a wildcard.
  return patterns
    .filter((pattern) => matches(pattern.split('/'), parts))
    .sort()
    .at(-1)
}

function partsOf(target: string): string[] {
  const [path = ''] = target.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)
  return decoded(path).split('/')
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
