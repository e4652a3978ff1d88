import Type, { type Static } from '#typebox'
import { Nullable, Strict, Timestamp, Uuid } from '../../contract/schema.js'
import { LearningSpaceParams } from '../learning_space_schema.js'

export const SpaceSession = Type.Object(
  {
    id: Uuid('This record.'),
    learning_space_id: Uuid('The learning space.'),
    session_id: Uuid('The session that it learns from.'),
    status: Type.Union(
      ['pending', 'distilling', 'queued', 'skill_writing', 'completed', 'failed'].map((status) =>
        Type.Literal(status),
      ),
      {
        description:
          '`pending`: rules have not read it to its end. `completed`: they have; what is appended later is read, too. The others are for a model, and this version asks none.',
      },
    ),
    error: Nullable(Type.String({ description: 'Why learning from it failed, if it did.' })),
    learnt_seq: Type.Integer({ minimum: 0, description: 'Up to where the log was read by rules.' }),
    created_at: Timestamp('When the session was given to the space.'),
    updated_at: Timestamp('When this record last changed.'),
  },
  { $id: 'SpaceSession' },
)

export const LearnBody = Strict({
  session_id: Uuid('A session of the project; for the space of a user, one of that user.'),
  now: Type.Optional(
    Type.Boolean({
      description:
        'For a model, which takes its turn at once then. This version asks none, and rules never wait.',
    }),
  ),
})
export type LearnBody = Static<typeof LearnBody>

export const SpaceSessionParams = Strict({
  ...LearningSpaceParams.properties,
  session_id: Uuid('The session.'),
})

const Path = (what: string) =>
  Type.Optional(
    Type.String({
      pattern: '^(/[^/]{1,100}){1,7}$',
      description: `Where a session's configs have ${what}: names of keys, each after a slash.`,
      examples: ['/reward'],
    }),
  )

const MODES = ['off', 'suggest', 'auto'] as const

export const SpacePolicy = Type.Object(
  {
    mode: Type.Union(
      MODES.map((mode) => Type.Literal(mode)),
      {
        description:
          '`suggest`: every statement waits for a person. `off`: nothing is learnt. `auto` is for statements of a model; this version has none, and those of rules wait for a person in this mode, too.',
      },
    ),
    reward: Path('the reward, a number from 0 (failure) to 1 (success)'),
    group: Path('the task, by which runs are compared'),
    max_tokens_per_day: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1_000_000_000,
        description: 'Most tokens of a model that the space may use in 24 hours. This version asks no model.',
      }),
    ),
  },
  { $id: 'SpacePolicy', additionalProperties: false },
)
export type SpacePolicy = Static<typeof SpacePolicy>
