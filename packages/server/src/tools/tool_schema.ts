import {
  Between,
  Count,
  JsonInQuery,
  Nullable,
  optional,
  Strict,
  Timestamp,
  UserIdentifier,
  Uuid,
} from '@annals/kits/contract/schema.js'
import Type, { type Static } from '#typebox'
import { Seq } from '../log/event_schema.js'

const ONLY = {
  user: UserIdentifier,
  filter_by_configs: JsonInQuery(
    'A JSON object, URL-encoded. Only calls in sessions whose `configs` contain it, as in the list of sessions.',
    '{"agent":"gpt-4o"}',
  ),
  from: Timestamp('Only calls that were made at this time or later.'),
  to: Timestamp('Only calls that were made before this time.'),
}

export const ToolsQuery = Strict(
  optional({ ...ONLY, limit: Between(1, 200, 'Most tools that are returned.', 100) }),
)
export type ToolsQuery = Static<typeof ToolsQuery>

export const ToolQuery = Strict(
  optional({ ...ONLY, limit: Between(1, 100, 'Most groups of failures that are returned.', 20) }),
)

const FIGURES = {
  name: Type.String({ description: 'The name of the tool.', examples: ['issue_refund'] }),
  calls: Count('How often it was called.'),
  failures: Count('Calls whose result reports a failure.'),
  unanswered: Count('Calls that have no result.'),
  sessions: Count('Sessions that called it.'),
  p50_ms: Nullable(
    Count("The median duration of a call in ms, from its entry to its result's; null if not known."),
  ),
  p95_ms: Nullable(Count('The 95th percentile of the duration in ms; null if not known.')),
  last_called_at: Nullable(Timestamp('When it was last called.')),
}

export const Tool = Type.Object(FIGURES, { $id: 'Tool' })

const HOW_MUCH = {
  complete: Type.Boolean({
    description:
      'Whether every call stored before the request is counted. If not, each number is a lower bound.',
  }),
  counted_from: Nullable(
    Timestamp('Of more than 500,000 calls, the newest are counted: these were made at this time or later.'),
  ),
  indexing: Nullable(
    Type.Object(
      { sessions_done: Count('Sessions that have been read.'), sessions: Count('Sessions of the project.') },
      {
        description:
          'Progress of reading the stored sessions, which the first request starts; null when it is done.',
      },
    ),
  ),
}

export const ToolPage = Type.Object(
  {
    items: Type.Array(Type.Ref('Tool'), { description: 'The tools that failed most come first.' }),
    has_more: Type.Boolean({ description: 'Whether there are more tools than `limit`.' }),
    ...HOW_MUCH,
  },
  { $id: 'ToolPage' },
)

const FailedCall = Type.Object({
  session_id: Uuid('The session that called the tool.'),
  title: Nullable(
    Type.String({
      description: "The session's title: `title` in its configs, or the beginning of a user's first message.",
    }),
  ),
  seq: Seq,
  result_seq: Nullable(Seq),
  called_at: Timestamp('When it was called.'),
  result: Type.String({ description: 'What the tool returned, up to 300 characters.' }),
  said: Nullable(
    Type.Object(
      { seq: Seq, text: Type.String() },
      { description: 'What the assistant said next, up to 300 characters.' },
    ),
  ),
  called: Nullable(
    Type.Object(
      { seq: Seq, name: Type.String() },
      { description: 'Which tool was called next, after this result.' },
    ),
  ),
})

export const ToolFailures = Type.Object(
  {
    ...FIGURES,
    groups: Type.Array(
      Type.Object({
        message: Nullable(
          Type.String({
            description:
              'The first line that the tool returned, without the parts that differ between failures, such as numbers and quoted texts; null for failures without a message.',
            examples: ['payment method … not found'],
          }),
        ),
        failures: Count('Failed calls.'),
        sessions: Count('Sessions with these calls.'),
        first_at: Timestamp('When the first of the calls was made.'),
        last_at: Timestamp('When the last of the calls was made.'),
        examples: Type.Array(FailedCall, { description: 'The newest, up to 3.' }),
      }),
      {
        description: 'Its failed calls, grouped by the common part of their messages, most frequent first.',
      },
    ),
    has_more: Type.Boolean({ description: 'Whether there are more groups than `limit`.' }),
    ...HOW_MUCH,
  },
  { $id: 'ToolFailures' },
)
