import {
  Between,
  Count,
  Nullable,
  OneOf,
  optional,
  Strict,
  Timestamp,
  Uuid,
} from '@annals/kits/contract/schema.js'
import Type, { type Static } from '#typebox'

export const SpaceSession = Type.Object(
  {
    id: Uuid('This record.'),
    learning_space_id: Uuid('The learning space.'),
    session_id: Uuid('The session that it learns from.'),
    status: OneOf(
      ['pending', 'distilling', 'queued', 'skill_writing', 'completed', 'failed'],
      '`pending`: rules have not read it to its end. `queued`: it waits for its turn with the model. `distilling`, `skill_writing`: the model is at work. `completed`: it was learnt from; what is appended later is learnt from, too. `failed`: see `error`; if the model is unavailable, it is still retried from time to time. Without a model it is `completed` once rules have read it.',
    ),
    error: Nullable(Type.String({ description: 'Why it cannot be learnt from, if so.' })),
    learnt_seq: Count('How far rules have read the log.'),
    created_at: Timestamp('When the session was added to the space.'),
    updated_at: Timestamp('When this record last changed.'),
  },
  { $id: 'SpaceSession' },
)

export const LearnBody = Strict({
  session_id: Uuid('A session of the project; for the space of a user, one of that user.'),
  now: Type.Optional(
    Type.Boolean({
      description:
        'The model is asked at once, instead of waiting until the session has an outcome or has been quiet for ten minutes; also for a session that is already in the space. Rules never wait.',
    }),
  ),
})
export type LearnBody = Static<typeof LearnBody>

const Path = (what: string) =>
  Type.Optional(
    Type.String({
      pattern: '^(/[^/]{1,100}){1,7}$',
      description: `Where a session's configs have ${what}: names of keys, each after a slash.`,
      examples: ['/reward'],
    }),
  )

export const SpacePolicy = Type.Object(
  {
    mode: OneOf(
      ['off', 'suggest', 'auto'],
      '`suggest`: every statement waits for a person. `auto`: statements of a model become active when sessions of two users support them (in the space of a user, two sessions); procedures only if they also correlate with success in runs of the same task. Statements from rules wait for a person. `off`: nothing is learnt.',
    ),
    reward: Path('the reward, a number from 0 (failure) to 1 (success)'),
    group: Path('the task, by which runs are compared'),
    max_tokens_per_day: Type.Optional(
      Between(0, 1_000_000_000, 'Most tokens of a model that the space may use in 24 hours.'),
    ),
  },
  { $id: 'SpacePolicy', additionalProperties: false },
)
export type SpacePolicy = Static<typeof SpacePolicy>

export const SpaceUsageQuery = Strict(optional({ days: Between(1, 90, 'How many days, to today.', 30) }))

export const SpaceUsage = Type.Object({
  tokens: Type.Object(
    {
      used: Count('In the last 24 hours; a call in flight counts as an estimate.'),
      max: Nullable(Count('`max_tokens_per_day` of the policy; null: none.')),
    },
    { description: 'Tokens of the model, as the budget counts them.' },
  ),
  days: Type.Array(
    Type.Object({
      day: Type.String({ format: 'date', description: 'In UTC: when the inputs were first sent.' }),
      step: OneOf(['reflect', 'curate'], 'What the model was asked to do.'),
      inputs: Count('Different inputs. An answered input is never sent again.'),
      calls: Count('Calls of the model, including those without an answer.'),
      failed: Count('Inputs without a usable answer.'),
      tokens_in: Count('Tokens sent.'),
      tokens_out: Count('Tokens received.'),
    }),
    { description: 'Newest first; a day without a call is left out.' },
  ),
})
