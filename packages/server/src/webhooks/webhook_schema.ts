import { Count, Nullable, Strict, Timestamp, Uuid } from '@annals/kits/contract/schema.js'
import { whole } from '@annals/kits/http/request/read_body.js'
import { EVENT_TYPE_LENGTH_MAX } from '@annals/kits/limits.js'
import Type from '#typebox'

const EVENT_PREFIX = 'event.'

const Url = Type.String({
  maxLength: 2_048,
  pattern: '^https?://',
  description: 'The URL that receives deliveries: http or https, without a user name or a fragment.',
  examples: ['https://agents.example.com/hooks/annals'],
})

const Events = Type.Array(
  Type.String({
    pattern: '^(message|event|event\\.[\\s\\S]+|request\\.opened|input\\.added)$',
    maxLength: EVENT_PREFIX.length + EVENT_TYPE_LENGTH_MAX,
  }),
  {
    minItems: 1,
    maxItems: 50,
    description:
      '`message`: every message. `event`: every event. `event.<type>`: events of that type. `request.opened`: requests of runners. `input.added`: input that waits for a runner.',
    examples: [['message', 'event.tool_call', 'request.opened']],
  },
)

const fields = {
  id: Uuid('The webhook.'),
  url: Url,
  events: Events,
  created_at: Timestamp('When it was created. Entries stored before are not sent.'),
}

export const Webhook = Type.Object(
  {
    ...fields,
    waiting_sessions: Count(
      'Sessions with entries, and inputs, that may still have to be sent; counted up to 1,000.',
    ),
    last_error: Nullable(Type.String({ description: 'Why the last failure occurred; null: none has.' })),
    last_error_at: Nullable(Timestamp('When that was.')),
    given_up: Count('Entries and inputs that could not be delivered within a day.'),
  },
  { $id: 'Webhook' },
)

export const NewWebhook = Type.Object({
  ...fields,
  secret: Type.String({ description: 'Verifies deliveries. It is shown only this once.' }),
})

export const CreateWebhookBody = Strict({
  url: Url,
  events: Events,
  secret: Type.Optional(
    Type.String({
      pattern: '^whsec_[A-Za-z0-9+/]{32,88}={0,2}$',
      description: '`whsec_` and 24 to 64 bytes in base64; by default the service makes one.',
      examples: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr'],
    }),
  ),
})

export const WEBHOOK_BODIES = { createWebhook: whole(CreateWebhookBody) } as const
