import {
  Between,
  PageOf,
  pageQuery,
  Strict,
  Timestamp,
  UserIdentifier,
  Uuid,
} from '@annals/kits/contract/schema.js'
import {
  answerPage,
  answerWholeList,
  Cursors,
  type PagePosition,
  readListCursor,
} from '@annals/kits/http/answer/page_answer.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import { PAGE_LIMIT_MAX } from '@annals/kits/limits.js'
import type { Kits, ModuleRoutes } from '@annals/kits/module.js'
import Type from '#typebox'
import { countedOfUser, countResources, findUsers } from './users.js'

const User = Type.Object(
  {
    id: Uuid('The user; sessions and learning spaces name it as `user_id`.'),
    project_id: Uuid('The project that the token names.'),
    identifier: UserIdentifier,
    created_at: Timestamp('When the identifier was first used.'),
    updated_at: Timestamp('When the user last changed.'),
  },
  { $id: 'User' },
)

const ListUsersQuery = Strict({
  ...pageQuery(),
  limit: Type.Optional(Between(1, PAGE_LIMIT_MAX, 'Most users per page. Absent: all of them, streamed.')),
})

const Count = Type.Integer({ minimum: 0 })

/** How many of each resource a user has. Existing clients know of disks as well: there are none. */
function ResourceCounts(names: readonly string[]) {
  const counts = Object.fromEntries(names.map((name) => [`${name}_count`, Count]))
  return Type.Object({ counts: Type.Object({ ...counts, disks_count: Type.Literal(0) }) })
}

function ErasedUser(names: readonly string[]) {
  return Type.Object({
    deleted: Type.Object(Object.fromEntries(names.map((name) => [name, Count]))),
    pending: Type.Optional(
      Type.Object(
        { objects: Count },
        {
          description:
            'Bytes whose deletion the store of attachments has not confirmed yet. They are deleted as soon as possible.',
        },
      ),
    ),
  })
}

/** Bytes of a user as JSON, whose identifier may be all escapes. */
const USER_JSON_BYTES_MAX = 2_048

const operation = operationsOf('Users')

type UserParts = Pick<Kits, 'longWork' | 'erasure' | 'registry'>

export function userRoutes({ longWork, erasure, registry }: UserParts): ModuleRoutes {
  const counted = countedOfUser(registry.tables)
  const names = counted.map(({ name }) => name)
  const project = allOf(
    operation({
      call: 'GET /user/ls',
      id: 'listUsers',
      summary: "List the project's users",
      description: 'In order of first use. Without `limit`, all of them are streamed as one page.',
      querystring: ListUsersQuery,
      returns: 'A page of users.',
      data: PageOf(Type.Ref('User')),
      handle: async (request, reply) => {
        const { cursor, limit, time_desc = false } = request.query
        const cursors = new Cursors('users', request.project_id, time_desc)
        const find = (position: PagePosition) => findUsers(request, { time_desc, ...position })
        if (limit !== undefined) return answerPage(reply, cursors, request.query, find)
        return answerWholeList(reply, find, readListCursor(cursors, cursor), USER_JSON_BYTES_MAX)
      },
    }),

    operation({
      call: 'GET /user/:identifier/resources',
      id: 'countUserResources',
      summary: "Count a user's resources",
      returns: 'The counts.',
      data: ResourceCounts(names),
      errors: ['user_not_found'],
      json: async ({ database, project_id, params }) => {
        const found = await countResources(database, counted, project_id, params.identifier)
        const counts = Object.fromEntries(names.map((name) => [`${name}_count`, found[name]]))
        return JSON.stringify({ counts: { ...counts, disks_count: 0 } })
      },
    }),

    operation({
      call: 'DELETE /user/:identifier',
      id: 'eraseUser',
      scope: 'erase',
      summary: 'Erase a user',
      description:
        "Deletes the user and all the user's data: sessions with their logs, learning spaces, idempotency keys.",
      returns: 'What was deleted.',
      data: ErasedUser(erasure.receiptNames()),
      errors: ['user_not_found'],
      json: async (request) => {
        const { project_id, params } = request
        const deleted = await longWork.run(project_id, () => erasure.eraseUser(request, params.identifier))
        const objects = await erasure.settle(request)
        return JSON.stringify({ deleted, ...(objects > 0 && { pending: { objects } }) })
      },
    }),
  )
  return { project, schemas: [User] }
}
