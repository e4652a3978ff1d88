import { AnnalsError, notFound } from '@annals/kits/errors.js'
import { itemsOf } from '@annals/kits/http/answer/answer.js'
import { DATA_ID } from '@annals/kits/http/openapi/openapi_links.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import type { Kits, ModuleRoutes } from '@annals/kits/module.js'
import type { FastifyRequest } from 'fastify'
import Type from '#typebox'
import { allows } from '../projects/authenticate.js'
import { keyActorOf } from '../projects/project_routes.js'
import { NewToken } from '../projects/project_schema.js'
import { issueToken, revokeToken } from '../projects/projects.js'
import type { Person } from '../projects/tokens/key_look_ups.js'
import { SCOPES } from '../projects/tokens/token.js'
import { FIND_PERSONAL_TOKEN, LIST_PERSONAL_TOKENS } from './member_queries.js'
import { changeMember, inviteMember, listMembers, removeMember } from './members.js'
import { Member, PEOPLE_BODIES } from './people_schema.js'

const operation = operationsOf('People')

const DAY_MS = 86_400_000

const memberRoutes = ({ database }: Pick<Kits, 'database'>) => {
  const own = ({ project_id }: FastifyRequest) => ({ database: database.of('operator'), project_id })
  return allOf(
    operation({
      call: 'GET /members',
      id: 'listMembers',
      scope: 'admin',
      summary: "List the project's members",
      returns: 'All members, in the order in which they were added.',
      data: Type.Object({ items: Type.Array(Type.Ref('Member')) }),
      json: async (request) => itemsOf(await listMembers(own(request as FastifyRequest))),
    }),

    operation({
      call: 'POST /members',
      id: 'inviteMember',
      scope: 'admin',
      body: PEOPLE_BODIES.inviteMember,
      summary: 'Invite a person to the project',
      description:
        'The first person who signs in with this address, verified by the issuer, becomes the member. Annals sends no message.',
      status: 201,
      returns: 'The member.',
      data: Type.Ref('Member'),
      errors: ['member_exists'],
      json: (request, _reply, { email, role }) =>
        inviteMember(own(request as FastifyRequest), keyActorOf(request), email, role),
    }),

    operation({
      call: 'PATCH /members/:member_id',
      id: 'changeMember',
      scope: 'admin',
      body: PEOPLE_BODIES.changeMember,
      summary: "Change a member's role",
      description:
        'This takes effect within 5 seconds. A person whose groups assign a higher role keeps that role.',
      returns: 'The member.',
      data: Type.Ref('Member'),
      errors: ['last_admin'],
      json: (request, _reply, { role }) =>
        changeMember(
          own(request as unknown as FastifyRequest),
          keyActorOf(request),
          request.params.member_id,
          role,
        ),
    }),

    operation({
      call: 'DELETE /members/:member_id',
      id: 'removeMember',
      scope: 'admin',
      summary: 'Remove a member',
      description:
        "The member's console sessions and personal tokens end within 5 seconds. A person whose groups assign a role becomes a member again at the next sign-in.",
      returns: 'The member was removed.',
      errors: ['last_admin'],
      json: (request) =>
        removeMember(
          own(request as unknown as FastifyRequest),
          keyActorOf(request),
          request.params.member_id,
        ),
    }),
  )
}

/** @throws AnnalsError insufficient_scope, for keys of nobody and tokens for some sessions */
function personOf({ grant }: Pick<FastifyRequest, 'grant'>): Person {
  if (grant!.person === undefined || grant!.narrow)
    throw new AnnalsError('insufficient_scope', 'This API key is not personal. Sign in to the console.')
  return grant!.person
}

const personalTokenRoutes = ({ database }: Pick<Kits, 'database'>) =>
  allOf(
    operation({
      call: 'POST /personal_tokens',
      id: 'createPersonalToken',
      scope: 'any',
      body: PEOPLE_BODIES.createPersonalToken,
      summary: 'Create a personal token',
      description:
        'For a person who is signed in to the console. The token allows no more than its owner may do at the time, and ends when it expires or its owner is no longer a member.',
      status: 201,
      returns: 'The token with its secret.',
      data: NewToken,
      json: async (request, _reply, { name, expires_in_days, scopes = SCOPES }) => {
        const { member_id, is_in_console } = personOf(request)
        if (!is_in_console)
          throw new AnnalsError(
            'insufficient_scope',
            'A personal token cannot create other tokens. Sign in to the console.',
          )
        const isDefault = scopes === SCOPES
        const lacking = isDefault ? undefined : scopes.find((scope) => !allows(request.grant!, scope))
        if (lacking) throw new AnnalsError('insufficient_scope', `Your role does not allow "${lacking}".`)
        const expires_at = new Date(Date.now() + expires_in_days * DAY_MS).toISOString()
        const token = { name, scopes, expires_at, member_id }
        return issueToken(database.of('operator'), keyActorOf(request), request.project_id, token)
      },
    }),

    operation({
      call: 'GET /personal_tokens',
      id: 'listPersonalTokens',
      scope: 'any',
      summary: 'List your personal tokens',
      returns: 'Those that are valid, oldest first, without their secrets.',
      data: Type.Object({ items: Type.Array(Type.Ref('Token')) }),
      json: async (request) => {
        const { member_id } = personOf(request)
        const rows = await request.database.query(LIST_PERSONAL_TOKENS, [request.project_id, member_id])
        return itemsOf(rows.map(({ json }) => json!))
      },
    }),

    operation({
      call: 'DELETE /personal_tokens/:token_id',
      id: 'revokePersonalToken',
      scope: 'any',
      summary: 'Revoke one of your personal tokens',
      description:
        "Every node refuses it within 5 seconds. An administrator can revoke other people's tokens like keys.",
      returns: 'The token.',
      data: Type.Ref('Token'),
      json: async (request) => {
        const { member_id } = personOf(request)
        const { project_id, params } = request
        const ids = [project_id, member_id, params.token_id]
        const [found] = await request.database.query(FIND_PERSONAL_TOKEN, ids)
        if (!found) throw notFound('token')
        return revokeToken(database.of('operator'), keyActorOf(request), project_id, params.token_id)
      },
    }),
  )

export const peopleRoutes = (kits: Pick<Kits, 'database'>): ModuleRoutes => ({
  project: allOf(memberRoutes(kits), personalTokenRoutes(kits)),
  schemas: [Member],
  links: {
    inviteMember: { member_id: DATA_ID },
    createPersonalToken: { token_id: DATA_ID },
  },
})
