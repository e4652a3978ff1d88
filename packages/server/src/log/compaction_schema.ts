import { optional, Strict, Text, Uuid } from '@annals/kits/contract/schema.js'
import { IDS_MAX, NAME_LENGTH_MAX, SUMMARY_MESSAGES_MAX } from '@annals/kits/limits.js'
import Type, { type Static } from '#typebox'
import { MessageBlob, MessageFormat } from './message_schema.js'

const SummaryMessage = Strict({ blob: MessageBlob, format: Type.Optional(MessageFormat) })

const seq = (description: string) =>
  Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description, examples: [12] })

export const CompactSessionBody = Strict(
  {
    to_seq: seq('The last entry that the summary replaces.'),
    summary: Type.Union(
      [SummaryMessage, Type.Array(SummaryMessage, { minItems: 1, maxItems: SUMMARY_MESSAGES_MAX })],
      {
        description: 'The replacement in contexts: one or more messages, each in its own format.',
      },
    ),
    ...optional({
      from_seq: seq("The first entry that it replaces; by default the session's first."),
      except: Type.Array(Uuid('A message in the range.'), {
        maxItems: IDS_MAX,
        description:
          'Messages that contexts show whole, after the summary. A call and its result stay together.',
      }),
      by: Text(NAME_LENGTH_MAX, 'Who or what wrote the summary.', 'nightly-compactor'),
      model: Text(NAME_LENGTH_MAX, 'The model that wrote it.', 'claude-sonnet-4-5'),
    }),
  },
  {
    examples: [
      {
        to_seq: 12,
        summary: { blob: { role: 'user', content: 'Ada wants her reservation JG7FMM moved to Friday.' } },
      },
    ],
  },
)
export type CompactSessionBody = Static<typeof CompactSessionBody>
