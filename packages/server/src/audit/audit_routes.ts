import {
  cursorQuery,
  JsonObject,
  optional,
  PageOf,
  Strict,
  Timestamp,
  Uuid,
} from '@annals/kits/contract/schema.js'
import { invalidRequest } from '@annals/kits/errors.js'
import { pageText } from '@annals/kits/http/answer/answer.js'
import { Cursors } from '@annals/kits/http/answer/page_answer.js'
import { operationsOf } from '@annals/kits/http/operation.js'
import { PAGE_LIMIT_DEFAULT } from '@annals/kits/limits.js'
import { readPosition, writePosition } from '@annals/kits/lists/log_position.js'
import type { Kits, ModuleRoutes } from '@annals/kits/module.js'
import type { Queryable } from '@annals/kits/postgres/database.js'
import Type from '#typebox'
import { listActs } from '../projects/audit.js'
import { OPERATORS } from '../projects/project_schema.js'
import { LIST_READS } from './read_queries.js'

const AuditEntry = Type.Object(
  {
    seq: Type.Integer({
      minimum: 1,
      description: '1, 2, 3, … without gaps, in commit order; of reads, in each project.',
    }),
    created_at: Timestamp('When it was done; of reads, the minute.'),
    actor: Type.String({
      description:
        'Who did it: the command line with its user, the address of an API caller, or a person or key with the address.',
    }),
    action: Type.String({ examples: ['project.change'] }),
    project_id: Uuid('The project, which may have been erased since.'),
    details: JsonObject('The request, without secrets.', { max_sessions: 1000 }),
  },
  { $id: 'AuditEntry' },
)

const AuditQuery = Strict({
  ...cursorQuery(),
  ...optional({
    reads_of: Uuid("A project's id: lists who read its sessions, instead of the acts of operators."),
    session_id: Uuid('Only reads of this session.'),
  }),
})

interface ReadsQuery {
  project_id: string
  session_id?: string | undefined
  limit?: number | undefined
  cursor?: string | undefined
}

/** A page of a project's reads as JSON, the oldest first or the newest. @throws AnnalsError invalid_cursor */
export async function listReads(
  database: Queryable,
  order: 'asc' | 'desc',
  { project_id, session_id, limit = PAGE_LIMIT_DEFAULT, cursor }: ReadsQuery,
): Promise<string> {
  const cursors = new Cursors('reads', project_id, order, session_id)
  const after = cursor === undefined ? undefined : cursors.read(cursor)
  const from = after ?? (order === 'asc' ? 0 : Number.MAX_SAFE_INTEGER)
  const rows = await database.query(LIST_READS[`${order}_${session_id === undefined ? 'all' : 'one'}`], [
    project_id,
    from,
    limit + 1,
    ...(session_id === undefined ? [] : [session_id]),
  ])
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)?.seq ?? after
  const next = last === undefined ? '' : cursors.write(last)
  const items = shown.map(({ json }) => json!)
  return pageText(items, next, rows.length > limit)
}

const auditRoute = ({ database }: Pick<Kits, 'database'>) =>
  operationsOf(
    'Administration',
    OPERATORS,
  )({
    call: 'GET /audit',
    id: 'listAudit',
    summary: 'List what operators did, or who read sessions',
    description:
      'Every change of projects and tokens, by this API and by the command line, oldest first. Acts are never deleted. With `reads_of`, who read which session of a project, where its `audit_reads` says so: one act `session.read` for each session, principal and minute, a few seconds after it. The last page has a `next_cursor`, too, from which later acts follow.',
    querystring: AuditQuery,
    returns: 'A page of acts.',
    data: PageOf(Type.Ref('AuditEntry')),
    errors: ['log_diverged'],
    json: async (request) => {
      const { limit = PAGE_LIMIT_DEFAULT, cursor, reads_of, session_id } = request.query
      if (reads_of !== undefined) {
        const of = { project_id: reads_of.toLowerCase(), session_id: session_id?.toLowerCase() }
        return listReads(database.of('operator'), 'asc', { ...of, limit, cursor })
      }
      if (session_id !== undefined) throw invalidRequest('Query parameter session_id needs reads_of.')
      const cursors = new Cursors('audit')
      const seen = readPosition(cursor === undefined ? '0' : cursors.read(cursor))
      const acts = await listActs(database.of('operator'), seen, limit + 1)
      const shown = acts.slice(0, limit)
      const next = cursors.write(writePosition(shown.at(-1) ?? seen))
      const items = shown.map(({ json }) => json)
      return pageText(items, next, acts.length > limit)
    },
  })

export const auditRoutes = (kits: Pick<Kits, 'database'>): ModuleRoutes => ({
  admin: auditRoute(kits),
  schemas: [AuditEntry],
})
