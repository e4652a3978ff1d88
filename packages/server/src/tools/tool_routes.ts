import { setTimeout as sleep } from 'node:timers/promises'
import { AnnalsError } from '@annals/kits/errors.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import { parseFilter, timeInUtc } from '@annals/kits/http/request/validate.js'
import type { Kits, ModuleRoutes } from '@annals/kits/module.js'
import type { Database, Row, Tenant } from '@annals/kits/postgres/database.js'
import { uncut } from '@annals/recall'
import Type from '#typebox'
import { COUNT_SESSIONS } from '../search/search_queries.js'
import { findOwner } from '../users/users.js'
import {
  CALLS_CONSUMER,
  type CountedCalls,
  countTools,
  FIND_UNREAD_SESSION,
  groupFailures,
  READ_CALLS_STATE,
} from './tool_queries.js'
import { Tool, ToolFailures, ToolPage, ToolQuery, ToolsQuery } from './tool_schema.js'

/** How long a request waits until entries of a moment ago are counted. */
const WAIT_MS_MAX = 2_000
const WAIT_POLL_MS = 50

type Asking = Pick<Kits, 'changes'>

const operation = operationsOf('Tools')

const routes = ({ changes }: Asking) =>
  allOf(
    operation({
      call: 'GET /tools',
      id: 'listTools',
      summary: 'Count tool calls',
      description:
        'Counts the calls in messages and events of all sessions, by tool. A call counts once, however often it is recorded. Retracted calls are left out, and copied calls count in the original session. The first request starts reading the project in the background; from then on, calls are counted as they are stored.',
      querystring: ToolsQuery,
      returns: 'The tools, those that failed most first.',
      data: Type.Ref('ToolPage'),
      json: async (request) => {
        const { limit = 100 } = request.query
        const state = await catchUp(changes, request)
        const filter = await filterOf(request, request.query)
        if (filter === 'nobody') return pageJson([], limit, { ...state, counted_from: null })
        const { statement, parameters } = countTools(filter, limit)
        const [row] = await request.database.query(statement, parameters)
        return pageJson(JSON.parse(row!.tools!), limit, { ...state, counted_from: row!.counted_from ?? null })
      },
    }),
    operation({
      call: 'GET /tools/:name',
      id: 'getTool',
      summary: 'Group the failures of a tool',
      description:
        'Failures are grouped by what their messages have in common. A tool that was never called has no calls.',
      querystring: ToolQuery,
      returns: 'Its figures and its failures.',
      data: Type.Ref('ToolFailures'),
      json: async (request) => {
        const { name } = request.params
        const { limit = 20 } = request.query
        const state = await catchUp(changes, request)
        const filter = await filterOf(request, request.query)
        if (filter === 'nobody')
          return toolJson(name, NOT_CALLED, [], limit, { ...state, counted_from: null })
        const { statement, parameters } = groupFailures({ ...filter, name }, limit)
        const [row] = await request.database.query(statement, parameters)
        const found = { ...state, counted_from: row!.counted_from ?? null }
        const groups = JSON.parse(row!.groups!, request.mask ? uncutText : undefined) as Group[]
        request.shows?.(
          groups.slice(0, limit).flatMap(({ examples }) => examples.map(({ session_id }) => session_id)),
        )
        return toolJson(name, JSON.parse(row!.tool!), groups, limit, found)
      },
    }),
  )

export const toolRoutes = (kits: Asking): ModuleRoutes => ({
  project: routes(kits),
  schemas: [Tool, ToolPage, ToolFailures],
})

interface Group {
  examples: { session_id: string }[]
}

const CUT: ReadonlySet<string> = new Set(['title', 'result', 'text'])

/** For a masked reader: what a text was cut through is not recognized, so it is left out. */
const uncutText = (name: string, value: unknown) =>
  CUT.has(name) && typeof value === 'string' ? uncut(value) : value

interface IndexProgress {
  is_complete: boolean
  indexing: { sessions_done: number; sessions: number } | null
}

type Found = IndexProgress & { counted_from: string | null }

const NOT_CALLED = {
  calls: 0,
  failures: 0,
  unanswered: 0,
  sessions: 0,
  p50_ms: null,
  p95_ms: null,
  last_called_at: null,
}

function pageJson(tools: object[], limit: number, found: Found): string {
  return JSON.stringify({ items: tools.slice(0, limit), has_more: tools.length > limit, ...howMuch(found) })
}

function toolJson(name: string, figures: object, groups: object[], limit: number, found: Found): string {
  const has_more = groups.length > limit
  return JSON.stringify({ name, ...figures, groups: groups.slice(0, limit), has_more, ...howMuch(found) })
}

function howMuch({ is_complete, indexing, counted_from }: Found) {
  return { complete: is_complete && counted_from === null, counted_from, indexing }
}

/** Sees to it that calls are indexed, which goes on in the background. */
export async function prepareCalls(
  changes: Pick<Kits['changes'], 'prepare'>,
  tenant: Tenant<Database>,
): Promise<void> {
  try {
    await changes.prepare(tenant, CALLS_CONSUMER)
  } catch (error) {
    if (!(error instanceof AnnalsError) || error.error !== 'being_prepared') throw error
  }
}

/** The same, and waits a moment until earlier entries are counted. */
async function catchUp(changes: Asking['changes'], tenant: Tenant<Database>): Promise<IndexProgress> {
  const { database, project_id } = tenant
  const until = performance.now() + WAIT_MS_MAX
  await prepareCalls(changes, tenant)
  for (let asked_at: string | null = null; ; ) {
    const [row] = await database.query(READ_CALLS_STATE, [project_id, asked_at])
    const is_complete = row !== undefined && (await isComplete(tenant, row))
    if (is_complete || !row || performance.now() > until)
      return { is_complete, indexing: row?.is_being_made === 'f' ? null : await progressOf(tenant, row) }
    asked_at ??= row.now!
    changes.hurry(project_id, CALLS_CONSUMER)
    await sleep(WAIT_POLL_MS)
  }
}

/** Sessions that are looked at one by one, in the seconds until marks can be relied on. */
const SESSIONS_LOOKED_AT = 10_000

async function isComplete({ database, project_id }: Tenant<Database>, row: Row): Promise<boolean> {
  if (row.is_being_made === 't' || row.marks !== '0') return false
  if (row.is_settled === 't') return true
  if (Number(row.sessions_scanned) > SESSIONS_LOOKED_AT) return false
  return (await database.query(FIND_UNREAD_SESSION, [project_id])).length === 0
}

async function progressOf({ database, project_id }: Tenant<Database>, row: Row | undefined) {
  const [count] = await database.query(COUNT_SESSIONS, [project_id])
  const sessions = Number(count!.sessions)
  const read = Number(row?.sessions_scanned ?? 0) - Number(row?.marks ?? 0)
  return { sessions_done: Math.min(Math.max(read, 0), sessions), sessions }
}

async function filterOf(
  { database, project_id }: Tenant<Database>,
  { user, filter_by_configs, from, to }: ToolsQuery,
): Promise<CountedCalls | 'nobody'> {
  const configs = parseFilter('filter_by_configs', filter_by_configs)
  const owner = await findOwner(database, { project_id, user })
  if (owner === 'nobody') return 'nobody'
  return {
    project_id,
    user_id: owner?.id,
    configs,
    from: timeInUtc('Query parameter from', from),
    to: timeInUtc('Query parameter to', to),
  }
}
