import type { FastifyRequest } from 'fastify'
import Type from '#typebox'
import { responses } from '../contract/responses.js'
import { Empty } from '../contract/schema.js'
import { answer } from '../http/answer/answer.js'
import type { AppServer } from '../http/app_server.js'
import { takeWhole } from '../http/request/bodies.js'
import { takeBody } from '../http/request/taken_body.js'
import { timeInUtc } from '../http/request/time.js'
import type { AppParts } from '../http/service_context.js'
import type { Erasure } from '../lifecycle/erase/erasure.js'
import type { Database } from '../postgres/database.js'
import {
  ChangeProjectBody,
  CreateProjectBody,
  CreateTokenBody,
  NewToken,
  OPERATORS,
  ProjectParams,
  TokenParams,
  TokenSecret,
} from './project_schema.js'
import {
  changeProject,
  checkProject,
  createProject,
  issueToken,
  listProjects,
  listTokens,
  noteAct,
  revokeToken,
} from './projects.js'

/** Projects and their tokens, for the operator. */
export function adminRoutes(app: AppServer, parts: AppParts): void {
  const database = parts.database.of('operator')
  projectRoutes(app, database, parts.erasure)
  tokenRoutes(app, database)
}

function projectRoutes(app: AppServer, database: Database, erasure: Erasure): void {
  app.post(
    '/projects',
    {
      schema: {
        operationId: 'createProject',
        summary: 'Create a project with its first token',
        ...OPERATORS,
        body: CreateProjectBody,
        response: responses({
          status: 201,
          description: 'The project, and the secret of its first token.',
          data: Type.Object({ project: Type.Ref('Project'), token: TokenSecret }),
          body: true,
          errors: ['project_exists'],
        }),
      },
    },
    async (request, reply) => {
      const { name, ...settings } = takeBody(request, takeWhole)
      const project = await createProject(database, actorOf(request), name, settings)
      return answer(reply, `{"project":${project.json},"token":"${project.token}"}`, 201)
    },
  )

  app.get(
    '/projects',
    {
      schema: {
        operationId: 'listProjects',
        summary: 'List all projects',
        ...OPERATORS,
        response: responses({
          description: 'All projects, oldest first.',
          data: Type.Object({ items: Type.Array(Type.Ref('Project')) }),
        }),
      },
    },
    async (_request, reply) => answer(reply, itemsOf(await listProjects(database))),
  )

  app.patch(
    '/projects/:project_id',
    {
      schema: {
        operationId: 'changeProject',
        summary: "Change a project's settings",
        description: 'Omitted settings stay unchanged; null removes a setting.',
        ...OPERATORS,
        params: ProjectParams,
        body: ChangeProjectBody,
        response: responses({
          description: 'The project.',
          data: Type.Ref('Project'),
          body: true,
          errors: ['project_not_found'],
        }),
      },
    },
    async (request, reply) =>
      answer(
        reply,
        await changeProject(
          database,
          actorOf(request),
          request.params.project_id,
          takeBody(request, takeWhole),
        ),
      ),
  )

  app.delete(
    '/projects/:project_id',
    {
      schema: {
        operationId: 'deleteProject',
        summary: 'Erase a project',
        description: 'Its tokens are refused within 5 seconds; then everything in it is removed.',
        ...OPERATORS,
        params: ProjectParams,
        response: responses({
          description: 'The project was erased.',
          data: Empty,
          errors: ['project_not_found'],
        }),
      },
    },
    async (request, reply) => {
      await noteAct(database, actorOf(request), 'project.delete', request.params.project_id)
      await erasure.eraseProject(database, request.params.project_id)
      return answer(reply, '{}')
    },
  )
}

function tokenRoutes(app: AppServer, database: Database): void {
  app.post(
    '/projects/:project_id/tokens',
    {
      schema: {
        operationId: 'createToken',
        summary: 'Create a token for a project',
        ...OPERATORS,
        params: ProjectParams,
        body: CreateTokenBody,
        response: responses({
          status: 201,
          description: 'The token with its secret.',
          data: NewToken,
          body: true,
          errors: ['project_not_found'],
        }),
      },
    },
    async (request, reply) => {
      const { name, scopes = ['read', 'write'], expires_at } = takeBody(request, takeWhole)
      return answer(
        reply,
        await issueToken(database, actorOf(request), request.params.project_id, {
          name,
          scopes,
          expires_at: expires_at == null ? undefined : timeInUtc('/expires_at', expires_at),
        }),
        201,
      )
    },
  )

  app.get(
    '/projects/:project_id/tokens',
    {
      schema: {
        operationId: 'listTokens',
        summary: "List a project's tokens",
        ...OPERATORS,
        params: ProjectParams,
        response: responses({
          description: 'Its tokens without their secrets, oldest first.',
          data: Type.Object({ items: Type.Array(Type.Ref('Token')) }),
          errors: ['project_not_found'],
        }),
      },
    },
    async (request, reply) => {
      const { project_id } = request.params
      await checkProject(database, project_id)
      return answer(reply, itemsOf(await listTokens(database, project_id)))
    },
  )

  app.delete(
    '/projects/:project_id/tokens/:token_id',
    {
      schema: {
        operationId: 'revokeToken',
        summary: 'Revoke a token',
        description: 'Every node refuses it within 5 seconds. Revoking it again changes nothing.',
        ...OPERATORS,
        params: TokenParams,
        response: responses({
          description: 'The token.',
          data: Type.Ref('Token'),
          errors: ['token_not_found'],
        }),
      },
    },
    async (request, reply) =>
      answer(
        reply,
        await revokeToken(database, actorOf(request), request.params.project_id, request.params.token_id),
      ),
  )
}

/** Whom the audit names: there is one admin token, so the caller's address tells more. */
function actorOf({ address }: FastifyRequest): string {
  return `API, from ${address}`
}

function itemsOf(items: string[]): string {
  return `{"items":[${items.join(',')}]}`
}
