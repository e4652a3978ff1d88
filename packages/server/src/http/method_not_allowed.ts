import { AnnalsError } from '../errors.js'
import { answerError } from './answer.js'
import type { AppServer } from './app_parts.js'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

/**
 * Watches which methods each path is registered with. The function that it gives back, called behind the last
 * route, answers every other method there with 405 and Allow.
 */
export function watchMethods(app: AppServer): () => void {
  const methodsByUrl = new Map<string, Set<string>>()
  app.addHook('onRoute', (route) => {
    const methods = methodsByUrl.get(route.url) ?? new Set<string>()
    methodsByUrl.set(route.url, methods)
    for (const method of [route.method].flat()) methods.add(method)
  })
  // The routes that are added here come through the hook as well, hence the copy.
  return () => {
    for (const [url, methods] of [...methodsByUrl]) addRoute(app, url, [...methods])
  }
}

function addRoute(app: AppServer, url: string, allowed: string[]): void {
  const allow = allowed.sort().join(', ')
  app.route({
    method: METHODS.filter((method) => !allowed.includes(method)),
    url,
    schema: { hide: true },
    handler: (request, reply) => {
      const error = new AnnalsError(
        'method_not_allowed',
        `${request.method} is not possible here; it takes ${allow}.`,
      )
      return answerError(reply.header('allow', allow), error)
    },
  })
}
