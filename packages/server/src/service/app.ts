import { AnnalsError } from '@annals/kits/errors.js'
import { admitRequests } from '@annals/kits/http/admission/admit_requests.js'
import { addressReader, noteAddresses } from '@annals/kits/http/admission/caller_address.js'
import {
  boundConnections,
  connectionLimits,
  refuseConnections,
} from '@annals/kits/http/admission/connections.js'
import { answersUnrouted } from '@annals/kits/http/admission/method_not_allowed.js'
import { countMemory, sendInPieces } from '@annals/kits/http/answer/answer.js'
import { allowOrigins } from '@annals/kits/http/answer/cors.js'
import { answerErrors } from '@annals/kits/http/answer/errors.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import { docsRoutes } from '@annals/kits/http/openapi/docs_routes.js'
import { logRequests, requestIdOf, sameLog, traceRequests } from '@annals/kits/http/request/log_requests.js'
import { readBodies } from '@annals/kits/http/request/read_body.js'
import { validateRequests } from '@annals/kits/http/request/validate.js'
import { metricsRoutes } from '@annals/kits/metrics/metrics_routes.js'
import type { Kits, ModuleRoutes } from '@annals/kits/module.js'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyRequest,
  LogController,
  type RouteOptions,
} from 'fastify'
import type { Access } from '../access/module.js'
import type { Audit } from '../audit/module.js'
import { noteReads } from '../audit/noted_reads.js'
import { admitConsoleRequest } from '../console_api/console_requests.js'
import { lateAppends } from '../log/append_within_quota.js'
import type { Log } from '../log/module.js'
import { authenticate, bearerToken, isSameToken } from '../projects/authenticate.js'
import type { Projects } from '../projects/module.js'
import { countsRequests, limitAddresses } from '../projects/rate_limit.js'
import { authenticateAdmin } from '../projects/tokens/admin_sessions.js'
import { maskAnswers } from '../redaction/mask_answers.js'
import { rewritesBodies } from '../redaction/rewrite_bodies.js'
import { operationRoutes, pingRoutes } from './operation_routes.js'

// Fastify would load Ajv and its own serializer unless it is given others here; ours are set below.
const notOurs = () => (): never => {
  throw new Error('a schema was compiled before validateRequests, or for an answer')
}

export type AppModules = Pick<Projects, 'tokens' | 'adminSessions'> &
  Pick<Access, 'sessionTokens'> &
  Pick<Audit, 'notedReads'> &
  Pick<Log, 'appender'>

/** The service as an HTTP application, not yet listening. `note` is told of each route. */
export async function buildApp(
  kits: Kits,
  modules: readonly ModuleRoutes[],
  { tokens, sessionTokens, adminSessions, notedReads, appender }: AppModules,
  note?: (route: RouteOptions) => void,
): Promise<AppServer> {
  const { config, metrics, changes } = kits
  const app = newServer(kits)
  const projectOf = (token: string, connection: object) =>
    token.startsWith(sessionTokens.beginning)
      ? sessionTokens.projectOf(token)
      : tokens.projectOf(token, connection)
  // Guessed keys from the same address must not keep an operator waiting.
  const isOperators = (url: string, token: string) =>
    config.admin_token !== undefined && url.startsWith('/admin/') && isSameToken(token, config.admin_token)
  const addressOf = addressReader(config.trusted_proxies)
  admitRequests(app, {
    ...kits,
    addressOf,
    callerOf: (request) => {
      const token = bearerToken(request)
      if (token === undefined) return undefined
      return isOperators(request.url!, token) ? 'operator' : projectOf(token, request.socket)
    },
    isLate: lateAppends(app, appender),
    enter: (request) => {
      if (request.url!.startsWith('/console/')) admitConsoleRequest(request)
    },
    refused: (count) => metrics.shed(count),
  })
  noteAddresses(app, addressOf)
  if (kits.tracing) traceRequests(app, kits.tracing)
  await allowOrigins(app, config.cors_origins)
  if (note) app.addHook('onRoute', note)
  const answered = (
    { grant, method, project_id }: FastifyRequest,
    route: string,
    status: number,
    ms: number,
  ) => {
    metrics.answered(route, method, status, ms)
    // Any write is committed by now: consumers of changes look for its marks.
    if (grant?.has_consumers && method !== 'GET') changes.touched(project_id)
  }
  logRequests(app, { answered }, answersUnrouted(app))
  answerErrors(app)
  const rewrites = rewritesBodies(kits.thread)
  readBodies(app, { ...kits, rewrites })
  countMemory(app, kits.memory)
  noteReads(app, notedReads)
  maskAnswers(app, kits.thread)
  sendInPieces(app)
  validateRequests(app)
  metricsRoutes(app, kits)
  limitAddresses(app, { config, projectOf })

  await addModules(app, kits, modules, { tokens, sessionTokens, adminSessions, appender })
  operationRoutes(app, kits)
  docsRoutes(app)
  return app
}

/** The server, which knows how to receive a request and what to answer to one that it cannot read. */
function newServer({ config, logger }: Kits): AppServer {
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

  return app
}

/** The modules' routes, each below its path and for its callers. */
async function addModules(
  app: AppServer,
  kits: Kits,
  modules: readonly ModuleRoutes[],
  { tokens, sessionTokens, adminSessions, appender }: Omit<AppModules, 'notedReads'>,
): Promise<void> {
  const refuse = ({ routeOptions, project_id }: FastifyRequest) =>
    routeOptions.config.appends && appender.isBehind(project_id) ? new AnnalsError('overloaded') : undefined
  const authenticateAll = async (scope: AppServer) =>
    authenticate(scope, { ...kits, tokens, narrow: sessionTokens, refuse }, await countsRequests(scope, kits))
  const project = async (scope: AppServer) => {
    await authenticateAll(scope)
    pingRoutes(scope)
    for (const module of modules) module.project?.(scope)
  }
  const keyed = async (scope: AppServer) => {
    await authenticateAll(scope)
    for (const module of modules) module.keyed?.(scope)
  }
  await app.register(project, { prefix: '/api/v1' })
  await app.register(keyed)
  if (adminSessions) {
    const admin = async (scope: AppServer) => {
      authenticateAdmin(scope, adminSessions)
      for (const module of modules) module.admin?.(scope)
    }
    await app.register(admin, { prefix: '/admin/v1' })
  }
  for (const module of modules) await module.open?.(app)
}
