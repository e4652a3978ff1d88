import {
  cursorQuery,
  Flag,
  JsonInQuery,
  Nullable,
  OneOf,
  optional,
  Strict,
  Text,
  Timestamp,
  UserIdentifier,
  Uuid,
} from '@annals/kits/contract/schema.js'
import { EVENT_TYPE_LENGTH_MAX, SEARCH_QUERY_LENGTH_MAX } from '@annals/kits/limits.js'
import Type, { type Static } from '#typebox'
import { EventType, OccurredAt, Seq } from '../log/event_schema.js'
import { ASKED } from './recall/recall_schema.js'

const ONLY = optional({
  user: UserIdentifier,
  filter_by_configs: JsonInQuery(
    'A JSON object, URL-encoded. Only entries of sessions whose `configs` contain it, as in the list of sessions.',
    '{"agent":"gpt-4o"}',
  ),
  session_id: Uuid('Only entries of this session.'),
  kind: OneOf(['message', 'event'], 'Only entries of this kind.'),
  type: Text(EVENT_TYPE_LENGTH_MAX, 'Only events of this type.', 'tool_call'),
  role: Text(64, 'Only messages with this role.', 'assistant'),
  from: Timestamp(
    'Only entries that happened at this time or later: by `occurred_at` where it is set and not later than `created_at`.',
  ),
  to: Timestamp('Only entries that happened at this time or earlier.'),
})

export const SearchQuery = Strict({
  q: Type.String({
    maxLength: SEARCH_QUERY_LENGTH_MAX,
    description:
      'The words of an entry: `words`, `"words in this order"`, `-without`, `begin*`; up to 32 words. Case does not matter. A word with signs in it, such as `get_user`, is searched as if it stood in quotes.',
    examples: ['refund -paid'],
  }),
  mode: Type.Optional(
    OneOf(
      ['words', 'recall'],
      '`words`: entries that have all that `q` names. `recall`: those that answer a question in plain words best, in any form of its words; not all need to be there.',
    ),
  ),
  group: Type.Optional(
    OneOf(
      ['session', 'entry'],
      'What the items are: entries, or sessions with their entries. By default sessions with `mode=recall`, and entries otherwise.',
    ),
  ),
  ...ONLY,
  noise: Type.Optional(
    Flag(
      'false: without events whose `data` has `"noise": true`, such as lines of progress that an import kept. Only with `mode=words`.',
    ),
  ),
  order: Type.Optional(
    Type.Union([Type.Literal('newest'), Type.Literal('relevance')], {
      default: 'newest',
      description:
        'The newest entries first; or, of the newest 200 that match, those first that match best, then of the next 200.',
    }),
  ),
  ...cursorQuery(),
})
export type SearchQuery = Static<typeof SearchQuery>

const SNIPPET = Type.Object({
  text: Type.String({
    description: "Up to 200 characters of the entry's text, around the match.",
    examples: ['…your refund failed, because the card has expired'],
  }),
  hits: Type.Array(Type.Array(Type.Integer({ minimum: 0 }), { minItems: 2, maxItems: 2 }), {
    description: 'Where matches in it begin and end, in UTF-16 code units.',
    examples: [[[6, 12]]],
  }),
})

const WHAT = {
  seq: Seq,
  kind: Type.Union([Type.Literal('message'), Type.Literal('event')]),
  type: Type.Optional(EventType),
  role: Type.Optional(
    Type.String({
      description: 'The role of a message; `tool` if it has only results of tools, whatever its stored role.',
      examples: ['assistant'],
    }),
  ),
  created_at: Timestamp('When it was stored.'),
  occurred_at: Type.Optional(OccurredAt),
  snippet: SNIPPET,
}

const beside = (which: string) =>
  Type.Optional(Type.Object(WHAT, { description: `With \`mode=recall\`: the entry right ${which} it.` }))

export const FoundEntry = Type.Object(
  {
    session_id: Uuid('The session whose log has the entry.'),
    ...WHAT,
    score: Type.Optional(
      Type.Number({
        description: 'With `mode=recall`: how well it answers. Comparable within an answer.',
        examples: [8.1],
      }),
    ),
    before: beside('before'),
    after: beside('after'),
  },
  { $id: 'FoundEntry' },
)

const PAGE_OF_ANY = {
  has_more: Type.Boolean({
    description:
      'Whether another page follows. If matches are rare, a page may be short or empty although more follow. A question is answered with one page.',
  }),
  next_cursor: Type.String({ description: 'The `cursor` of the next page; empty on the last page.' }),
  ...ASKED,
  indexed_through: Nullable(
    Timestamp(
      'Everything stored before this time can be found; null while existing entries are being indexed.',
    ),
  ),
  indexing: Nullable(
    Type.Object(
      {
        sessions_done: Type.Integer({ minimum: 0 }),
        sessions: Type.Integer({ minimum: 0 }),
      },
      { description: 'Progress of building the index; null when it is done.' },
    ),
  ),
  refilling: Type.Optional(
    Type.Object(
      {
        entries_done: Type.Integer({ minimum: 0 }),
        entries: Type.Integer({ minimum: 0 }),
      },
      {
        description:
          "With `mode=recall`, while an older version's index is being rewritten: in the remaining entries, only exact words are found.",
      },
    ),
  ),
}

export const FoundPage = Type.Object(
  { items: Type.Array(Type.Ref('FoundEntry')), ...PAGE_OF_ANY },
  { $id: 'FoundPage', description: 'With `group=entry`.' },
)

export const FoundSessions = Type.Object(
  {
    items: Type.Array(Type.Ref('FoundSession'), {
      description: 'With `mode=words`, a session has those of its entries that are on this page.',
    }),
    ...PAGE_OF_ANY,
  },
  { $id: 'FoundSessions', description: 'With `group=session`.' },
)
