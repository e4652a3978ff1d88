import Type from '#typebox'
import { Nullable, Strict, Timestamp } from '../contract/schema.js'

const Max = Nullable(Type.Integer({ minimum: 0, description: 'The quota; null: none.' }))

function used(description: string) {
  return Type.Object({ used: Type.Integer({ minimum: 0, description }), max: Max })
}

const Count = Type.Integer({ minimum: 0 })

export const UsageQuery = Strict({
  days: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 366, default: 30, description: 'How many days, to today.' }),
  ),
})

/** A project's usage beside its quotas. More objects may be added. */
export const Usage = Type.Object(
  {
    counted_at: Timestamp('When sessions, entries and bytes were counted.'),
    sessions: used('How many there are.'),
    entries: used('Messages and events in the logs of all sessions.'),
    bytes: used('Of all entries, as the JSON in which they were sent.'),
    blobs: Type.Object({ used: Type.Integer({ minimum: 0, description: 'How many there are.' }) }),
    blob_bytes: used('Of all blobs.'),
    statements: Type.Object({
      used: Type.Integer({ minimum: 0, description: 'Of all learning spaces, in every state.' }),
    }),
    model_tokens: used('Of models, today, in UTC; a call under way counts with an estimate.'),
    tails: used('Live tails open at the node that answers; the quota applies to each node.'),
    requests_per_second: Type.Object({
      max: Nullable(
        Type.Integer({
          minimum: 0,
          description:
            "For each of the project's keys at each node; 0: unlimited; null: the service's default.",
        }),
      ),
    }),
    days: Type.Array(
      Type.Object({
        day: Type.String({ format: 'date', description: 'In UTC.' }),
        sessions: Count,
        entries: Count,
        bytes: Count,
        blobs: Count,
        blob_bytes: Count,
        statements: Count,
        model_tokens: Count,
      }),
      {
        description:
          'What was stored and used on each day, whether or not it was deleted since; of statements, those that still exist. Newest first; a day without use is left out.',
      },
    ),
  },
  { $id: 'Usage' },
)
