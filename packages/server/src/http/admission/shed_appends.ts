import { AnnalsError } from '../../errors.js'
import type { Appender } from '../../log/append/appender.js'
import type { AppServer } from '../app_server.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route appends to a log: if its project is behind, it is refused before its body is read. */
    appends?: boolean
  }
}

/** Refuses appends that would wait too long, at the cost of reading their headers. */
export function shedAppends(app: AppServer, appender: Appender): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const isTooMuch = request.routeOptions.config.appends && appender.isBehind(request.project_id)
    done(isTooMuch ? new AnnalsError('overloaded') : undefined)
  })
}
