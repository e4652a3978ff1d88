import {
  Between,
  Count,
  cursorQuery,
  Nullable,
  OneOf,
  optional,
  pageQuery,
  Strict,
  Timestamp,
  Uuid,
} from '@annals/kits/contract/schema.js'
import { IDS_MAX } from '@annals/kits/limits.js'
import { KINDS, SKILL_NAME, SKILL_NAME_LENGTH_MAX } from '@annals/learning'
import Type, { type Static } from '#typebox'

const STATEMENT_LENGTH_MAX = 2_000

const Kind = OneOf(KINDS, 'What to do, what to avoid, how things are, or what a person wants.')
const State = OneOf(
  ['proposed', 'active', 'conflict', 'retired', 'revoked'],
  '`proposed` waits for a person; `active` is returned to agents; `conflict`: sessions contradict it; `retired`: a person rejected it; `revoked`: its sources were deleted, and its text with them.',
)
const SkillName = Type.String({
  minLength: 1,
  maxLength: SKILL_NAME_LENGTH_MAX,
  pattern: SKILL_NAME.source,
  description: 'The skill that it belongs to.',
  examples: ['book-reservation'],
})
const Text = Type.String({
  minLength: 1,
  maxLength: STATEMENT_LENGTH_MAX,
  pattern: '\\S',
  description: 'The statement, in a sentence or two.',
  examples: ['Certificates cannot pay for a change of a reservation.'],
})

const Cite = Type.Object({
  session_id: Uuid('The session.'),
  seq: Type.Integer({ minimum: 1, description: 'The entry in it.' }),
  quote: Type.String({ description: 'Words of that entry.' }),
  polarity: OneOf(['+', '-'], '`+`: it supports the statement; `-`: it contradicts it.'),
})

export const Statement = Type.Object(
  {
    id: Uuid('The statement.'),
    learning_space_id: Uuid('Its learning space.'),
    skill: Nullable(Type.String({ description: 'The skill that it belongs to.' })),
    kind: Kind,
    state: State,
    author: OneOf(['rule', 'model', 'person'], 'Who worded it first.'),
    pinned: Type.Boolean({ description: 'A person wrote, edited or approved it: only people reword it.' }),
    text: Type.String({ description: 'The statement; empty if it was revoked.' }),
    supports: Count('Sessions that support it.'),
    contradicts: Count('Sessions that contradict it.'),
    used: Count('Sessions that reported whether it helped.'),
    helped: Count('Those that it helped.'),
    harmed: Count('Those that it did not help.'),
    cites: Type.Array(Cite, { description: 'The entries that it cites, at most 100.' }),
    created_at: Timestamp('When it was first stored.'),
    updated_at: Timestamp('When it last changed.'),
  },
  { $id: 'Statement' },
)

export const ListStatementsQuery = Strict({
  state: Type.Optional(State),
  kind: Type.Optional(Kind),
  skill: Type.Optional(SkillName),
  ...pageQuery(),
})

export const AddStatementBody = Strict({
  text: Text,
  kind: Type.Optional(Kind),
  skill: Type.Optional(SkillName),
})
export type AddStatementBody = Static<typeof AddStatementBody>

export const ChangeStatementBody = Strict(
  optional({
    state: OneOf(['active', 'retired'], '`active` approves it; `retired` rejects or withdraws it.'),
    text: Text,
    kind: Kind,
  }),
  { examples: [{ state: 'active' }] },
)
export type ChangeStatementBody = Static<typeof ChangeStatementBody>

export const SpaceContextQuery = Strict(
  optional({
    q: Type.String({
      maxLength: 4_000,
      description:
        "Words of the task, such as the user's first message: statements that share them come first. Without it, statements with the most support come first.",
    }),
    max_tokens: Between(1, 100_000, 'Most tokens of `text`.', 1_000),
  }),
)

export const SpaceContext = Type.Object({
  text: Type.String({ description: 'For a prompt; empty if nothing fits.' }),
  tokens: Count('About how many tokens `text` has.'),
  ids: Type.Array(Type.String({ format: 'uuid' }), { description: 'The statements in `text`, in order.' }),
  items: Type.Array(
    Type.Object({
      id: Uuid('The statement.'),
      skill: Type.String(),
      kind: Kind,
      text: Type.String(),
      supports: Count('Sessions that support it.'),
    }),
  ),
})

export const FeedbackBody = Strict({
  statement_ids: Type.Array(Uuid('A statement of the space that the session used.'), {
    minItems: 1,
    maxItems: IDS_MAX,
  }),
  session_id: Uuid('The session that used them.'),
  helped: Type.Boolean({ description: 'Whether they helped.' }),
})
export type FeedbackBody = Static<typeof FeedbackBody>

export const SkillVersion = Type.Object(
  {
    id: Uuid('This version.'),
    skill: Type.String({ description: 'The skill.' }),
    author: OneOf(['person', 'model', 'erasure'], 'Who changed it.'),
    reason: Type.String({ description: 'What changed.' }),
    statement_ids: Type.Array(Type.String({ format: 'uuid' })),
    text: Nullable(
      Type.String({ description: 'SKILL.md as it was; null if something in it was revoked since.' }),
    ),
    created_at: Timestamp('When.'),
  },
  { $id: 'SkillVersion' },
)

export const HistoryQuery = Strict(cursorQuery())
