import Type from '#typebox'
import { Nullable, Timestamp } from '../contract/schema.js'

const Max = Nullable(Type.Integer({ minimum: 0, description: 'The quota; null: none.' }))

function used(description: string) {
  return Type.Object({ used: Type.Integer({ minimum: 0, description }), max: Max })
}

/** A project's usage beside its quotas. More objects may be added. */
export const Usage = Type.Object(
  {
    counted_at: Timestamp('When sessions, entries and bytes were counted.'),
    sessions: used('How many there are.'),
    entries: used('Messages and events in the logs of all sessions.'),
    bytes: used('Of all entries, as the JSON in which they were sent.'),
    blobs: Type.Object({ used: Type.Integer({ minimum: 0, description: 'How many there are.' }) }),
    blob_bytes: used('Of all blobs.'),
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
  },
  { $id: 'Usage' },
)
