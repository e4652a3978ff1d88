import { Nullable, OneOf, Timestamp, Uuid } from '@annals/kits/contract/schema.js'
import Type from '#typebox'

/** Sessions that a question is answered with, at most, and where nothing else is asked for. */
export const RECALL_LIMIT = { default: 10, most: 50 }

export const ASKED = {
  terms: Type.Optional(
    Type.Array(Type.String(), {
      description: 'With `mode=recall`: the words of the question that were searched for.',
      examples: [['omar', 'complain', 'refund']],
    }),
  ),
  complete: Type.Optional(
    Type.Boolean({
      description:
        'With `mode=recall`: whether all entries that have any of the words were scored. Otherwise, only those with the rarest words were, and of frequent words the newest.',
    }),
  ),
  vectors: Type.Optional(
    OneOf(
      ['used', 'filling', 'unavailable'],
      'With `mode=recall`, where the operator has set a model: whether vectors were used, too; `filling`: older entries have none yet; `unavailable`: words alone answer.',
    ),
  ),
}

export const FoundSession = Type.Object(
  {
    session_id: Uuid('The session.'),
    score: Type.Optional(
      Type.Number({
        description: 'With `mode=recall`: how well it answers. Comparable within an answer.',
        examples: [12.4],
      }),
    ),
    title: Nullable(
      Type.String({
        description: "The title in its `configs`, or the beginning of a user's first message.",
        examples: ['Where is my refund?'],
      }),
    ),
    created_at: Timestamp('When the session was created.'),
    entries: Type.Array(Type.Ref('FoundEntry'), {
      description: 'With `mode=recall`: up to three entries, the best first.',
    }),
  },
  { $id: 'FoundSession' },
)
