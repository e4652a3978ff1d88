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
          '`pending`: rules have not read it to its end. `queued`: it waits for the model. `distilling`, `skill_writing`: the model is at work. `completed`: it was learnt from; what is appended later is, too.',
      },
    ),
    error: Nullable(Type.String({ description: 'Why the model has not done its part, if it has not.' })),
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
        'true: the model takes its turn at once, without waiting for an outcome or until the session was quiet for 10 minutes.',
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
          '`suggest`: every statement waits for a person. `auto`: what a model proposes becomes active by itself if it passes all checks. `off`: nothing is learnt.',
      },
    ),
    reward: Path('the reward, a number from 0 (failure) to 1 (success)'),
    group: Path('the task, by which runs are compared'),
    max_tokens_per_day: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1_000_000_000,
        description: 'Most tokens of the model that the space may use in 24 hours.',
      }),
    ),
  },
  { $id: 'SpacePolicy', additionalProperties: false },
)
export type SpacePolicy = Static<typeof SpacePolicy>
