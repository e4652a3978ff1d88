import Type from '#typebox'
import { PageOf } from '../contract/schema.js'
import { invalidRequest } from '../errors.js'
import { answerEntries } from '../http/answer/blob_bytes.js'
import { entriesPage } from '../http/answer/page_answer.js'
import { allOf, operationsOf } from '../http/operation.js'
import { Cursors } from '../http/request/cursor.js'
import { PAGE_LIMIT_DEFAULT } from '../limits.js'
import { LatestQuery } from './entry_schema.js'
import { LogReader } from './read/read_log.js'

const operation = operationsOf('Timeline')

export const latestRoutes = allOf(
  operation({
    call: 'GET /session/:session_id/latest',
    id: 'readLatest',
    summary: 'Read the newest entry of each key',
    description:
      'In the order of keys, by their bytes in UTF-8. Entries that were retracted are left out, so the entry before is the newest again. It costs the same however long the log is.',
    querystring: LatestQuery,
    returns: 'A page of entries.',
    data: PageOf(Type.Ref('TimelineItem')),
    handle: async (request, reply) => {
      const { key, key_prefix = '', limit = PAGE_LIMIT_DEFAULT, cursor } = request.query
      if (key !== undefined && request.query.key_prefix !== undefined)
        throw invalidRequest('Query parameter key cannot be combined with key_prefix.')
      const session = { project_id: request.project_id, session_id: request.params.session_id }
      const cursors = new Cursors('latest', session.project_id, session.session_id, key, key_prefix)
      const after_key = cursor === undefined ? '' : cursors.read(cursor)
      const log = new LogReader(request.database, session, undefined, () => !reply.raw.destroyed)
      const entries = log.readLatest({ key, key_prefix, after_key, limit: limit + 1 })
      return answerEntries(
        reply,
        entriesPage(entries, limit, (last) => cursors.write(last.key!)),
      )
    },
  }),
)
