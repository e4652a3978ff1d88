import { createReadStream, existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Changes } from '@annals/kits/changes/changes.js'
import type { Config } from '@annals/kits/configuration/config.js'
import { readPrices } from '@annals/kits/configuration/prices.js'
import { optional, pageQuery, Strict, UserIdentifier } from '@annals/kits/contract/schema.js'
import { AnnalsError, invalidRequest } from '@annals/kits/errors.js'
import { answer, itemsOf } from '@annals/kits/http/answer/answer.js'
import { cursorsOfList, writeListCursor } from '@annals/kits/http/answer/page_answer.js'
import { NO_SNIFFING } from '@annals/kits/http/answer/security_headers.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import { parseFilter } from '@annals/kits/http/request/validate.js'
import { parseId } from '@annals/kits/ids.js'
import { PAGE_LIMIT_MAX } from '@annals/kits/limits.js'
import { packagedFile } from '@annals/kits/version.js'
import serveFiles from '@fastify/static'
import type { FastifyReply } from 'fastify'
import Type from '#typebox'
import { listReads } from '../audit/audit_routes.js'
import { type Authenticator, authenticate } from '../projects/authenticate.js'
import { changeProject } from '../projects/projects.js'
import { SESSIONS } from '../sessions/session_queries.js'
import { prepareCalls } from '../tools/tool_routes.js'
import {
  countOverTime,
  countSessionsOfUsers,
  readFigures,
  readIdentifiers,
  readSessionTree,
} from './console_figures.js'
import { READ_CALL_NUMBERS, READ_CALLS_SEQ, RESULT_TOOLS } from './console_queries.js'
import { type SignInParts, sessionRoutes } from './session_routes.js'

// Built by packages/console into this package.
const FILES = packagedFile('dist/console/')
const DEMO = packagedFile('demo/sessions.json')

// The page shows content from strangers. None of it may become script, leave by a request, or load anything: no
// inline script or style, no other origin, and no string that becomes markup.
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self' data: blob:",
  'media-src data: blob:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  // One name, which makes one address: that of the worker that reads PDFs.
  'trusted-types pdf-worker',
].join('; ')

const NOT_BUILT = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Annals</title>
<p>The console is not built here. Run <code>npm run build</code> in the clone and start Annals again.</p></html>`

export interface ConsoleParts extends SignInParts, Authenticator {
  config: SignInParts['config'] & Authenticator['config'] & Pick<Config, 'prices'>
  changes: Pick<Changes, 'prepare'>
}

export async function consoleRoutes(app: AppServer, parts: ConsoleParts, files = FILES): Promise<void> {
  const built = existsSync(`${files}index.html`)
  // Read each time: the page names its files, and a build while the service runs makes others.
  const sendPage = async (reply: FastifyReply) => {
    const page = await readFile(`${files}index.html`, 'utf8').catch(() => undefined)
    return protect(reply)
      .code(page === undefined ? 404 : 200)
      .header('content-type', 'text/html; charset=utf-8')
      .header('cache-control', 'no-cache')
      .send(page ?? NOT_BUILT)
  }

  // A person who opens the service's address means the console; a program gets the answer of any unknown path.
  app.get('/', { schema: { hide: true } }, async ({ headers }, reply) => {
    if (headers.accept?.includes('text/html')) return reply.redirect('/console')
    throw new AnnalsError('route_not_found', 'There is no GET /. See /docs for all operations.')
  })

  app.get('/console', { schema: { hide: true } }, async (_request, reply) => sendPage(reply))
  // Every view has its own address, and all of them serve the same page.
  app.get('/console/*', { schema: { hide: true } }, async (_request, reply) => sendPage(reply))

  // The demo that the empty console offers; read when somebody loads it.
  app.get('/console/demo.json', { schema: { hide: true } }, async (_request, reply) =>
    reply
      .headers({ 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-cache' })
      .send(createReadStream(DEMO)),
  )

  if (built) {
    await app.register(serveFiles, {
      root: `${files}assets`,
      prefix: '/console/assets/',
      decorateReply: false,
      preCompressed: true,
      // Their names contain a digest of their content.
      immutable: true,
      maxAge: '365d',
      setHeaders: (reply) =>
        void reply.headers({
          ...NO_SNIFFING,
          'cross-origin-resource-policy': 'same-origin',
          // Of a worker, which has a policy of its own: the one that reads strangers' PDFs loads and sends nothing.
          'content-security-policy': "default-src 'none'",
        }),
    })
  }
  sessionRoutes(app, parts)
  const prices = JSON.stringify(await readPrices(parts.config.prices))
  await app.register(
    async (authenticated: AppServer) => {
      authenticate(authenticated, parts)
      consoleDataRoutes(authenticated, parts)
      // Prices for the costs; null where the operator has no price list.
      authenticated.get('/prices', { schema: { hide: true } }, async (_request, reply) =>
        answer(reply, prices ?? 'null'),
      )
    },
    { prefix: '/console/data' },
  )
}

function protect(reply: FastifyReply): FastifyReply {
  return reply
    .header('content-security-policy', POLICY)
    .header('x-content-type-options', 'nosniff')
    .header('x-frame-options', 'DENY')
    .header('referrer-policy', 'no-referrer')
    .header('cross-origin-opener-policy', 'same-origin')
    .header('permissions-policy', 'camera=(), microphone=(), geolocation=()')
}

const IdsQuery = Strict({ ids: Type.String({ minLength: 1 }) })

const Seq = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const SEQS_MAX = 1_000
const CallsQuery = Strict({ id: Type.String({ format: 'uuid' }), after_seq: Seq, to_seq: Seq })
const ResultsQuery = Strict({ of: Type.String({ minLength: 1 }) })

const TreeQuery = Strict({ id: Type.String({ format: 'uuid' }) })

const UsersQuery = Strict({ ids: Type.String({ minLength: 1 }), by: Type.Optional(Type.String()) })

const Time = Type.String({ format: 'date-time' })
const RangeQuery = {
  user: Type.Optional(UserIdentifier),
  filter_by_configs: Type.Optional(Type.String()),
}
const OverTimeQuery = Strict({
  ...RangeQuery,
  from: Type.Optional(Time),
  to: Type.Optional(Time),
  by: Type.Optional(Type.String()),
})
const StartQuery = Strict({ ...RangeQuery, time_desc: Type.Boolean(), at: Time })

const ReadsQuery = Strict({ ...optional({ session_id: Type.String({ format: 'uuid' }) }), ...pageQuery() })

const NIL_ID = '00000000-0000-0000-0000-000000000000'
const FIGURES_BYTES = 2 * 1024 * 1024
const FIGURES_MAX = 50
const USERS_MAX = 25
const NAMES_MAX = 4

/** Figures of calls, which are indexed first. */
function callRoutes(app: AppServer, changes: ConsoleParts['changes']): void {
  app.get('/figures', { schema: { hide: true, querystring: IdsQuery } }, async (request, reply) => {
    const ids = parseIds(request.query.ids, FIGURES_MAX)
    await prepareCalls(changes, request)
    request.shows?.(ids, 'listed')
    return answer(reply, JSON.stringify({ items: await readFigures(request, ids, request.mask !== null) }))
  })

  app.get('/call_numbers', { schema: { hide: true, querystring: CallsQuery } }, async (request, reply) => {
    const { database, project_id } = request
    const { id, after_seq, to_seq } = request.query
    await prepareCalls(changes, request)
    const [read, rows] = await Promise.all([
      database.query(READ_CALLS_SEQ, [project_id, id]),
      database.query(READ_CALL_NUMBERS, [project_id, id, after_seq, Math.min(to_seq, after_seq + SEQS_MAX)]),
    ])
    const is_whole = Number(read[0]?.seq ?? 0) >= to_seq
    return answer(reply, `{"items":[${rows.map(({ json }) => json).join(',')}],"is_whole":${is_whole}}`)
  })

  app.get('/result_tools', { schema: { hide: true, querystring: ResultsQuery } }, async (request, reply) => {
    const places = [request.project_id, ...parsePlaces(request.query.of)]
    await prepareCalls(changes, request)
    // First, or else a call might be read in between.
    const [read] = await request.database.query(RESULT_TOOLS.isWhole, places)
    const rows = await request.database.query(RESULT_TOOLS.names, places)
    const items = rows.map(({ json }) => json).join(',')
    return answer(reply, `{"items":[${items}],"is_whole":${read!.is_whole === 't'}}`)
  })
}

/**
 * Data that the console shows in addition to the API's, for one page at a time. Not part of the API: it changes with
 * the console, its only caller.
 */
function consoleDataRoutes(app: AppServer, { database, changes }: ConsoleParts): void {
  // Search costs disk space, so the console asks before it switches it on.
  app.post('/search', { schema: { hide: true } }, async (request, reply) => {
    const { project_id, grant } = request
    await changeProject(database.of('operator'), `console, key ${grant!.key_id}`, project_id, {
      search: true,
    })
    return answer(reply, '{}')
  })

  callRoutes(app, changes)

  app.get('/tree', { schema: { hide: true, querystring: TreeQuery } }, async (request, reply) => {
    const { shown, json } = await readSessionTree(request, request.query.id.toLowerCase())
    request.shows?.(shown, 'listed')
    return answer(reply, json)
  })

  // Reads of the project's sessions, the newest first, for its administrators.
  app.get(
    '/reads',
    { config: { scope: 'admin' }, schema: { hide: true, querystring: ReadsQuery } },
    async (request, reply) => {
      const { database, project_id, query } = request
      return answer(reply, await listReads(database, 'desc', { ...query, project_id }))
    },
  )

  // Where the list of sessions goes on from a time, in its order.
  app.get('/start', { schema: { hide: true, querystring: StartQuery } }, async (request, reply) => {
    const { at, filter_by_configs, ...query } = request.query
    const document = parseFilter('filter_by_configs', filter_by_configs)
    const cursors = cursorsOfList(request.project_id, SESSIONS, query, document)
    return answer(reply, JSON.stringify({ cursor: writeListCursor(cursors, { created_at: at, id: NIL_ID }) }))
  })

  app.get('/identifiers', { schema: { hide: true, querystring: IdsQuery } }, async (request, reply) =>
    answer(reply, itemsOf(await readIdentifiers(request, parseIds(request.query.ids, PAGE_LIMIT_MAX)))),
  )

  app.get('/users', { schema: { hide: true, querystring: UsersQuery } }, async (request, reply) => {
    const { database, project_id, query, memory } = request
    const user_ids = parseIds(query.ids, USERS_MAX)
    const path = parseNames(query.by)
    await memory.hold(FIGURES_BYTES)
    return answer(reply, itemsOf(await countSessionsOfUsers({ database, project_id }, user_ids, path)))
  })

  app.get('/over_time', { schema: { hide: true, querystring: OverTimeQuery } }, async (request, reply) => {
    const { filter_by_configs, by, ...range } = request.query
    const configs = parseFilter('filter_by_configs', filter_by_configs)
    const counted = { ...range, project_id: request.project_id, configs, by: parseNames(by) }
    return answer(reply, await countOverTime(request.database, counted))
  })
}

function parseIds(text: string, most: number): string[] {
  const ids = text.split(',').map(parseId)
  if (ids.length > most || ids.includes(undefined)) {
    throw invalidRequest(`Query parameter ids must be 1 to ${most} UUIDs, separated by commas.`)
  }
  return ids as string[]
}

/** Entries: a session's id, a colon and a seq each. @throws AnnalsError invalid_request */
function parsePlaces(text: string): [ids: string[], seqs: number[]] {
  const places = text.split(',').map((place) => place.split(':'))
  const ids = places.map(([id]) => parseId(id!))
  const seqs = places.map(([, seq = '']) => (/^[1-9]\d{0,14}$/.test(seq) ? Number(seq) : undefined))
  if (places.length > PAGE_LIMIT_MAX || ids.includes(undefined) || seqs.includes(undefined))
    throw invalidRequest(`Query parameter of must be 1 to ${PAGE_LIMIT_MAX} times a UUID, a colon and a seq.`)
  return [ids as string[], seqs as number[]]
}

/** The path of a member of configs: a JSON array of names. @throws AnnalsError invalid_request */
function parseNames(text: string | undefined): string[] | undefined {
  if (text === undefined) return undefined
  try {
    const names: unknown = JSON.parse(text)
    const is_path =
      Array.isArray(names) && names.length <= NAMES_MAX && names.every((name) => typeof name === 'string')
    if (is_path && !/\0|\p{Surrogate}/u.test(names.join())) return names as string[]
  } catch {}
  throw invalidRequest(`Query parameter by must be a JSON array of up to ${NAMES_MAX} names.`)
}
