import {
  JsonObject,
  optional,
  pageQuery,
  Strict,
  Text,
  Timestamp,
  Uuid,
} from '@annals/kits/contract/schema.js'
import {
  ENTRY_KEY_LENGTH_MAX,
  ENTRY_PAGE_LIMIT_DEFAULT,
  ENTRY_PAGE_LIMIT_MAX,
  EVENT_TYPE_LENGTH_MAX,
  IDEMPOTENCY_KEY_LENGTH_MAX,
} from '@annals/kits/limits.js'
import Type, { type Static } from '#typebox'

export const EventType = Text(EVENT_TYPE_LENGTH_MAX, 'The kind of event, named by the caller.', 'tool_call')

export const EventData = JsonObject('The event itself: any JSON object.', {
  name: 'get_reservation_details',
  arguments: { reservation_id: 'JG7FMM' },
})

export const Seq = Type.Integer({
  minimum: 1,
  description: "The entry's number in its session: 1, 2, 3, … without gaps, in commit order.",
  examples: [7],
})

export const Fence = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'The number of a lease. It only increases: the next lease has a higher one.',
  examples: [1_795_685_400_123],
})

export const EntryKey = Text(
  ENTRY_KEY_LENGTH_MAX,
  "The caller's name for what the entry says. The newest entry of each key is its latest.",
  'plan',
)

export const OccurredAt = Timestamp(
  "When it happened, if not when it was stored. Years 1 to 9999, no leap second; digits beyond microseconds are cut off, and answers are in UTC. It is never compared with the service's clock.",
)

/** Fields of an entry that are left out if unset. */
export const entryMarks = optional({
  key: EntryKey,
  occurred_at: OccurredAt,
  retracted_by: Type.Integer({
    minimum: 1,
    description: 'The seq of the event that retracted the entry. Absent: it was not retracted.',
  }),
})

export const SessionEvent = Type.Object(
  {
    id: Uuid('The event.'),
    project_id: Uuid('The project that the token names.'),
    session_id: Uuid('The session whose log contains it.'),
    type: EventType,
    data: EventData,
    seq: Seq,
    created_at: Timestamp('When it was stored. It never decreases along `seq`.'),
    updated_at: Timestamp('The same as `created_at`: events do not change.'),
    ...entryMarks,
  },
  { $id: 'SessionEvent' },
)

/** Optional fields of events and messages. */
export const entryOptions = optional({ key: EntryKey, occurred_at: OccurredAt })

export const AddEventBody = Strict({ type: EventType, data: EventData, ...entryOptions })
export type AddEventBody = Static<typeof AddEventBody>

export const ListEventsQuery = Strict({
  type: Type.Optional(EventType),
  ...pageQuery(ENTRY_PAGE_LIMIT_DEFAULT, ENTRY_PAGE_LIMIT_MAX),
})

export const IdempotencyHeaders = Type.Object(
  optional({
    'idempotency-key': Text(
      IDEMPOTENCY_KEY_LENGTH_MAX,
      'Makes a retry safe: the same request with the same key stores nothing more and returns the first answer with `Idempotent-Replayed: true`. Kept for at least 24 hours.',
      '5f2c1f9e-append-17',
    ),
  }),
)

export const FenceHeaders = Type.Object(
  optional({
    'annals-fence': Type.String({
      pattern: '^(0|[1-9][0-9]{0,15})$',
      description:
        'The fence of the lease that the caller holds: if somebody has taken the lease since, nothing is stored (`fenced`).',
      examples: ['1795685400123'],
    }),
  }),
)

export const AppendHeaders = Type.Object({
  ...IdempotencyHeaders.properties,
  ...FenceHeaders.properties,
  'if-match': Type.Optional(
    Type.String({
      pattern: '^"(0|[1-9][0-9]{0,15})"$',
      description:
        'Append only if the last seq of the session still has this value; `"0"` means: only if the log is empty.',
      examples: ['"7"'],
    }),
  ),
})
