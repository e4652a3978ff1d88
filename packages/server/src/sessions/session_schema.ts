import {
  EmptyBody,
  JsonInQuery,
  JsonObject,
  Nullable,
  optional,
  pageQuery,
  Strict,
  Timestamp,
  UserIdentifier,
  Uuid,
} from '@annals/kits/contract/schema.js'
import { type TakeBody, whole } from '@annals/kits/http/request/read_body.js'
import { checkObjectBytes } from '@annals/kits/http/request/validate.js'
import Type, { type Static } from '#typebox'

const EXPIRES_IN_S_MAX = 3_650 * 86_400

const Configs = (description: string) =>
  JsonObject(description, { agent: 'gpt-4o', env: 'airline', task_id: 2 })

const EXPIRES_IN_S = { minimum: 1, maximum: EXPIRES_IN_S_MAX, examples: [86_400] }

const ExpiresIn = Nullable(
  Type.Integer({
    ...EXPIRES_IN_S,
    description:
      'Seconds, up to ten years. When nothing in the session has changed for that long, it is deleted within a minute, with its log and the sessions below it. Until then, it can be read, and any change keeps it. null: never.',
  }),
)

const UpdateSessionBody = Strict({ expires_in_s: ExpiresIn })

export const Session = Type.Object(
  {
    id: Uuid('The session.'),
    project_id: Uuid('The project that the token names.'),
    user_id: Nullable(Uuid("The user's UUID; null if the session has no user.")),
    ...optional({
      expires_in_s: Type.Integer({
        ...EXPIRES_IN_S,
        description: 'The session is deleted when unchanged for this many seconds. Absent: never.',
      }),
      parent_id: Uuid('The session with which this one is deleted. Absent: none.'),
      forked_from: Uuid(
        'The session from which this one was copied, as long as the original exists. Absent: none.',
      ),
      forked_at_seq: Type.Integer({
        minimum: 0,
        description: 'The last seq of that session that was copied.',
        examples: [7],
      }),
      run: Type.Ref('Run'),
    }),
    configs: Configs('Any JSON object of the caller, stored with the session; `{}` if never set.'),
    disable_task_tracking: Type.Boolean(),
    created_at: Timestamp('When the session was created.'),
    updated_at: Timestamp('When anything in the session last changed, including an added entry.'),
  },
  { $id: 'Session' },
)

const CreateSessionBody = Strict(
  optional({
    user: Nullable(UserIdentifier),
    configs: Nullable(Configs('Any JSON object, up to 64 KiB.')),
    disable_task_tracking: Nullable(Type.Boolean({ default: false })),
    expires_in_s: ExpiresIn,
    parent: Nullable(
      Uuid(
        'A session of this project, the parent of the new one. When the parent is deleted, or its user is erased, this session is deleted as well, whatever its user. The parent cannot be changed.',
      ),
    ),
    use_uuid: Nullable(
      Uuid(
        'An id for the session. If the project already has a session with this id, the request must agree with it.',
      ),
    ),
  }),
)
type CreateSessionBody = Static<typeof CreateSessionBody>

const HEX = '[0-9a-fA-F]'
/** The beginning of a UUID. */
const ID_PREFIX = `^(${HEX}{4,8}|${HEX}{8}-(${HEX}{0,4}|${HEX}{4}-(${HEX}{0,4}|${HEX}{4}-(${HEX}{0,4}|${HEX}{4}-${HEX}{0,12}))))$`

export const ListSessionsQuery = Strict({
  ...optional({
    id_prefix: Type.String({
      pattern: ID_PREFIX,
      description:
        'The first characters of an id, at least 4: only sessions whose id begins with them, ordered by id. Cannot be combined with `user`, `filter_by_configs`, `parent` or `order_by`.',
    }),
    user: UserIdentifier,
    filter_by_configs: JsonInQuery(
      'A JSON object, URL-encoded. Only sessions whose `configs` contain it: nested, case- and type-sensitive. `{}` filters nothing.',
      '{"agent":"gpt-4o"}',
    ),
    parent: Type.String({
      pattern: '^(none|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$',
      description:
        "A session's id: only the sessions directly below it. `none`: only sessions without a parent.",
      examples: ['none'],
    }),
    order_by: Type.Union([Type.Literal('created_at'), Type.Literal('last_activity')], {
      default: 'created_at',
      description:
        'What the list is ordered by: when sessions were created, or when anything in them last changed (`updated_at`), to the second. The order by last activity is up to date within a second or two, and a session that changes during a walk may be seen twice or not at all. It is built when a project first requests it; until it is complete, the answer is 503 `being_prepared`.',
    }),
  }),
  ...pageQuery(),
})

const CopySessionBody = Strict(
  optional({
    up_to_seq: Nullable(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'The copy ends with this entry. By default it has the whole log.',
        examples: [7],
      }),
    ),
    user: Nullable(UserIdentifier),
    configs: Nullable(Configs("The copy's configs, up to 64 KiB; by default those of the original.")),
    use_uuid: Nullable(
      Uuid(
        'An id for the copy. If a copy of this session already has this id, the request must agree with it, and gets the same answer.',
      ),
    ),
  }),
)
type CopySessionBody = Static<typeof CopySessionBody>

export const CopiedSession = Type.Object({
  old_session_id: Uuid('The session that was copied.'),
  new_session_id: Uuid('The copy.'),
})

const ConfigsBody = Strict({ configs: Configs('Any JSON object, up to 64 KiB.') })
type ConfigsBody = Static<typeof ConfigsBody>

export const MergedConfigs = Type.Object({ configs: Configs('The merged configs.') })

interface GivenNames {
  user: string | null | undefined
  use_uuid: string | null | undefined
  parent?: string | null | undefined
}

const takeSession: TakeBody<CreateSessionBody, GivenNames> = ({ user, use_uuid, parent, configs }, text) => {
  checkObjectBytes('/configs', configs, text)
  return { user, use_uuid, parent }
}

const takeCopy: TakeBody<CopySessionBody, GivenNames & { up_to_seq: number | undefined }> = (
  { up_to_seq, user, use_uuid, configs },
  text,
) => {
  checkObjectBytes('/configs', configs, text)
  return { user, use_uuid, up_to_seq: up_to_seq ?? undefined }
}

const checkConfigs: TakeBody<ConfigsBody, void> = ({ configs }, text) =>
  checkObjectBytes('/configs', configs, text)

export const SESSION_BODIES = {
  createSession: [CreateSessionBody, takeSession],
  flushSession: whole(EmptyBody),
  copySession: [CopySessionBody, takeCopy],
  updateSession: whole(UpdateSessionBody),
  replaceConfigs: [ConfigsBody, checkConfigs],
  mergeConfigs: [ConfigsBody, checkConfigs],
} as const
