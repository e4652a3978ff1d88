import { AnnalsError, invalidRequest } from '@annals/kits/errors.js'
import { logReadBytes } from '@annals/kits/http/answer/answer.js'
import { Cursors } from '@annals/kits/http/answer/page_answer.js'
import { operationsOf } from '@annals/kits/http/operation.js'
import { parseFilter, timeInUtc } from '@annals/kits/http/request/validate.js'
import { parseId } from '@annals/kits/ids.js'
import { PAGE_LIMIT_DEFAULT } from '@annals/kits/limits.js'
import type { Kits, ModuleRoutes } from '@annals/kits/module.js'
import type { Embeddings } from '@annals/kits/outgoing/embeddings.js'
import { plainArray } from '@annals/kits/postgres/statement.js'
import type { WorkThread } from '@annals/kits/threads/work_thread.js'
import { InvalidQuery, parseSearchQuery, type SearchedEntry } from '@annals/messages/search'
import {
  bySession,
  foundItem,
  readQuestion,
  recalledItem,
  shortTitle,
  uncutItems,
  WordCounts,
} from '@annals/recall'
import type { FastifyRequest } from 'fastify'
import Type from '#typebox'
import { narrowedFilters } from '../access/reach.js'
import type { Finding, FoundPlace, Search } from './find_entries.js'
import { recall } from './recall/recall.js'
import { READ_TITLES, REFILL } from './recall/recall_queries.js'
import { FoundSession, RECALL_LIMIT } from './recall/recall_schema.js'
import { RunWords } from './recall/run_words.js'
import { findNewest, findRelevant, type FoundPage as Page, type RankedPlace } from './search.js'
import { FoundEntry, FoundPage, FoundSessions, SearchQuery } from './search_schema.js'
import { readSearchState } from './search_state.js'
import { matchesOnThread, recalledTextsOnThread, scoresOnThread } from './search_work.js'
import { nearQuestion } from './vectors/near_entries.js'

/** Entries of all sessions, by their words. */
const search = (
  { thread, changes }: Pick<Kits, 'thread' | 'changes'>,
  embeddings: Embeddings | undefined,
  known: Known = { embeddings, counts: new WordCounts(), runWords: new RunWords() },
) =>
  operationsOf('Search')({
    call: 'GET /search',
    id: 'search',
    reach: 'narrowed',
    summary: 'Search the entries of all sessions',
    description:
      "Finds messages by their text and by the names, arguments and results of their tools, and events by their type and the values in their data. Only the first 64 KiB of an entry's text are searched. Retracted and deleted entries are not found. An entry can be found a second or two after it was stored. Search is off until the project's operator switches it on.",
    querystring: SearchQuery,
    returns: 'A page of entries.',
    data: Type.Union([Type.Ref('FoundPage'), Type.Ref('FoundSessions')]),
    errors: ['search_off'],
    json: async (request) => {
      const { narrow } = request.grant!
      const query = narrow ? await narrowedSearch(request) : request.query
      if (query.mode === 'recall') return answerQuestion(request, thread, known)
      const search = searchOf(request.project_id, query)
      const { order = 'newest', group = 'entry', limit = PAGE_LIMIT_DEFAULT, cursor } = query
      const { terms: _read, ...filters } = search
      const cursors = new Cursors('search', order, query.q, JSON.stringify(filters))
      const position = cursor === undefined ? undefined : cursors.read(cursor)
      const { database, project_id } = request
      const state = await readSearchState(database, project_id, search.user)
      // It may have been switched on a moment ago, through another process.
      if (state.indexing) changes.touched(project_id)
      await request.memory.hold(logReadBytes(request))
      const finding: Finding = { database, search, state, limit, matchesOf: matchesOnThread(thread) }
      const page: Page<FoundPlace | RankedPlace> =
        order === 'newest'
          ? await findNewest(finding, readPlace(position, foundPlace))
          : await findRelevant(finding, readPlace(position, rankedPlace))
      const { indexed_through } = state
      // How many sessions there are is more than a token reaches.
      const indexing = narrow && state.indexing ? { sessions_done: 0, sessions: 0 } : state.indexing
      const next_cursor = page.next ? cursors.write(JSON.stringify(placeOf(page.next))) : ''
      const has_more = next_cursor !== ''
      request.shows?.(page.items.map(({ session_id }) => session_id))
      const found = page.items.map((entry) => ({ session_id: entry.session_id, ...foundItem(entry) }))
      const items = group === 'session' ? await withTitles(request, thread, bySession(found)) : found
      return JSON.stringify({
        items: request.mask ? uncutItems(items) : items,
        has_more,
        next_cursor,
        indexed_through,
        indexing,
      })
    },
  })

export const searchRoutes = (kits: Kits, embeddings: Embeddings | undefined): ModuleRoutes => ({
  project: search(kits, embeddings),
  schemas: [FoundEntry, FoundPage, FoundSession, FoundSessions],
})

/**
 * A token's search, within the sessions that it reaches. How relevant an entry is depends on all others of the
 * project, so a token could find out what is said in those.
 * @throws AnnalsError insufficient_scope
 */
async function narrowedSearch(request: FastifyRequest<{ Querystring: SearchQuery }>): Promise<SearchQuery> {
  const query: SearchQuery & { parent?: string } = await narrowedFilters(request, request.query)
  const { mode = 'words', order = 'newest', parent, ...narrowed } = query
  if (mode !== 'words' || order !== 'newest')
    throw new AnnalsError(
      'insufficient_scope',
      'A token searches only by words, newest first. Use an API key for other searches.',
    )
  if (parent !== undefined && narrowed.session_id === undefined)
    throw new AnnalsError('insufficient_scope', 'Pass session_id: this token searches one session at a time.')
  return narrowed
}

function searchOf(project_id: string, query: SearchQuery): Search {
  return { ...filtersOf(project_id, query), terms: termsOf(() => parseSearchQuery(query.q)) }
}

function filtersOf(project_id: string, query: SearchQuery): Omit<Search, 'terms'> {
  const { user, session_id, kind, type, role, from, to, noise } = query
  return {
    project_id,
    user,
    configs: parseFilter('filter_by_configs', query.filter_by_configs),
    session_id,
    kind,
    type,
    role,
    noise,
    from: timeInUtc('Query parameter from', from),
    to: timeInUtc('Query parameter to', to),
  }
}

/** Reads q. @throws AnnalsError invalid_request */
function termsOf<Terms>(read: () => Terms): Terms {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof InvalidQuery)) throw error
    throw invalidRequest(`Query parameter q ${error.message}.`)
  }
}

/** A place in a cursor, which a caller may have made up. @throws AnnalsError invalid_cursor */
function readPlace<Place>(text: string | undefined, check: (place: Place) => Place): Place | undefined {
  if (text === undefined) return undefined
  try {
    return check(JSON.parse(text))
  } catch {
    throw new AnnalsError('invalid_cursor')
  }
}

function foundPlace({ created_at, session_id, seq }: FoundPlace): FoundPlace {
  const id = session_id === null ? null : parseId(session_id)
  if (id === undefined || (seq !== null && !Number.isSafeInteger(seq)))
    throw new AnnalsError('invalid_cursor')
  return { created_at: timeInUtc('/created_at', created_at), session_id: id, seq }
}

function rankedPlace({ newest, shown }: RankedPlace): RankedPlace {
  if (!Number.isSafeInteger(shown) || shown < 0) throw new AnnalsError('invalid_cursor')
  return { newest: foundPlace(newest), shown }
}

function placeOf(place: FoundPlace | RankedPlace): FoundPlace | RankedPlace {
  if ('newest' in place) return { ...place, newest: placeOf(place.newest) as FoundPlace }
  const { created_at, session_id, seq } = place
  return { created_at, session_id, seq }
}

type Known = { embeddings: Embeddings | undefined; counts: WordCounts; runWords: RunWords }

type SearchRequest = Parameters<typeof logReadBytes>[0] & FastifyRequest<{ Querystring: SearchQuery }>

async function answerQuestion(
  request: SearchRequest,
  thread: WorkThread,
  { embeddings, ...known }: Known,
): Promise<string> {
  const { project_id, database, query } = request
  const { group = 'session', limit = RECALL_LIMIT.default } = query
  for (const name of ['order', 'cursor', 'noise'] as const)
    if (query[name] !== undefined) throw invalidRequest(`Query parameter ${name} goes with mode=words only.`)
  if (limit > RECALL_LIMIT.most)
    throw invalidRequest(`Query parameter limit must be at most ${RECALL_LIMIT.most} with mode=recall.`)
  const question = termsOf(() => readQuestion(query.q))
  const search = filtersOf(project_id, query)
  const state = await readSearchState(database, project_id, search.user)
  await request.memory.hold(logReadBytes(request))
  const textsOf = recalledTextsOnThread(thread)
  const asking = {
    database,
    search,
    state,
    limit,
    question,
    group,
    ...known,
    // How near something is that a masked reader does not see would tell what it is.
    findNear: embeddings && !request.mask ? nearQuestion(embeddings, query.q) : undefined,
    textsOf,
    scoreRuns: scoresOnThread(thread),
  }
  const { complete, entries, sessions, vectors } = await recall(asking)
  request.shows?.([...entries, ...sessions].map(({ session_id }) => session_id))
  const items =
    group === 'entry'
      ? entries.map(recalledItem)
      : await withTitles(
          request,
          thread,
          sessions.map(({ session_id, score, entries }) => ({
            session_id,
            score,
            entries: entries.map(recalledItem),
          })),
        )
  const { indexed_through, indexing } = state
  const [refill] = state.is_refilling ? await database.query(REFILL.progress, [project_id]) : []
  return JSON.stringify({
    items: request.mask ? uncutItems(items) : items,
    has_more: false,
    next_cursor: '',
    terms: question.words.map(({ word }) => word),
    complete,
    ...(vectors && { vectors }),
    indexed_through,
    indexing,
    ...(refill && {
      refilling: { entries_done: Number(refill.entries_done), entries: Number(refill.entries) },
    }),
  })
}

async function withTitles<Item extends { session_id: string }>(
  { database, project_id }: SearchRequest,
  thread: WorkThread,
  items: readonly Item[],
): Promise<object[]> {
  if (items.length === 0) return []
  const rows = await database.query(READ_TITLES, [
    project_id,
    plainArray(items.map(({ session_id }) => session_id)),
  ])
  const untitled = rows.filter(({ title, data }) => title === null && data !== null)
  const texts = await recalledTextsOnThread(thread)(
    project_id,
    { words: [], required: [], excluded: [], dates: [] },
    untitled.map((row) => ({ ...(row as unknown as SearchedEntry), type: null })),
  )
  const said = new Map(untitled.map(({ session_id }, index) => [session_id, texts[index]!.snippet.text]))
  const found = new Map(rows.map((row) => [row.session_id, row]))
  return items.flatMap((item) => {
    const row = found.get(item.session_id)
    if (!row) return []
    const title = shortTitle(row.title ?? said.get(item.session_id) ?? '')
    return [{ ...item, title: title === '' ? null : title, created_at: row.created_at }]
  })
}
