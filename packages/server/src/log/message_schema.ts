import {
  Between,
  Count,
  Flag,
  JsonInQuery,
  JsonObject,
  Nullable,
  optional,
  pageQuery,
  Strict,
  Timestamp,
  Uuid,
} from '@annals/kits/contract/schema.js'
import { ENTRY_PAGE_LIMIT_MAX } from '@annals/kits/limits.js'
import { MESSAGE_FORMATS } from '@annals/messages'
import Type, { type Static } from '#typebox'
import { EntryKey, entryOptions, OccurredAt, Seq } from './event_schema.js'

export const MessageFormat = Type.Union(
  MESSAGE_FORMATS.map((format) => Type.Literal(format)),
  {
    description:
      "The provider whose own message format it is: OpenAI's Chat Completions (`openai`) or Responses API (`responses`), Anthropic, Gemini; `acontext` is the neutral form.",
    default: 'openai',
  },
)

export const MessageBlob = JsonObject(
  "One whole message in the provider's own format; of the Responses API, one item.",
  {
    role: 'user',
    content: 'Where is my flight?',
  },
)

export const MessageMeta = JsonObject(
  'Any JSON object of the caller, stored with the message, up to 64 KiB.',
  {
    source: 'web',
  },
)

const Part = Type.Object(
  {
    type: Type.String({ examples: ['text'] }),
    text: Type.Optional(Nullable(Type.String())),
    meta: Type.Optional(
      Nullable(JsonObject('Further data of the part.', { id: 'call_1', name: 'get_user_details' })),
    ),
  },
  { description: 'One block of content in the neutral form.', additionalProperties: true },
)

export const Message = Type.Object(
  {
    id: Uuid('The message.'),
    session_id: Uuid('The session whose log contains it.'),
    parent_id: Nullable(Uuid('The previous message in the session.')),
    role: Type.Union([Type.Literal('user'), Type.Literal('assistant')]),
    meta: MessageMeta,
    parts: Type.Array(Part),
    task_id: Type.Null(),
    session_task_process_status: Type.Union([Type.Literal('pending'), Type.Literal('disable_tracking')]),
    created_at: Timestamp('When it was stored. It never decreases along `seq`.'),
    updated_at: Timestamp('When its meta last changed.'),
    seq: Seq,
    key: Type.Optional(EntryKey),
    occurred_at: Type.Optional(OccurredAt),
  },
  { $id: 'Message' },
)

export const AddMessageBody = Strict({
  blob: MessageBlob,
  format: Type.Optional(MessageFormat),
  meta: Type.Optional(Nullable(MessageMeta)),
  ...entryOptions,
})
export type AddMessageBody = Static<typeof AddMessageBody>

const OMITTED_REASONS = [
  'not_in_format',
  'empty',
  'no_call',
  'duplicate_result',
  'duplicate_item',
  'no_result',
  'reasoning',
  'cache_marks',
  'compacted',
] as const

export const Reasoning = Type.Union([Type.Literal('keep'), Type.Literal('drop'), Type.Literal('last_turn')], {
  description:
    "Whether a model's thoughts (`reasoning_content` and the like, thinking, reasoning items) are included: all, none, or those since the user last said something. Providers differ in what they accept.",
  default: 'keep',
})

export const Omitted = Type.Array(
  Type.Object({
    id: Uuid('The message.'),
    reason: Type.Union(
      OMITTED_REASONS.map((reason) => Type.Literal(reason)),
      {
        description:
          '`not_in_format`: the format cannot say it; `empty`: the message says nothing; `no_call`: a result without its call; `duplicate_result`: another result of the call counts; `duplicate_item`: the list has the item already; `no_result`: a call without a result, where the format has no way to say so; `reasoning`: thoughts that are not wanted, or that nothing follows; `cache_marks`: marks beyond four; `compacted`: a compaction by the provider stands for it.',
      },
    ),
    what: Type.Optional(Type.String({ description: 'The kind of part.', examples: ['thinking'] })),
    call_id: Type.Optional(Type.String({ examples: ['call_1'] })),
  }),
  { description: 'Parts of the messages that were left out.' },
)

export const Added = Type.Array(
  Type.Object({
    id: Uuid('The message that it belongs to.'),
    reason: Type.Union([Type.Literal('no_result'), Type.Literal('late_result'), Type.Literal('turn')], {
      description:
        "`no_result`: a call without a result got a placeholder; `late_result`: a result arrived after its call had been sent without it, and is a user's text; `turn`: a user's turn, where the provider requires one.",
    }),
    call_id: Type.Optional(Type.String({ examples: ['call_1'] })),
  }),
  { description: 'What was added to the list, or moved within it.' },
)

export const Names = Type.Record(Type.String(), Type.String(), {
  description:
    'Tools whose names the provider does not accept: a map from the names in the list to their own names. Declare the tools under the former, and call them by the latter.',
  examples: [{ api_search_0a1b2c3d4e5: 'api:search' }],
})

export const ListMessagesQuery = Strict({
  format: Type.Optional(MessageFormat),
  ...pageQuery(),
  ...optional({
    limit: Between(
      0,
      ENTRY_PAGE_LIMIT_MAX,
      'Most messages per page. Absent or 0: the whole session, streamed.',
    ),
    time_desc: Flag(
      'true: pages go from the newest messages to the oldest. Each page itself reads oldest to newest.',
    ),
    edit_strategies: JsonInQuery(
      'A JSON array, URL-encoded, of `{ "type", "params" }`, which are applied in order to the messages of the page: `remove_tool_result` and `remove_tool_call_params` clear all but the newest results or arguments of calls, `token_limit` leaves out the oldest messages, `middle_out` those in the middle.',
      '[{"type":"token_limit","params":{"limit_tokens":8000}}]',
    ),
    pin_editing_strategies_at_message: Uuid(
      'The last message that `edit_strategies` are applied to; later ones are shown as they are.',
    ),
    fit: Flag(
      'true: the messages of the page as a list that can be sent to the provider, as `GET /session/{session_id}/context` has them. Only the page is considered, at most 10,000 messages and 32 MiB.',
    ),
    reasoning: Reasoning,
    with_events: Flag('true: also the events between the messages of the page.'),
    with_asset_public_url: Flag(
      'true: also a URL for each blob of the page, which needs no API key and is valid for 5 minutes.',
    ),
  }),
})

export const MessagePage = Type.Object({
  items: Type.Array(JsonObject('A message in the requested format.', { role: 'user', content: 'Hello' })),
  ids: Type.Array(Uuid('The message from which the item at the same index comes, or with which it begins.')),
  metas: Type.Array(MessageMeta),
  has_more: Type.Boolean(),
  next_cursor: Type.String(),
  edit_at_message_id: Type.String({
    description:
      "`pin_editing_strategies_at_message`, if it was sent; otherwise the id of the page's last message, empty on a page without messages.",
  }),
  this_time_tokens: Count('Tokens of the page as returned (o200k_base); an estimate where it is edited.'),
  public_urls: Type.Optional(
    Type.Record(
      Type.String(),
      Type.Object({ url: Type.String(), expire_at: Timestamp('Until when the URL is valid.') }),
      { description: 'By the SHA-256 of the blobs.' },
    ),
  ),
  omitted: Type.Optional(Omitted),
  added: Type.Optional(Added),
  names: Type.Optional(Names),
  events: Type.Optional(Type.Array(Type.Ref('SessionEvent'))),
})

export const PatchMetaBody = Strict({ meta: MessageMeta })

export const MergedMeta = Type.Object({ meta: MessageMeta })

export const TokenCounts = Type.Object({
  total_tokens: Type.Integer({ minimum: 0 }),
  counted: Type.Union([Type.Literal('all'), Type.Literal('text')], {
    description:
      '`all`: everything that is sent. `text`: after an upgrade, the session is not yet recounted completely, and the total will grow.',
  }),
  auto_compaction: Type.Optional(
    Type.Union([Type.Literal('waits'), Type.Literal('running'), Type.Literal('failed')], {
      description:
        'Whether the model will write a summary of the beginning of the session. `waits`: it is due, or the model is unavailable or its quota used up. `running`: it is being written. `failed`: the answers of the model were unusable; it is asked again once the context has grown. Absent: no summary is due.',
    }),
  ),
})

export type SessionTokens = Static<typeof TokenCounts>

const Most = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const ToolNames = Type.Array(Type.String({ maxLength: 256 }), { maxItems: 1_000 })
const WHICH = { keep_tools: Type.Optional(ToolNames), gt_token: Type.Optional(Most) }

export const EditStrategies = Type.Array(
  Type.Union(
    [
      Strict({
        type: Type.Literal('remove_tool_result'),
        params: Type.Optional(
          Strict({
            ...WHICH,
            keep_recent_n_tool_results: Type.Optional(Most),
            tool_result_placeholder: Type.Optional(Type.String({ maxLength: 256 })),
          }),
        ),
      }),
      Strict({
        type: Type.Literal('remove_tool_call_params'),
        params: Type.Optional(Strict({ ...WHICH, keep_recent_n_tool_calls: Type.Optional(Most) })),
      }),
      Strict({ type: Type.Literal('token_limit'), params: Strict({ limit_tokens: Most }) }),
      Strict({ type: Type.Literal('middle_out'), params: Strict({ token_reduce_to: Most }) }),
    ],
    { 'x-discriminator': 'type' },
  ),
  { maxItems: 16 },
)
