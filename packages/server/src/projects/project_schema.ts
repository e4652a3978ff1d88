import Type, { type Static } from '#typebox'
import { Name, Nullable, Strict, Timestamp, Uuid } from '../contract/schema.js'
import { QUOTA_MAX, RATE_LIMIT_MAX, RETENTION_DAYS_MAX } from '../limits.js'

export const Scopes = Type.Array(Type.Union([Type.Literal('read'), Type.Literal('write')]), {
  minItems: 1,
  uniqueItems: true,
  description: 'What the token allows.',
  examples: [['read', 'write']],
})

const RetentionDays = Nullable(
  Type.Integer({
    minimum: 1,
    maximum: RETENTION_DAYS_MAX,
    description: 'Days after which an untouched session is deleted; null: never.',
    examples: [90],
  }),
)

const RateLimit = Nullable(
  Type.Integer({
    minimum: 0,
    maximum: RATE_LIMIT_MAX,
    description:
      "Most requests per second of each of the project's tokens, at each node; 0: unlimited; null: the service's default.",
    examples: [100],
  }),
)

function quota(description: string) {
  return Nullable(
    Type.Integer({ minimum: 0, maximum: QUOTA_MAX, description: `${description} null: any number.` }),
  )
}

const QUOTAS = {
  max_sessions: quota('Most sessions of the project.'),
  max_bytes: quota('Most bytes of the entries of all its sessions, as the JSON in which they were sent.'),
  max_blob_bytes: quota('Most bytes of all its blobs.'),
  max_tails: quota('Most open live tails at each node.'),
}

const Search = Nullable(
  Type.Boolean({
    description:
      'Whether the entries of its sessions are indexed and can be searched, those included that are there already; null: they are not.',
  }),
)

export const Project = Type.Object(
  {
    id: Uuid('The project.'),
    name: Name,
    created_at: Timestamp('When it was created.'),
    retention_days: RetentionDays,
    rate_limit_per_second: RateLimit,
    ...QUOTAS,
    search: Search,
  },
  { $id: 'Project' },
)

export const Token = Type.Object(
  {
    id: Uuid('The token, for revoking it.'),
    project_id: Uuid('Its project.'),
    name: Name,
    scopes: Scopes,
    created_at: Timestamp('When it was created.'),
    expires_at: Nullable(Timestamp('When it expires; null: never.')),
    revoked_at: Nullable(Timestamp('When it was revoked; null: it was not.')),
  },
  { $id: 'Token' },
)

/** What an operator may set of a project. */
const ProjectSettings = {
  retention_days: Type.Optional(RetentionDays),
  rate_limit_per_second: Type.Optional(RateLimit),
  max_sessions: Type.Optional(QUOTAS.max_sessions),
  max_bytes: Type.Optional(QUOTAS.max_bytes),
  max_blob_bytes: Type.Optional(QUOTAS.max_blob_bytes),
  max_tails: Type.Optional(QUOTAS.max_tails),
  search: Type.Optional(Search),
}

export const CreateProjectBody = Strict({ name: Name, ...ProjectSettings })
export type CreateProjectBody = Static<typeof CreateProjectBody>

/** Omitted fields stay unchanged. */
export const ChangeProjectBody = Strict(ProjectSettings)
export type ChangeProjectBody = Static<typeof ChangeProjectBody>

export const ProjectParams = Strict({ project_id: Uuid('The project.') })
export const TokenParams = Strict({ project_id: Uuid('The project.'), token_id: Uuid('The token.') })

export const CreateTokenBody = Strict({
  name: Name,
  scopes: Type.Optional(Scopes),
  expires_at: Type.Optional(Nullable(Timestamp('When it shall expire.'))),
})
export type CreateTokenBody = Static<typeof CreateTokenBody>

export const TokenSecret = Type.String({
  description: 'The secret. It is shown only once.',
  examples: ['sk-annals-…'],
})

/** A new token: the only time that its secret is shown. */
export const NewToken = Type.Object({
  token: TokenSecret,
  ...Token.properties,
})
