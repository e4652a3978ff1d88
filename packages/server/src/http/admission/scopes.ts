import type { Scope } from '../../projects/tokens/scope.js'
import type { AppServer } from '../app_server.js'

/**
 * The scope that each operation needs. `admin` means only the admin token. The service does not start if an operation
 * is missing here, and a test compares the table with openapi.json.
 */
export const SCOPE_OF_OPERATION: Readonly<Record<string, Scope | 'admin'>> = {
  ping: 'read',
  getUsage: 'read',
  listSessions: 'read',
  createSession: 'write',
  getSession: 'read',
  updateSession: 'write',
  deleteSession: 'write',
  copySession: 'write',
  getObservingStatus: 'read',
  listTasks: 'read',
  flushSession: 'write',
  getConfigs: 'read',
  replaceConfigs: 'write',
  mergeConfigs: 'write',
  addEvent: 'write',
  listEvents: 'read',
  addMessage: 'write',
  listMessages: 'read',
  mergeMessageMeta: 'write',
  countTokens: 'read',
  getContext: 'read',
  readTimeline: 'read',
  appendEntries: 'write',
  appendToSessions: 'write',
  readLatest: 'read',
  search: 'read',
  retractEntries: 'write',
  putBlob: 'write',
  getBlob: 'read',
  createLearningSpace: 'write',
  listLearningSpaces: 'read',
  getLearningSpace: 'read',
  mergeLearningSpaceMeta: 'write',
  deleteLearningSpace: 'write',
  learnFromSession: 'write',
  listSpaceSessions: 'read',
  getSpaceSession: 'read',
  getSpacePolicy: 'read',
  setSpacePolicy: 'write',
  listStatements: 'read',
  addStatement: 'write',
  changeStatement: 'write',
  addFeedback: 'write',
  getSpaceContext: 'read',
  getSpaceHistory: 'read',
  createWebhook: 'write',
  listWebhooks: 'read',
  deleteWebhook: 'write',
  listUsers: 'read',
  countUserResources: 'read',
  eraseUser: 'write',
  createProject: 'admin',
  listProjects: 'admin',
  changeProject: 'admin',
  deleteProject: 'admin',
  getProjectUsage: 'admin',
  listAudit: 'admin',
  createToken: 'admin',
  listTokens: 'admin',
  revokeToken: 'admin',
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The scope that the token needs. */
    scope?: Scope | 'admin'
  }
}

/**
 * Gives each route that is added to `app` from here on its scope: from the table, or, for a route outside the API,
 * the one that it names itself. A route without either stops the start.
 */
export function assignScopes(app: AppServer, kind: 'project' | 'admin'): void {
  app.addHook('onRoute', (route) => {
    const { operationId } = (route.schema ?? {}) as { operationId?: string }
    const scope = route.config?.scope ?? SCOPE_OF_OPERATION[operationId ?? '']
    if (scope === undefined || (scope === 'admin') !== (kind === 'admin'))
      throw new Error(
        `${route.method} ${route.url} (${operationId}) has no scope in http/admission/scopes.ts`,
      )
    route.config = { ...route.config, scope }
  })
}
