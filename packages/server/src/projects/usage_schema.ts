import Type from '#typebox'
import { Between, Count, Nullable, optional, Strict, Timestamp } from '../contract/schema.js'

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
    bytes: used('Of all entries, as the JSON in which they were sent.'),
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
