import Type from '#typebox'
import { Between, pageQuery, Strict, Timestamp, UserIdentifier, Uuid } from '../contract/schema.js'
import { PAGE_LIMIT_MAX } from '../limits.js'

export const User = Type.Object(
  {
    id: Uuid('The user; sessions and learning spaces name it as `user_id`.'),
    project_id: Uuid('The project that the token names.'),
    identifier: UserIdentifier,
    created_at: Timestamp('When the identifier was first used.'),
    updated_at: Timestamp('When the user last changed.'),
  },
  { $id: 'User' },
)

export const ListUsersQuery = Strict({
  ...pageQuery(),
  limit: Type.Optional(Between(1, PAGE_LIMIT_MAX, 'Most users per page. Absent: all of them, streamed.')),
})

const Count = Type.Integer({ minimum: 0 })

/** How much a user has of what has these names. Existing clients know of disks as well, of which there are none. */
export function ResourceCounts(names: readonly string[]) {
  const counts = Object.fromEntries(names.map((name) => [`${name}_count`, Count]))
  return Type.Object({ counts: Type.Object({ ...counts, disks_count: Type.Literal(0) }) })
}

/** How much went of what has these names. */
export function ErasedUser(names: readonly string[]) {
  return Type.Object({
    deleted: Type.Object(Object.fromEntries(names.map((name) => [name, Count]))),
    pending: Type.Optional(
      Type.Object(
        { objects: Count },
        {
          description:
            'What the store of attachments has not confirmed yet. It is deleted as soon as it can be.',
        },
      ),
    ),
  })
}
