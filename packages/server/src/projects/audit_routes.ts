import Type from '#typebox'
import { JsonObject, PageOf, pageQuery, Strict, Timestamp, Uuid } from '../contract/schema.js'
import { operationsOf } from '../http/operation.js'
import { Cursors } from '../http/request/cursor.js'
import { PAGE_LIMIT_DEFAULT } from '../limits.js'
import { readPosition, writePosition } from '../log/read/log_position.js'
import { listActs } from './audit.js'
import { OPERATORS } from './project_schema.js'

export const AuditEntry = Type.Object(
  {
    seq: Type.Integer({ minimum: 1, description: '1, 2, 3, … without gaps, in commit order.' }),
    created_at: Timestamp('When it was done.'),
    actor: Type.String({
      description: 'Who did it: the command line with its user, or the address of a caller of the API.',
    }),
    action: Type.String({ examples: ['project.change'] }),
    project_id: Uuid('The project, which may have been erased since.'),
    details: JsonObject('What was asked for, without secrets.', { max_sessions: 1000 }),
  },
  { $id: 'AuditEntry' },
)

const { limit, cursor } = pageQuery()

/** What operators did. */
export const auditRoutes = operationsOf(
  'Administration',
  OPERATORS,
)({
  call: 'GET /audit',
  id: 'listAudit',
  summary: 'List what operators did',
  description:
    'Every change of projects and tokens, by this API and by the command line, oldest first. Nothing is ever deleted from it. The last page has a `next_cursor`, too, from which later acts follow.',
  querystring: Strict({ limit, cursor }),
  returns: 'A page of acts.',
  data: PageOf(Type.Ref('AuditEntry')),
  errors: ['invalid_cursor', 'log_diverged'],
  json: async (request, _reply, { database }) => {
    const { limit = PAGE_LIMIT_DEFAULT, cursor } = request.query
    const cursors = new Cursors('audit')
    const seen = readPosition(cursor === undefined ? '0' : cursors.read(cursor))
    const acts = await listActs(database.of('operator'), seen, limit + 1)
    const shown = acts.slice(0, limit)
    const next = cursors.write(writePosition(shown.at(-1) ?? seen))
    const items = shown.map(({ json }) => json).join(',')
    return `{"items":[${items}],"has_more":${acts.length > limit},"next_cursor":"${next}"}`
  },
})
