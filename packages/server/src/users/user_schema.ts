import Type, { type TSchema } from '#typebox'
import { pageQuery, Strict, Timestamp, UserIdentifier, Uuid } from '../contract/schema.js'
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
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PAGE_LIMIT_MAX,
      description: 'Most users per page. Absent: all of them, streamed.',
    }),
  ),
})

const Count = Type.Integer({ minimum: 0 })

/** What the contract has besides and this version has none of. */
const NOT_YET = ['disks', 'skills']

export function ResourceCounts(names: readonly string[]) {
  const counts = [
    ...names.map((name) => [name, Count]),
    ...notYet(names).map((name) => [name, Type.Literal(0)]),
  ]
  return Type.Object({
    counts: Type.Object(
      Object.fromEntries(counts.map(([name, count]) => [`${name as string}_count`, count as TSchema])),
    ),
  })
}

/** The names of counts that are always 0. */
export function notYet(names: readonly string[]): string[] {
  return NOT_YET.filter((name) => !names.includes(name))
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
