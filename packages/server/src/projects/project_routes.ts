import type { Config } from '@annals/kits/configuration/config.js'
import { itemsOf } from '@annals/kits/http/answer/answer.js'
import { DATA_ID } from '@annals/kits/http/openapi/openapi_links.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import { timeInUtc } from '@annals/kits/http/request/validate.js'
import type { Erasure } from '@annals/kits/lifecycle/erase/erasure.js'
import type { ModuleRoutes } from '@annals/kits/module.js'
import type { SharedDatabase } from '@annals/kits/postgres/database.js'
import type { FastifyRequest } from 'fastify'
import Type from '#typebox'
import {
  NewToken,
  OPERATORS,
  OwnKey,
  PROJECT_BODIES,
  Project,
  Token,
  TokenSecret,
  Usage,
  UsageQuery,
} from './project_schema.js'
import {
  changeProject,
  checkProject,
  createProject,
  issueToken,
  listProjects,
  listTokens,
  noteAct,
  readQuotas,
  revokeToken,
} from './projects.js'
import { ALL_SCOPES } from './tokens/token.js'
import type { UsageDirectory } from './usage.js'
import { readDays, readModelTokens } from './usage.js'
import { usageJson } from './within_quotas.js'

interface ProjectParts {
  config: Config
  database: SharedDatabase
  erasure: Erasure
  usage: UsageDirectory
}

const operation = operationsOf('Administration', OPERATORS)

const adminRoutes = ({ database, erasure }: ProjectParts) =>
  allOf(
    operation({
      call: 'POST /projects',
      id: 'createProject',
      body: PROJECT_BODIES.createProject,
      summary: 'Create a project with its first token',
      status: 201,
      returns: 'The project, and the secret of its first token.',
      data: Type.Object({ project: Type.Ref('Project'), token: TokenSecret }),
      errors: ['project_exists'],
      json: async (request, _reply, { name, ...settings }) => {
        const { json, token } = await createProject(database.of('operator'), actorOf(request), name, settings)
        return `{"project":${json},"token":"${token}"}`
      },
    }),

    operation({
      call: 'GET /projects',
      id: 'listProjects',
      summary: 'List all projects',
      returns: 'All projects, oldest first.',
      data: Type.Object({ items: Type.Array(Type.Ref('Project')) }),
      json: async () => itemsOf(await listProjects(database.of('operator'))),
    }),

    operation({
      call: 'PATCH /projects/:project_id',
      id: 'changeProject',
      body: PROJECT_BODIES.changeProject,
      summary: "Change a project's settings",
      description: 'Omitted settings stay unchanged; null removes a setting.',
      returns: 'The project.',
      data: Type.Ref('Project'),
      json: (request, _reply, settings) =>
        changeProject(database.of('operator'), actorOf(request), request.params.project_id, settings),
    }),

    operation({
      call: 'DELETE /projects/:project_id',
      id: 'deleteProject',
      summary: 'Erase a project',
      description: 'Its tokens are refused within 5 seconds; then everything in it is removed.',
      returns: 'The project was erased.',
      json: async (request) => {
        const { project_id } = request.params
        await noteAct(database.of('operator'), actorOf(request), 'project.delete', project_id)
        await erasure.eraseProject({ database: database.of('operator'), project_id })
      },
    }),

    operation({
      call: 'POST /projects/:project_id/tokens',
      id: 'createToken',
      body: PROJECT_BODIES.createToken,
      summary: 'Create a token for a project',
      status: 201,
      returns: 'The token with its secret.',
      data: NewToken,
      json: async (request, _reply, { name, scopes = ALL_SCOPES, masked = false, expires_at }) =>
        issueToken(database.of('operator'), actorOf(request), request.params.project_id, {
          name,
          scopes,
          masked,
          expires_at: timeInUtc('/expires_at', expires_at),
        }),
    }),

    operation({
      call: 'GET /projects/:project_id/tokens',
      id: 'listTokens',
      summary: "List a project's tokens",
      returns: 'Its tokens without their secrets, oldest first.',
      data: Type.Object({ items: Type.Array(Type.Ref('Token')) }),
      json: async ({ params: { project_id } }) => {
        await checkProject(database.of('operator'), project_id)
        return itemsOf(await listTokens(database.of('operator'), project_id))
      },
    }),

    operation({
      call: 'DELETE /projects/:project_id/tokens/:token_id',
      id: 'revokeToken',
      summary: 'Revoke a token',
      description: 'Every node refuses it within 5 seconds. Revoking it again changes nothing.',
      returns: 'The token.',
      data: Type.Ref('Token'),
      is_found_as_whole: true,
      errors: ['token_not_found'],
      json: (request) => {
        const { project_id, token_id } = request.params
        return revokeToken(database.of('operator'), actorOf(request), project_id, token_id)
      },
    }),
  )

/** Whom the audit names: there is one admin token, so the caller's address tells more. */
function actorOf({ address }: Pick<FastifyRequest, 'address'>): string {
  return `API, from ${address}`
}

const DESCRIPTION =
  'Figures are at most one second old; for a very large project, at most twenty times as old as counting takes. Tails are those of the node that answers. Figures by day lack data that other nodes stored in the last 15 seconds.'
const USAGE = {
  description: DESCRIPTION,
  querystring: UsageQuery,
  returns: 'Usage, with the quotas.',
  data: Type.Ref('Usage'),
}

async function readUsage(
  { usage, database, config }: ProjectParts,
  project_id: string,
  days = 30,
): Promise<string> {
  const own = { database: database.of(project_id), project_id }
  const quotas = await readQuotas(own)
  const counted = await usage.read(project_id)
  await usage.days.write(project_id)
  const tokens = await readModelTokens(own, config.model_tokens_per_day_max)
  const by_day = await readDays(own, days, counted.statement_days)
  return usageJson(counted, usage.tailsOf(project_id), tokens, quotas, by_day)
}

const ownOperation = operationsOf('Service')

const ownRoutes = (parts: ProjectParts) =>
  allOf(
    ownOperation({
      call: 'GET /key',
      id: 'getKey',
      scope: 'any',
      reach: 'any',
      summary: 'Read what the API key may do',
      description: 'Any key may ask, whatever its scopes.',
      returns: 'The key that sent this request.',
      data: Type.Ref('OwnKey'),
      json: async ({ grant, project_id }) => {
        const { key_id, scopes, masked, narrow, outcomes } = grant!
        const own = {
          id: narrow?.id ?? key_id,
          project_id,
          scopes: [...scopes],
          ...(masked && { masked }),
          ...(outcomes !== undefined && { outcomes: JSON.parse(outcomes) }),
        }
        if (!narrow) return JSON.stringify(own)
        const expires_at = new Date(narrow.expires_at_ms).toISOString()
        return JSON.stringify({ ...own, reaches: narrow.reach, expires_at })
      },
    }),

    ownOperation({
      call: 'GET /usage',
      id: 'getUsage',
      summary: "Read the project's usage and quotas",
      ...USAGE,
      json: ({ project_id, query }) => readUsage(parts, project_id, query.days),
    }),
  )

/** The actor that the audit names for an act of a key or a person. */
export function keyActorOf({ grant, address }: Pick<FastifyRequest, 'grant' | 'address'>): string {
  const { key_id, person } = grant!
  return `${person ? `${person.email}, ` : ''}key ${key_id}, from ${address}`
}

/** A project's own keys, for a key that may have more made and revoked. */
const keyRoutes = ({ database }: ProjectParts) =>
  allOf(
    ownOperation({
      call: 'POST /keys',
      id: 'createKey',
      scope: 'admin',
      body: PROJECT_BODIES.createKey,
      summary: 'Create an API key of the project',
      description: 'With any scopes; by default it reads and writes.',
      status: 201,
      returns: 'The key with its secret.',
      data: NewToken,
      json: (request, _reply, { name, scopes = ALL_SCOPES, masked, expires_at }) =>
        issueToken(database.of('operator'), keyActorOf(request), request.project_id, {
          name,
          scopes,
          // A masked caller must not make a key that reads the values.
          masked: masked || request.grant!.masked,
          expires_at: timeInUtc('/expires_at', expires_at),
        }),
    }),

    ownOperation({
      call: 'GET /keys',
      id: 'listKeys',
      scope: 'admin',
      summary: "List the project's API keys",
      returns: 'Its keys without their secrets, oldest first.',
      data: Type.Object({ items: Type.Array(Type.Ref('Token')) }),
      json: async ({ project_id }) => itemsOf(await listTokens(database.of('operator'), project_id)),
    }),

    ownOperation({
      call: 'DELETE /keys/:token_id',
      id: 'revokeKey',
      scope: 'admin',
      summary: 'Revoke an API key of the project',
      description: 'Every node refuses it within 5 seconds. Revoking it again changes nothing.',
      returns: 'The key.',
      data: Type.Ref('Token'),
      json: (request) => {
        const { project_id, params } = request
        return revokeToken(database.of('operator'), keyActorOf(request), project_id, params.token_id)
      },
    }),
  )

const adminUsageRoute = (parts: ProjectParts) =>
  operation({
    call: 'GET /projects/:project_id/usage',
    id: 'getProjectUsage',
    summary: "Read a project's usage and quotas",
    ...USAGE,
    json: ({ params, query }) => readUsage(parts, params.project_id, query.days),
  })

export const projectRoutes = (parts: ProjectParts): ModuleRoutes => ({
  project: allOf(ownRoutes(parts), keyRoutes(parts)),
  admin: allOf(adminRoutes(parts), adminUsageRoute(parts)),
  schemas: [OwnKey, Project, Token, Usage],
  links: {
    createProject: { project_id: '$response.body#/data/project/id' },
    createToken: { project_id: '$request.path.project_id', token_id: DATA_ID },
    createKey: { token_id: DATA_ID },
  },
})
