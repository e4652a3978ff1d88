import { Nullable, OneOf, optional, Strict, Text } from '@annals/kits/contract/schema.js'
import { whole } from '@annals/kits/http/request/read_body.js'
import {
  ACTIONS,
  DETECTOR_NAMES,
  GROUPS,
  KINDS_OF_ENTRIES,
  PATTERN_LENGTH_MAX,
  RULES_MAX,
} from '@annals/redaction'
import Type from '#typebox'

const texts = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { minItems: 1, maxItems: 50, description })

const Where = Strict(
  optional({
    kinds: Type.Array(OneOf(KINDS_OF_ENTRIES, 'A kind of entry.'), { minItems: 1, uniqueItems: true }),
    types: texts('Types of events.'),
    roles: texts('Roles of messages, as their blobs have them.'),
    pointers: texts("JSON pointers into an event's data or a message's blob: what is there, and below."),
  }),
  { description: 'Which entries, and which parts of them. Absent: all that is sent.' },
)

const What = Type.Union(
  [
    Strict({
      detector: OneOf(
        [...GROUPS, ...DETECTOR_NAMES],
        '`secrets`: keys, tokens and private keys. `personal`: e-mail addresses, phone numbers, cards, IBANs. Or one of them.',
      ),
    }),
    Strict({
      pattern: Text(PATTERN_LENGTH_MAX, 'A regular expression in the syntax of RE2.', 'K-[0-9]{6}'),
      as: Type.Optional(
        Type.String({
          pattern: '^[A-Z][A-Z_]{0,39}$',
          description: 'The name in its masks; by default `REDACTED`.',
          examples: ['ORDER'],
        }),
      ),
    }),
  ],
  { description: 'What is looked for.' },
)

const Rule = Strict({
  where: Type.Optional(Where),
  what: What,
  do: OneOf(
    ACTIONS,
    '`mask`: `<EMAIL_1>`, the same for the same value in a session. `hash`: `<EMAIL:…>`, the same in the project. `drop`: nothing. `refuse`: the request is refused; not for reading.',
  ),
  when: OneOf(
    ['write', 'read'] as const,
    '`write`: before anything is stored. `read`: when masked keys read; without `where`.',
  ),
})

const Rules = Type.Array(Rule, {
  maxItems: RULES_MAX,
  description: 'In order: where two find the same, the first decides.',
  examples: [[{ what: { detector: 'secrets' }, do: 'mask', when: 'write' }]],
})

export const SetRedactionBody = Strict({ rules: Type.Optional(Rules) })

export const Redaction = Type.Object(
  {
    rules: Nullable(
      Type.Array(Type.Object({}, { additionalProperties: true }), {
        description: 'The rules, in order; null: redaction is off.',
      }),
    ),
  },
  { $id: 'Redaction' },
)

export const REDACTION_BODIES = { setRedaction: whole(SetRedactionBody) } as const
