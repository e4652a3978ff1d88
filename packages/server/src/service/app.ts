import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyBaseLogger, LogController, type RouteOptions } from 'fastify'
import { consoleRoutes } from '../console_api/console_routes.js'
import { admitRequests } from '../http/admission/admit_requests.js'
import { addressReader, noteAddresses } from '../http/admission/caller_address.js'
import { boundConnections, connectionLimits, refuseConnections } from '../http/admission/connections.js'
import { answersUnrouted } from '../http/admission/method_not_allowed.js'
import { countMemory } from '../http/admission/request_memory.js'
import { sendInPieces } from '../http/answer/answer_pieces.js'
import { allowOrigins } from '../http/answer/cors.js'
import { answerErrors } from '../http/answer/errors.js'
import type { AppServer } from '../http/app_server.js'
import { docsRoutes } from '../http/openapi/docs_routes.js'
import { logRequests, requestIdOf, sameLog, traceRequests } from '../http/request/log_requests.js'
import { readBodies } from '../http/request/read_body.js'
import { validateRequests } from '../http/request/validate.js'
import { mcpRoutes } from '../mcp/mcp_routes.js'
import { metricsRoutes } from '../metrics/metrics_routes.js'
import type { ModuleRoutes } from '../module.js'
import { authenticate, authenticateAdmin } from '../projects/authenticate.js'
import { countsRequests, limitAddresses } from '../projects/rate_limit.js'
import type { AdminSessions } from '../projects/tokens/admin_sessions.js'
import { operationRoutes, pingRoutes } from './operation_routes.js'
import type { AppParts } from './service_context.js'

// Fastify would load Ajv and its own serializer unless it is given others here; ours are set below.
const notOurs = () => (): never => {
  throw new Error('a schema was compiled before validateRequests, or for an answer')
}

/** The service as an HTTP application, not yet listening. `note` is told of each route. */
export async function buildApp(
  parts: AppParts,
  modules: readonly ModuleRoutes[],
  note?: (route: RouteOptions) => void,
): Promise<AppServer> {
  const { config, logger } = parts
  const app: AppServer = Fastify({
    loggerInstance: logger as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    childLoggerFactory: sameLog,
    bodyLimit: config.body_bytes_max,
    ...connectionLimits(config),
    clientErrorHandler: refuseConnections(logger),
    schemaController: { compilersFactory: { buildValidator: notOurs, buildSerializer: notOurs } },
    routerOptions: { maxParamLength: 1_024 },
    requestIdHeader: false,
    genReqId: requestIdOf,
    // While draining, a request on an open connection is still answered, and the connection closed after it.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // The error handler sends it, in the envelope, wherever an error occurs.
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id)
      void app.errorHandler(error, request, reply)
    },
  }).withTypeProvider<TypeBoxTypeProvider>()
  boundConnections(app.server, config, logger)

  const addressOf = addressReader(config.trusted_proxies)
  admitRequests(app, parts, addressOf)
  noteAddresses(app, addressOf)
  if (parts.tracing) traceRequests(app, parts.tracing)
  await allowOrigins(app, config.cors_origins)
  if (note) app.addHook('onRoute', note)
  logRequests(app, parts, answersUnrouted(app))
  answerErrors(app)
  readBodies(app, parts)
  countMemory(app, parts.memory)
  sendInPieces(app)
  validateRequests(app)
  metricsRoutes(app, parts)
  limitAddresses(app, parts)

  await app.register(
    async (authenticated: AppServer) => {
      authenticate(authenticated, parts, await countsRequests(authenticated, parts))
      pingRoutes(authenticated, parts)
      for (const module of modules) module.project?.(authenticated, parts)
    },
    { prefix: '/api/v1' },
  )

  await app.register(async (authenticated: AppServer) => {
    authenticate(authenticated, parts, await countsRequests(authenticated, parts))
    mcpRoutes(authenticated, config.cors_origins)
  })

  if (parts.adminSessions) await administrate(app, parts, modules, parts.adminSessions)

  // An open tail would keep a stopping service running for ever.
  app.addHook('preClose', async () => parts.feed.close())

  for (const module of modules) module.open?.(app, parts)
  operationRoutes(app, parts)
  docsRoutes(app)
  await consoleRoutes(app, parts)
  return app
}

async function administrate(
  app: AppServer,
  parts: AppParts,
  modules: readonly ModuleRoutes[],
  sessions: AdminSessions,
): Promise<void> {
  await app.register(
    async (administrated: AppServer) => {
      authenticateAdmin(administrated, sessions)
      for (const module of modules) module.admin?.(administrated, parts)
    },
    { prefix: '/admin/v1' },
  )
}
