import {
  Between,
  OneOf,
  optional,
  Strict,
  Timestamp,
  UserIdentifier,
  Uuid,
} from '@annals/kits/contract/schema.js'
import { AnnalsError } from '@annals/kits/errors.js'
import { operationsOf } from '@annals/kits/http/operation.js'
import { whole } from '@annals/kits/http/request/read_body.js'
import type { ModuleRoutes } from '@annals/kits/module.js'
import Type, { type Static } from '#typebox'
import { allows } from '../projects/authenticate.js'
import type { Sessions } from '../projects/tokens/key_look_ups.js'
import { requireSession } from './reach.js'
import { type SessionTokens, TOKEN_SCOPES } from './session_tokens.js'

const TTL_S_MAX = 86_400

const For = Strict(
  optional({
    session_id: Uuid('This session.'),
    user: UserIdentifier,
    parent: Uuid('The sessions below this one, at any depth.'),
  }),
  {
    minProperties: 1,
    maxProperties: 1,
    description: 'The sessions that the token reaches: one, all of a user, or all below another.',
    examples: [{ user: 'omar_davis_3817' }],
  },
)

const IssueTokenBody = Strict({
  for: For,
  scopes: Type.Array(OneOf(TOKEN_SCOPES, 'What the token allows in these sessions.'), {
    minItems: 1,
    uniqueItems: true,
    examples: [['read', 'append']],
  }),
  ttl_s: Between(30, TTL_S_MAX, 'Seconds until it expires.'),
  origin: Type.Optional(
    Type.String({
      pattern: '^https?://([a-z0-9.-]+|\\[[0-9a-f:.]+\\])(:[0-9]{1,5})?$',
      maxLength: 255,
      description:
        'The origin of the pages that use it, as browsers send it. They may read the answers, and pages of other origins are refused.',
      examples: ['https://app.example.com'],
    }),
  ),
})
type IssueTokenBody = Static<typeof IssueTokenBody>

const IssuedToken = Type.Object(
  {
    token: Type.String({ description: 'It is sent like an API key, in the header Authorization.' }),
    expires_at: Timestamp('When it expires.'),
  },
  { $id: 'IssuedToken' },
)

export const ACCESS_BODIES = { issueToken: whole(IssueTokenBody) } as const

function sessionsOf({ user, parent, session_id }: IssueTokenBody['for']): Sessions {
  if (user !== undefined) return { user }
  if (parent !== undefined) return { parent: parent.toLowerCase() }
  return { session_id: session_id!.toLowerCase() }
}

export const tokenRoutes = (tokens: SessionTokens): ModuleRoutes => ({
  project: operationsOf('Service')({
    call: 'POST /tokens',
    id: 'issueToken',
    scope: 'any',
    body: ACCESS_BODIES.issueToken,
    summary: 'Create a token for some sessions',
    description:
      'For a browser, a runner or a partner: the token reaches these sessions; to it, nothing else exists. It is signed, and not stored. It ends when it expires, and within 5 seconds after its key is revoked. It allows no more than its key.',
    status: 201,
    returns: 'The token.',
    data: Type.Ref('IssuedToken'),
    errors: ['session_not_found'],
    json: async (request, _reply, body) => {
      const { grant, database, project_id } = request
      if (grant!.narrow)
        throw new AnnalsError('insufficient_scope', 'A token cannot create other tokens. Use an API key.')
      const lacking = body.scopes.find((scope) => !allows(grant!, scope))
      if (lacking)
        throw new AnnalsError(
          'insufficient_scope',
          `This API key does not allow "${lacking}", so its tokens cannot allow it. Leave it out, or use a key that does.`,
        )
      const reach = sessionsOf(body.for)
      await requireSession({ database, project_id }, reach)
      return JSON.stringify(await tokens.issue(grant!.key_id, { ...body, for: reach, origin: body.origin }))
    },
  }),
  schemas: [IssuedToken],
})
