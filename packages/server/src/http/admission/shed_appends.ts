import { type Appender, overloaded } from '../../log/append/appender.js'
import type { AppServer } from '../service_context.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route appends to a log: it is refused before its body is read when its project is behind. */
    appends?: boolean
  }
}

/** Refuses appends that would wait too long, for the price of their headers. */
export function shedAppends(app: AppServer, appender: Appender): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const isTooMuch = request.routeOptions.config.appends && appender.isBehind(request.project_id)
    done(isTooMuch ? overloaded() : undefined)
  })
}
