import type { FastifyRequest } from 'fastify'
import Type from '#typebox'
import { allOf, operationsOf } from '../http/operation.js'
import { takeBody, takeWhole } from '../http/request/bodies.js'
import { timeInUtc } from '../http/request/time.js'
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

const operation = operationsOf('Administration', OPERATORS)

/** Projects and their tokens, for the operator. */
export const adminRoutes = allOf(
  operation({
    call: 'POST /projects',
    id: 'createProject',
    summary: 'Create a project with its first token',
    body: CreateProjectBody,
    status: 201,
    returns: 'The project, and the secret of its first token.',
    data: Type.Object({ project: Type.Ref('Project'), token: TokenSecret }),
    errors: ['project_exists'],
    json: async (request, _reply, { database }) => {
      const { name, ...settings } = takeBody(request, takeWhole)
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
    json: async (_request, _reply, { database }) => itemsOf(await listProjects(database.of('operator'))),
  }),

  operation({
    call: 'PATCH /projects/:project_id',
    id: 'changeProject',
    summary: "Change a project's settings",
    description: 'Omitted settings stay unchanged; null removes a setting.',
    params: ProjectParams,
    body: ChangeProjectBody,
    returns: 'The project.',
    data: Type.Ref('Project'),
    errors: ['project_not_found'],
    json: (request, _reply, { database }) => {
      const settings = takeBody(request, takeWhole)
      return changeProject(database.of('operator'), actorOf(request), request.params.project_id, settings)
    },
  }),

  operation({
    call: 'DELETE /projects/:project_id',
    id: 'deleteProject',
    summary: 'Erase a project',
    description: 'Its tokens are refused within 5 seconds; then everything in it is removed.',
    params: ProjectParams,
    returns: 'The project was erased.',
    errors: ['project_not_found'],
    json: async (request, _reply, { database, erasure }) => {
      const { project_id } = request.params
      await noteAct(database.of('operator'), actorOf(request), 'project.delete', project_id)
      await erasure.eraseProject(database.of('operator'), project_id)
    },
  }),

  operation({
    call: 'POST /projects/:project_id/tokens',
    id: 'createToken',
    summary: 'Create a token for a project',
    params: ProjectParams,
    body: CreateTokenBody,
    status: 201,
    returns: 'The token with its secret.',
    data: NewToken,
    errors: ['project_not_found'],
    json: async (request, _reply, { database }) => {
      const { name, scopes = ['read', 'write'], expires_at } = takeBody(request, takeWhole)
      return issueToken(database.of('operator'), actorOf(request), request.params.project_id, {
        name,
        scopes,
        expires_at: expires_at == null ? undefined : timeInUtc('/expires_at', expires_at),
      })
    },
  }),

  operation({
    call: 'GET /projects/:project_id/tokens',
    id: 'listTokens',
    summary: "List a project's tokens",
    params: ProjectParams,
    returns: 'Its tokens without their secrets, oldest first.',
    data: Type.Object({ items: Type.Array(Type.Ref('Token')) }),
    errors: ['project_not_found'],
    json: async ({ params: { project_id } }, _reply, { database }) => {
      await checkProject(database.of('operator'), project_id)
      return itemsOf(await listTokens(database.of('operator'), project_id))
    },
  }),

  operation({
    call: 'DELETE /projects/:project_id/tokens/:token_id',
    id: 'revokeToken',
    summary: 'Revoke a token',
    description: 'Every node refuses it within 5 seconds. Revoking it again changes nothing.',
    params: TokenParams,
    returns: 'The token.',
    data: Type.Ref('Token'),
    errors: ['token_not_found'],
    json: (request, _reply, { database }) => {
      const { project_id, token_id } = request.params
      return revokeToken(database.of('operator'), actorOf(request), project_id, token_id)
    },
  }),
)

/** Whom the audit names: there is one admin token, so the caller's address tells more. */
function actorOf({ address }: Pick<FastifyRequest, 'address'>): string {
  return `API, from ${address}`
}

function itemsOf(items: string[]): string {
  return `{"items":[${items.join(',')}]}`
}
