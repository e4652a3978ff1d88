import {
  Between,
  Count,
  Flag,
  Name,
  Nullable,
  OneOf,
  optional,
  Strict,
  Text,
  Timestamp,
  Uuid,
} from '@annals/kits/contract/schema.js'
import { whole } from '@annals/kits/http/request/read_body.js'
import {
  AUTO_COMPACT_TOKENS_MIN,
  OUTCOME_WORD,
  OUTCOME_WORDS_MAX,
  QUOTA_MAX,
  RATE_LIMIT_MAX,
  RETENTION_DAYS_MAX,
} from '@annals/kits/limits.js'
import Type from '#typebox'
import { SCOPES } from './tokens/token.js'

/** Of operations that take the admin token. */
export const OPERATORS = { security: [{ admin_token: [] }] }

const Scopes = Type.Array(OneOf(SCOPES, 'What the token allows.'), {
  minItems: 1,
  uniqueItems: true,
  description:
    'What the token allows: `read` to read; `write` everything else but keys; `append` only appends and new sessions; `ingest` only to send traces and logs of OpenTelemetry; `admin` only the keys of the project.',
  examples: [['read', 'write']],
})

const Masked = Flag(
  'Whether it reads masks in place of e-mail addresses, phone numbers, cards, accounts and secrets, and no attachments.',
)

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
  return Nullable(Between(0, QUOTA_MAX, `${description} null: any number.`))
}

const Search = Nullable(
  Type.Boolean({
    description:
      'Whether the entries of its sessions, existing ones included, are indexed and can be searched; null: they are not.',
  }),
)

const Proof = Nullable(
  Type.Boolean({
    description:
      'Whether entries are chained from now on, so that later changes of them are found: see the page on proof. A session that has a chain keeps it when this is switched off.',
  }),
)

const MaskViewers = Nullable(
  Type.Boolean({
    description:
      'Whether its viewers read masks in place of personal data and secrets, as masked keys do; null: they do not.',
  }),
)

const AuditReads = Nullable(
  OneOf(
    ['people', 'all'],
    "Whose reads of sessions the audit has: `people`, with their personal tokens; `all`, with every key; null: nobody's.",
  ),
)

const AuditReadsDays = Nullable(
  Type.Integer({
    minimum: 1,
    maximum: RETENTION_DAYS_MAX,
    description: 'Days for which reads stay in the audit; null: as long as the project.',
    examples: [400],
  }),
)

const Outcomes = Type.Record(
  Type.String({ pattern: OUTCOME_WORD.source }),
  OneOf(['failed', 'passed'], 'What it means.'),
  {
    additionalProperties: false,
    maxProperties: OUTCOME_WORDS_MAX,
    description:
      "The project's own words for how a session ended, where `configs` have one as `status`, `outcome`, `result`, `state`, `verdict` or `exit_status`; in any case. The console and the command line show and count them.",
    examples: [{ submitted: 'passed', handed_over: 'failed' }],
  },
)

const MODEL = {
  url: Type.String({
    maxLength: 2_048,
    pattern: '^https?://[^@]+$',
    description: 'Base URL of an OpenAI-compatible API.',
    examples: ['https://api.openai.com/v1'],
  }),
  name: Text(200, 'The model.', 'gpt-5-mini'),
}
const MODEL_DESCRIPTION =
  "The model with which its learning spaces learn, and which summarises long sessions (`auto_compact_tokens`); null: the service's, if that has one."
const Key = Type.String({
  pattern: '^[\\x21-\\x7e]{1,1000}$',
  description: 'API key for it, which is never shown.',
})

const ModelTokens = Nullable(
  Between(
    0,
    QUOTA_MAX,
    'Most tokens of a model for its learning spaces and summaries in a day, in UTC; 0: none is asked; null: as the service is configured.',
  ),
)

const AutoCompactTokens = Nullable(
  Between(
    AUTO_COMPACT_TOKENS_MIN,
    QUOTA_MAX,
    'Tokens of a context from which on the model writes a summary of the beginning of the session, in the background; null: never.',
  ),
)

const SETTINGS = {
  retention_days: RetentionDays,
  rate_limit_per_second: RateLimit,
  max_sessions: quota('Most sessions of the project.'),
  max_bytes: quota('Most bytes of the entries of all its sessions, as the JSON in which they were sent.'),
  max_blob_bytes: quota('Most bytes of all its blobs.'),
  max_tails: quota('Most open live tails at each node.'),
  max_model_tokens_per_day: ModelTokens,
  auto_compact_tokens: AutoCompactTokens,
  search: Search,
  proof: Proof,
  mask_viewers: MaskViewers,
  audit_reads: AuditReads,
  audit_reads_days: AuditReadsDays,
  outcomes: Nullable(Outcomes),
}

export const Project = Type.Object(
  {
    id: Uuid('The project.'),
    name: Name,
    created_at: Timestamp('When it was created.'),
    ...SETTINGS,
    model: Nullable(Type.Object(MODEL, { description: MODEL_DESCRIPTION })),
  },
  { $id: 'Project' },
)

export const Token = Type.Object(
  {
    id: Uuid('The token, for revoking it.'),
    project_id: Uuid('Its project.'),
    name: Name,
    scopes: Scopes,
    masked: Masked,
    created_at: Timestamp('When it was created.'),
    expires_at: Nullable(Timestamp('When it expires; null: never.')),
    revoked_at: Nullable(Timestamp('When it was revoked; null: it was not.')),
  },
  { $id: 'Token' },
)

/** A key, as it is told of itself. */
export const OwnKey = Type.Object(
  {
    id: Token.properties.id,
    project_id: Token.properties.project_id,
    scopes: Type.Array(Type.String(), { description: 'What it allows.', examples: [['read', 'write']] }),
    ...optional({
      masked: Type.Literal(true, {
        description: 'It reads masks in place of personal data. Absent: it reads everything.',
      }),
      reaches: Type.Object(
        {},
        {
          additionalProperties: true,
          description: 'For a token for some sessions: the sessions it reaches. Absent: the whole project.',
        },
      ),
      expires_at: Timestamp('When such a token expires.'),
      outcomes: Outcomes,
    }),
  },
  { $id: 'OwnKey' },
)

const ProjectSettings = {
  ...Type.Partial(Type.Object(SETTINGS)).properties,
  model: Type.Optional(
    Nullable(Strict({ ...MODEL, key: Type.Optional(Key) }, { description: MODEL_DESCRIPTION })),
  ),
}

export const CreateProjectBody = Strict({ name: Name, ...ProjectSettings })

/** Omitted fields stay unchanged. */
export const ChangeProjectBody = Strict(ProjectSettings)

export const CreateTokenBody = Strict({
  name: Name,
  scopes: Type.Optional(Scopes),
  masked: Type.Optional(Masked),
  expires_at: Type.Optional(Nullable(Timestamp('When it expires.'))),
})

export const TokenSecret = Type.String({
  description: 'The secret. It is shown only once.',
  examples: ['sk-annals-…'],
})

/** A new token: the only time that its secret is shown. */
export const NewToken = Type.Object({
  token: TokenSecret,
  ...Token.properties,
})

const Max = Nullable(Count('The quota; null: none.'))

function used(description: string) {
  return Type.Object({ used: Count(description), max: Max })
}

const Figure = Type.Integer({ minimum: 0 })

export const UsageQuery = Strict(optional({ days: Between(1, 366, 'How many days, to today.', 30) }))

/** A project's usage beside its quotas. More objects may be added. */
export const Usage = Type.Object(
  {
    counted_at: Timestamp('When sessions, entries and bytes were counted.'),
    sessions: used('How many there are.'),
    entries: used('Messages and events in the logs of all sessions.'),
    bytes: used('Of all entries, and of input that waits for a runner, as the JSON in which they were sent.'),
    blobs: Type.Object({ used: Count('How many there are.') }),
    blob_bytes: used('Of all blobs.'),
    statements: Type.Object({ used: Count('Of all learning spaces, in every state.') }),
    model_tokens: used('Of models, today, in UTC; a call under way counts with an estimate.'),
    tails: used('Live tails open at the node that answers; the quota applies to each node.'),
    requests_per_second: Type.Object({
      max: Nullable(
        Count("For each of the project's keys at each node; 0: unlimited; null: the service's default."),
      ),
    }),
    days: Type.Array(
      Type.Object({
        day: Type.String({ format: 'date', description: 'In UTC.' }),
        sessions: Figure,
        entries: Figure,
        bytes: Figure,
        blobs: Figure,
        blob_bytes: Figure,
        statements: Figure,
        model_tokens: Figure,
      }),
      {
        description:
          'What was stored and used on each day, whether or not it was deleted since; of statements, those that still exist. Newest first; a day without use is left out.',
      },
    ),
  },
  { $id: 'Usage' },
)

export const PROJECT_BODIES = {
  createProject: whole(CreateProjectBody),
  changeProject: whole(ChangeProjectBody),
  createToken: whole(CreateTokenBody),
  createKey: whole(CreateTokenBody),
} as const
