import Type from '#typebox'
import { Strict, UserIdentifier } from '../contract/schema.js'
import { AnnalsError } from '../errors.js'
import { answer } from '../http/answer/answer.js'
import type { AppServer } from '../http/app_server.js'
import { parseFilter } from '../http/request/json_parameters.js'
import { parseId } from '../ids.js'
import { PAGE_LIMIT_MAX } from '../limits.js'
import { countOverTime, readHeads, readIdentifiers } from './console_figures.js'

const IdsQuery = Strict({ ids: Type.String({ minLength: 1 }) })

const OverTimeQuery = Strict({
  user: Type.Optional(UserIdentifier),
  filter_by_configs: Type.Optional(Type.String()),
})

// A read-only key may see all of it.
const READ = { config: { scope: 'read' } } as const

/**
 * Data that the console shows in addition to the API's, for one page at a time. Not part of the API: it changes with
 * the console, its only caller.
 */
export function consoleDataRoutes(app: AppServer): void {
  app.get('/heads', { ...READ, schema: { hide: true, querystring: IdsQuery } }, async (request, reply) =>
    answer(
      reply,
      itemsOf(await readHeads(request.database, request.project_id, parseIds(request.query.ids))),
    ),
  )

  app.get(
    '/identifiers',
    { ...READ, schema: { hide: true, querystring: IdsQuery } },
    async (request, reply) =>
      answer(
        reply,
        itemsOf(await readIdentifiers(request.database, request.project_id, parseIds(request.query.ids))),
      ),
  )

  app.get(
    '/over_time',
    { ...READ, schema: { hide: true, querystring: OverTimeQuery } },
    async (request, reply) => {
      const { user, filter_by_configs } = request.query
      const configs = parseFilter('filter_by_configs', filter_by_configs)
      return answer(
        reply,
        await countOverTime(request.database, { project_id: request.project_id, user, configs }),
      )
    },
  )
}

/** @throws AnnalsError invalid_request */
function parseIds(text: string): string[] {
  const ids = text.split(',').map(parseId)
  if (ids.length > PAGE_LIMIT_MAX || ids.includes(undefined)) {
    throw new AnnalsError(
      'invalid_request',
      `Query parameter ids must be 1 to ${PAGE_LIMIT_MAX} UUIDs with commas between them.`,
    )
  }
  return ids as string[]
}

function itemsOf(items: string[]): string {
  return `{"items":[${items.join(',')}]}`
}
