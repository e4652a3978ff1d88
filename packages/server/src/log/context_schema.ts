import {
  Between,
  Count,
  Flag,
  JsonObject,
  optional,
  Strict,
  Text,
  Uuid,
} from '@annals/kits/contract/schema.js'
import Type, { type Static } from '#typebox'
import { Added, MessageFormat, Names, Omitted, Reasoning } from './message_schema.js'

const TOKENS_MAX = 2_000_000

export const ContextQuery = Strict(
  optional({
    format: MessageFormat,
    max_tokens: Between(1, TOKENS_MAX, 'How many tokens the context may have before it is cut.', 100_000),
    target_tokens: Between(
      1,
      TOKENS_MAX,
      'How many tokens it is cut down to. By default 60 % of `max_tokens`; at most `max_tokens`.',
    ),
    keep_tool_results: Between(
      0,
      1_000,
      'This many of the newest tool results stay whole; a short text with seq and size replaces each older one. None: all stay.',
    ),
    exclude_tools: Text(
      4_096,
      'Names of tools, separated by commas, whose results always stay whole.',
      'get_user_details,search_policy',
    ),
    clear_tool_inputs: Flag('true: also empties the arguments of the calls whose results are cleared.'),
    compaction: Type.Union([Type.Literal('newest'), Type.Literal('none')], {
      default: 'newest',
      description: "`none`: ignores the session's compactions.",
    }),
    reasoning: Reasoning,
    pin: Text(
      4_096,
      'The `pin` of the previous answer: keeps its cut, so the same prefix comes back byte for byte until `max_tokens` is exceeded again.',
    ),
  }),
)
export type ContextQuery = Static<typeof ContextQuery>

export const Context = Type.Object({
  items: Type.Array(JsonObject('A message in the requested format.', { role: 'user', content: 'Hello' })),
  ids: Type.Array(
    Uuid(
      'The message that the item at the same place comes from; the first one, where several are one item; of a summary, the event.',
    ),
  ),
  tokens: Count(
    'Tokens of the context (o200k_base); an estimate where tool results are cleared, or a message is partly left out.',
  ),
  from_seq: Count('The seq from which the log is included without a gap; 0 in a session without messages.'),
  cleared_through_seq: Count(
    'Tool results up to this seq are cleared, except those of excluded tools; 0: none.',
  ),
  compaction_seq: Count('The compaction that the context begins with; 0: none.'),
  omitted: Omitted,
  added: Added,
  names: Names,
  pin: Type.String({ description: 'What to send as `pin` with the next call.' }),
})
