import Type from '#typebox'
import { responses } from '../contract/responses.js'
import { PageOf } from '../contract/schema.js'
import { answer } from '../http/answer/answer.js'
import { answerList, answerWholeList, type PagePosition, readListCursor } from '../http/answer/page_answer.js'
import type { AppServer } from '../http/app_server.js'
import { Cursors } from '../http/request/cursor.js'
import type { AppParts } from '../http/service_context.js'
import { countedOfUser } from '../lifecycle/count_owned.js'
import { ErasedUser, ListUsersQuery, notYet, ResourceCounts, UserParams } from './user_schema.js'
import { countResources, findUsers } from './users.js'

/** Bytes of a user as JSON, whose identifier may be all escapes. */
const USER_JSON_BYTES_MAX = 2_048

/** Users: list, count what they have, erase. */
export function userRoutes(app: AppServer, { longWork, erasure, registry }: AppParts): void {
  const counted = countedOfUser(registry.tables)
  const names = counted.map(({ name }) => name)
  app.get(
    '/user/ls',
    {
      schema: {
        operationId: 'listUsers',
        summary: "List the project's users",
        description: 'In order of first use. Without `limit`, all of them are streamed as one page.',
        tags: ['Users'],
        querystring: ListUsersQuery,
        response: responses({
          description: 'A page of users.',
          data: PageOf(Type.Ref('User')),
          errors: ['invalid_cursor'],
        }),
      },
    },
    async (request, reply) => {
      const { cursor, limit, time_desc = false } = request.query
      const cursors = new Cursors('users', request.project_id, time_desc)
      const after = readListCursor(cursors, cursor)
      const find = (position: PagePosition) =>
        findUsers(request.database, request.project_id, { time_desc, ...position })
      if (limit === undefined) return answerWholeList(reply, find, after, USER_JSON_BYTES_MAX)
      return answerList(reply, cursors, () => find({ limit, after }), limit)
    },
  )

  app.get(
    '/user/:identifier/resources',
    {
      schema: {
        operationId: 'countUserResources',
        summary: 'Count what a user has',
        tags: ['Users'],
        params: UserParams,
        response: responses({
          description: 'The counts.',
          data: ResourceCounts(names),
          errors: ['user_not_found'],
        }),
      },
    },
    async (request, reply) => {
      const { database, project_id, params } = request
      const found = await countResources(database, counted, project_id, params.identifier)
      const counts = Object.fromEntries([
        ...names.map((name) => [`${name}_count`, found[name]]),
        ...notYet(names).map((name) => [`${name}_count`, 0]),
      ])
      return answer(reply, JSON.stringify({ counts }))
    },
  )

  app.delete(
    '/user/:identifier',
    {
      schema: {
        operationId: 'eraseUser',
        summary: 'Erase a user',
        description:
          "Deletes the user and all the user's data: sessions with their logs, learning spaces, idempotency keys.",
        tags: ['Users'],
        params: UserParams,
        response: responses({
          description: 'What was deleted.',
          data: ErasedUser(erasure.receiptNames()),
          errors: ['user_not_found'],
        }),
      },
    },
    async (request, reply) => {
      const { project_id, params } = request
      const deleted = await longWork.run(project_id, () =>
        erasure.eraseUser(request.database, project_id, params.identifier),
      )
      return answer(reply, JSON.stringify({ deleted }))
    },
  )
}
