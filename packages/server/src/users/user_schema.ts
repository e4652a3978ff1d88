import Type from '#typebox'
import { pageQuery, Strict, Timestamp, UserIdentifier, Uuid } from '../contract/schema.js'

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

export const ListUsersQuery = Strict(pageQuery())

export const UserParams = Strict({ identifier: UserIdentifier })

const Count = Type.Integer({ minimum: 0 })

export const ResourceCounts = Type.Object({
  counts: Type.Object({
    sessions_count: Count,
    learning_spaces_count: Count,
    disks_count: Type.Literal(0),
    skills_count: Type.Literal(0),
  }),
})

export const ErasedUser = Type.Object({
  deleted: Type.Object({ sessions: Count, entries: Count, learning_spaces: Count }),
})
