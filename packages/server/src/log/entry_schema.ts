import {
  Between,
  cursorQuery,
  Flag,
  JsonObject,
  optional,
  pageQuery,
  Strict,
  Timestamp,
  Uuid,
} from '@annals/kits/contract/schema.js'
import {
  ATOMIC_SESSIONS_MAX,
  BATCH_ENTRIES_MAX,
  ENTRY_PAGE_LIMIT_DEFAULT,
  ENTRY_PAGE_LIMIT_MAX,
  IDS_MAX,
  RETRACTED_LAST_MAX,
} from '@annals/kits/limits.js'
import Type, { type Static } from '#typebox'
import { EntryKey, EventData, EventType, entryMarks, entryOptions, Seq } from './event_schema.js'
import { Message, MessageBlob, MessageFormat, MessageMeta } from './message_schema.js'

const Kind = Type.Union([Type.Literal('message'), Type.Literal('event')], {
  description: 'Only entries of this kind.',
})

export const TimelineEvent = Type.Object(
  {
    kind: Type.Literal('event'),
    seq: Seq,
    id: Uuid('The event.'),
    project_id: Uuid('The project that the token names.'),
    session_id: Uuid('The session whose log contains it.'),
    type: EventType,
    data: EventData,
    created_at: Timestamp('When it was stored.'),
    updated_at: Timestamp('As `created_at`.'),
    ...entryMarks,
  },
  { $id: 'TimelineEvent' },
)

const { parts: _derived, ...messageFields } = Message.properties

export const TimelineMessage = Type.Object(
  {
    kind: Type.Literal('message'),
    ...messageFields,
    format: MessageFormat,
    blob: MessageBlob,
    ...entryMarks,
  },
  { $id: 'TimelineMessage' },
)

export const TimelineItem = Type.Union([Type.Ref('TimelineMessage'), Type.Ref('TimelineEvent')], {
  $id: 'TimelineItem',
  description: 'An entry of a log: an event unchanged, or a message with its stored blob and its format.',
  discriminator: {
    propertyName: 'kind',
    mapping: { message: '#/components/schemas/TimelineMessage', event: '#/components/schemas/TimelineEvent' },
  },
})

const AfterSeq = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'Only entries with a greater seq.',
  examples: [7],
})

export const TimelineQuery = Strict({
  kind: Type.Optional(Kind),
  type: Type.Optional(EventType),
  after_seq: Type.Optional(AfterSeq),
  ids: Type.Optional(
    Type.String({
      description: `Up to ${IDS_MAX} ids of entries, separated by commas: these entries in this order, without those that the session does not have. Not together with other parameters.`,
    }),
  ),
  ...pageQuery(ENTRY_PAGE_LIMIT_DEFAULT, ENTRY_PAGE_LIMIT_MAX),
})
export type TimelineQuery = Static<typeof TimelineQuery>

export const RetractedEntries = Type.Object({
  retraction: Type.Ref('SessionEvent'),
  items: Type.Array(Type.Ref('TimelineItem'), {
    description: 'The entries that it retracted, in order of seq. Empty for a key without the scope `read`.',
  }),
  appended: Type.Optional(
    Type.Array(Type.Ref('TimelineItem'), {
      description: 'If entries were given: as they were stored, in order.',
    }),
  ),
})

export const LatestQuery = Strict({
  key: Type.Optional(EntryKey),
  key_prefix: Type.Optional({ ...EntryKey, description: 'Only keys that begin with this.' }),
  ...cursorQuery(),
})
export type LatestQuery = Static<typeof LatestQuery>

export const TailHeaders = Type.Object(
  optional({
    accept: Type.String({ description: '`text/event-stream` for the live tail.' }),
    'last-event-id': Type.String({
      pattern: '^(0|[1-9][0-9]{0,15})(@[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{6}Z)?$',
      description:
        'For the live tail: the `seq` of the last entry received, or better `<seq>@<created_at>`, which is refused (`log_diverged`) if that entry has changed, as after a restore. It takes precedence over `after_seq`.',
    }),
  }),
)

const GivenId = Type.Optional(
  Uuid(
    'An id for the entry. If the session already has an entry with this id, that one is returned and nothing is stored.',
  ),
)

const BatchEntry = Type.Union(
  [
    Strict({
      kind: Type.Literal('event'),
      type: EventType,
      data: EventData,
      ...entryOptions,
      id: GivenId,
    }),
    Strict({
      kind: Type.Literal('message'),
      blob: MessageBlob,
      format: Type.Optional(MessageFormat),
      meta: Type.Optional(MessageMeta),
      ...entryOptions,
      id: GivenId,
    }),
  ],
  { 'x-discriminator': 'kind' },
)

const Entries = Type.Array(BatchEntry, { minItems: 1, maxItems: BATCH_ENTRIES_MAX })

const Apply = Type.Array(Uuid('A pending input of the session.'), {
  minItems: 1,
  maxItems: 200,
  description:
    'Inputs of the inbox that become entries in the same commit, before the others and with their own ids: exactly once, or the whole request is refused (`not_pending`).',
})

export const AppendEntriesBody = Strict(optional({ entries: Entries, apply: Apply }), {
  examples: [{ entries: [{ kind: 'event', type: 'tool_call', data: {} }] }],
})
export type AppendEntriesBody = Static<typeof AppendEntriesBody>

export const AppendToSessionsBody = Strict({
  appends: Type.Array(
    Strict({
      session_id: Uuid('The session; each at most once.'),
      ...optional({
        entries: Entries,
        apply: Apply,
        fence: Between(
          0,
          Number.MAX_SAFE_INTEGER,
          'The fence of the lease that the caller holds; by default that in the header `Annals-Fence`.',
        ),
        if_match: Between(
          0,
          Number.MAX_SAFE_INTEGER,
          'Append only if the last seq of the session still has this value.',
        ),
        configs_patch: JsonObject(
          "Merged into the top level of the session's configs; null deletes a key. Not merged again if all entries are already stored.",
          { stage: 'booked' },
        ),
      }),
    }),
    { minItems: 1, maxItems: ATOMIC_SESSIONS_MAX },
  ),
})
export type AppendToSessionsBody = Static<typeof AppendToSessionsBody>

export const AppendToSessionsQuery = Strict({
  with_items: Type.Optional(
    Flag(
      "false: `items` is empty, and `seqs` has the entries' positions. For callers that do not need their own data back.",
    ),
  ),
})

export const AppendedToSessions = Type.Object({
  appends: Type.Array(
    Type.Object({
      session_id: Uuid('The session.'),
      items: Type.Array(Type.Ref('TimelineItem'), { description: 'Its entries, in the order sent.' }),
      seqs: Type.Optional(
        Type.Array(Type.Integer(), {
          description: 'Only with `with_items=false`: the seqs of its entries, in the order sent.',
        }),
      ),
    }),
    { description: 'In the order sent.' },
  ),
})
export const RetractEntriesBody = Strict(
  optional({
    ids: Type.Array(Uuid('An entry of the session.'), {
      minItems: 1,
      maxItems: IDS_MAX,
      description: 'These entries. Already retracted ones are skipped.',
    }),
    after_seq: { ...AfterSeq, description: 'All entries with a greater seq, up to 10,000.' },
    last: Between(
      1,
      RETRACTED_LAST_MAX,
      'This many of the newest entries that were not retracted. With `type`, or `kind` event, those among the newest 10,000.',
    ),
    kind: { ...Kind, description: 'With `last`: only entries of this kind.' },
    type: { ...EventType, description: 'With `last`: only events of this type.' },
    entries: {
      ...Entries,
      description:
        'Appended after the retraction in the same commit, as by `POST …/entries` but without their own ids: this replaces entries, all or nothing.',
    },
  }),
  { examples: [{ last: 1 }] },
)
export type RetractEntriesBody = Static<typeof RetractEntriesBody>

export const AppendedEntries = Type.Object({ items: Type.Array(Type.Ref('TimelineItem')) })
