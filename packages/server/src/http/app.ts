import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyBaseLogger, LogController } from 'fastify'
import { admitRequests } from './admit_requests.js'
import { sendInPieces } from './answer_pieces.js'
import type { AppParts, AppServer } from './app_parts.js'
import { authenticate } from './authenticate.js'
import { authenticateAdmin } from './authenticate_admin.js'
import { addressReader, noteAddresses } from './caller_address.js'
import { boundConnections, connectionLimits, refuseConnections } from './connections.js'
import { allowOrigins } from './cors.js'
import { answerErrors } from './errors.js'
import { limitAddresses } from './limit_addresses.js'
import { logRequests } from './log_requests.js'
import { watchMethods } from './method_not_allowed.js'
import { describeApi } from './openapi.js'
import { endQueuedAnswers } from './queued_answers.js'
import { limitRates } from './rate_limit.js'
import { readBodies } from './read_body.js'
import { requestIdOf } from './request_id.js'
import { countMemory } from './request_memory.js'
import { adminRoutes } from './routes/admin.js'
import { configsRoutes } from './routes/configs.js'
import { consoleRoutes } from './routes/console.js'
import { docsRoutes } from './routes/docs.js'
import { eventRoutes } from './routes/events.js'
import { learningSpaceRoutes } from './routes/learning_spaces.js'
import { messageRoutes } from './routes/messages.js'
import { metricsRoutes } from './routes/metrics.js'
import { operationRoutes } from './routes/operation.js'
import { pingRoutes } from './routes/ping.js'
import { sessionRoutes } from './routes/sessions.js'
import { timelineRoutes } from './routes/timeline.js'
import { adminUsageRoutes, usageRoutes } from './routes/usage.js'
import { userRoutes } from './routes/users.js'
import { shedAppends } from './shed_appends.js'
import { refuseTinyChunks } from './tiny_chunks.js'
import { traceRequests } from './trace_requests.js'
import { validateRequests } from './validate.js'

// Fastify loads Ajv and a serializer of its own unless it is given others at once; ours are set below.
const notOurs = () => (): never => {
  throw new Error('a schema was compiled before validateRequests and describeApi')
}

/** The service as an HTTP application, not yet listening. */
export async function buildApp(parts: AppParts): Promise<AppServer> {
  const { config, logger } = parts
  const app: AppServer = Fastify({
    loggerInstance: logger as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
    bodyLimit: config.body_bytes_max,
    ...connectionLimits(config),
    clientErrorHandler: refuseConnections(logger),
    schemaController: { compilersFactory: { buildValidator: notOurs, buildSerializer: notOurs } },
    routerOptions: { maxParamLength: 1_024 },
    requestIdHeader: false,
    genReqId: requestIdOf,
    // While draining, a request on an open connection is still answered; the connection closes behind it.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // Sent by the errors' own code, in the envelope, wherever they arise.
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id)
      void app.errorHandler(error, request, reply)
    },
  }).withTypeProvider<TypeBoxTypeProvider>()
  boundConnections(app.server, config, logger)

  const addressOf = addressReader(config.trusted_proxies)
  admitRequests(app, parts, addressOf)
  noteAddresses(app, addressOf)
  endQueuedAnswers(app.server)
  if (parts.tracing) traceRequests(app, parts.tracing)
  await allowOrigins(app, config.cors_origins)
  await describeApi(app)
  logRequests(app)
  answerErrors(app)
  refuseTinyChunks(app)
  readBodies(app, parts.thread)
  countMemory(app, parts.memory)
  sendInPieces(app)
  validateRequests(app)
  const answerWrongMethods = watchMethods(app)
  metricsRoutes(app, parts) // Ahead of the other routes, which its hook counts.
  limitAddresses(app, parts)

  await app.register(
    async (authenticated: AppServer) => {
      authenticate(authenticated, parts)
      await limitRates(authenticated, config.rate_limit_per_second)
      shedAppends(authenticated, parts.appender)
      pingRoutes(authenticated)
      usageRoutes(authenticated, parts)
      sessionRoutes(authenticated, parts)
      configsRoutes(authenticated)
      eventRoutes(authenticated, parts)
      messageRoutes(authenticated, parts)
      timelineRoutes(authenticated, parts)
      learningSpaceRoutes(authenticated)
      userRoutes(authenticated, parts)
    },
    { prefix: '/api/v1' },
  )

  if (config.admin_token !== undefined) await administrate(app, parts, config.admin_token)

  // An open tail would keep a stopping service from ever being done.
  app.addHook('preClose', async () => parts.feed.close())

  operationRoutes(app, parts)
  docsRoutes(app)
  await consoleRoutes(app, parts)
  answerWrongMethods()
  return app
}

/** What an operator does, below a token of its own. */
async function administrate(app: AppServer, parts: AppParts, admin_token: string): Promise<void> {
  await app.register(
    async (administrated: AppServer) => {
      authenticateAdmin(administrated, admin_token)
      adminRoutes(administrated, parts)
      adminUsageRoutes(administrated, parts)
    },
    { prefix: '/admin/v1' },
  )
}
