import Type, { type Static } from '#typebox'
import { Name, Nullable, Strict, Timestamp, Uuid } from '../contract/schema.js'
import { QUOTA_MAX, RATE_LIMIT_MAX, RETENTION_DAYS_MAX } from '../limits.js'

export const Scopes = Type.Array(Type.Union([Type.Literal('read'), Type.Literal('write')]), {
  minItems: 1,
  uniqueItems: true,
  description: 'What the token may do.',
  examples: [['read', 'write']],
})

const RetentionDays = Nullable(
  Type.Integer({
    minimum: 1,
    maximum: RETENTION_DAYS_MAX,
    description: 'Days after which a session that nobody has touched is deleted; null: never.',
    examples: [90],
  }),
)

const RateLimit = Nullable(
  Type.Integer({
    minimum: 0,
    maximum: RATE_LIMIT_MAX,
    description:
      "How many requests a second each of the project's tokens may make, at each node; 0: any number; null: as many as the service allows by default.",
    examples: [100],
  }),
)

function quota(description: string) {
  return Nullable(
    Type.Integer({ minimum: 0, maximum: QUOTA_MAX, description: `${description} null: any number.` }),
  )
}

const QUOTAS = {
  max_sessions: quota('How many sessions the project may have.'),
  max_bytes: quota(
    'How many bytes the entries of all its sessions may have, as the JSON in which they were sent.',
  ),
  max_tails: quota('How many live tails it may have open at each node.'),
}

export const Project = Type.Object(
  {
    id: Uuid('The project.'),
    name: Name,
    created_at: Timestamp('When it was created.'),
    retention_days: RetentionDays,
    rate_limit_per_second: RateLimit,
    ...QUOTAS,
  },
  { $id: 'Project' },
)

export const Token = Type.Object(
  {
    id: Uuid('The token, for revoking it.'),
    project_id: Uuid('The project that it opens.'),
    name: Name,
    scopes: Scopes,
    created_at: Timestamp('When it was created.'),
    expires_at: Nullable(Timestamp('From when on it is refused; null: never.')),
    revoked_at: Nullable(Timestamp('Since when it is refused; null: it is not.')),
  },
  { $id: 'Token' },
)

/** What an operator may set of a project. */
const ProjectSettings = {
  retention_days: Type.Optional(RetentionDays),
  rate_limit_per_second: Type.Optional(RateLimit),
  max_sessions: Type.Optional(QUOTAS.max_sessions),
  max_bytes: Type.Optional(QUOTAS.max_bytes),
  max_tails: Type.Optional(QUOTAS.max_tails),
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
  expires_at: Type.Optional(Nullable(Timestamp('From when on it shall be refused.'))),
})
export type CreateTokenBody = Static<typeof CreateTokenBody>

export const TokenSecret = Type.String({
  description: 'The secret. It is shown this once.',
  examples: ['sk-annals-…'],
})

/** A new token: the only time that its secret is shown. */
export const NewToken = Type.Object({
  token: TokenSecret,
  ...Token.properties,
})
