import { Between, Name, Nullable, OneOf, Strict, Timestamp, Uuid } from '@annals/kits/contract/schema.js'
import { whole } from '@annals/kits/http/request/read_body.js'
import Type from '#typebox'
import { ROLES, SCOPES } from '../projects/tokens/token.js'

const DAYS_MAX = 366

const Email = Type.String({
  pattern: '^[^\\s@]+@[^\\s@]+$',
  minLength: 3,
  maxLength: 254,
  description: 'The address; letter case does not matter.',
  examples: ['ada@example.com'],
})

const Role = OneOf(
  ROLES,
  '`viewer` reads; `member` also writes, answers requests and approves statements; `admin` also erases, and manages keys and members.',
)

export const Member = Type.Object(
  {
    id: Uuid('The member.'),
    project_id: Uuid('The project.'),
    email: Email,
    role: Nullable(Role),
    is_from_group: Type.Boolean({
      description: "Whether the role comes only from the issuer's groups, and ends with them.",
    }),
    has_signed_in: Type.Boolean({
      description: 'false: the first person who signs in with this address becomes the member.',
    }),
    created_at: Timestamp('When the member was added.'),
  },
  { $id: 'Member' },
)

const InviteMemberBody = Strict({ email: Email, role: Role })
const ChangeMemberBody = Strict({ role: Role })

const CreatePersonalTokenBody = Strict({
  name: Name,
  expires_in_days: Between(1, DAYS_MAX, 'Days until it expires.'),
  scopes: Type.Optional(
    Type.Array(OneOf(SCOPES, 'What the token allows, of what its owner may do.'), {
      minItems: 1,
      uniqueItems: true,
      description: "By default, everything that its owner's current role allows.",
      examples: [['read']],
    }),
  ),
})

/** By operation: how its body is checked, and what is taken from it. */
export const PEOPLE_BODIES = {
  inviteMember: whole(InviteMemberBody),
  changeMember: whole(ChangeMemberBody),
  createPersonalToken: whole(CreatePersonalTokenBody),
} as const
