import type { IncomingMessage } from 'node:http'
import type { AppServer } from '../http/app_server.js'
import type { Appender } from './append/appender.js'

/** Number of waiting appends, over all projects, from which on it pays to ask whose they are. */
const CROWDED = 250

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route appends to a log: if its project is behind, it is refused before its body is read. */
    appends?: boolean
  }
}

/**
 * Whether a request appends to the log of a project whose backlog is too long, seen from its headers alone. Which paths
 * append is known from the routes, by the last part of each.
 */
export function lateAppends(app: AppServer, appender: Pick<Appender, 'isBehind' | 'waitingRequests'>) {
  const endings = new Set<string>()
  app.addHook('onRoute', ({ url, config }) => {
    if (config?.appends) endings.add(lastPart(url))
  })
  return ({ method, url }: IncomingMessage, projectOf: () => string | undefined): boolean => {
    if (appender.waitingRequests < CROWDED || method !== 'POST' || !endings.has(lastPart(url!))) return false
    const project_id = projectOf()
    return project_id !== undefined && appender.isBehind(project_id)
  }
}

/** The last part of a path, without its query. */
function lastPart(url: string): string {
  const query = url.indexOf('?')
  const end = query === -1 ? url.length : query
  return url.slice(url.lastIndexOf('/', end - 1) + 1, end)
}
