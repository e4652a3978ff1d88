import { InvalidQuery, parseSearchQuery, type SearchTerm } from '@annals/messages/search'
import { AnnalsError, invalidRequest } from '../errors.js'
import { logReadBytes } from '../http/admission/request_memory.js'
import { operationsOf } from '../http/operation.js'
import { Cursors } from '../http/request/cursor.js'
import { parseFilter, timeInUtc } from '../http/request/json_parameters.js'
import { parseId } from '../ids.js'
import { PAGE_LIMIT_DEFAULT } from '../limits.js'
import type { Kits, ModuleRoutes } from '../module.js'
import type { Finding, FoundEntry as Found, FoundPlace, Search } from './find_entries.js'
import { findNewest, findRelevant, type FoundPage as Page, type RankedPlace } from './search.js'
import { FoundEntry, FoundPage, SearchQuery } from './search_schema.js'
import { readSearchState } from './search_state.js'
import { matchesOnThread } from './search_work.js'

/** Entries of all sessions, by what is said in them. */
const search = ({ thread, changes }: Pick<Kits, 'thread' | 'changes'>) =>
  operationsOf('Search')({
    call: 'GET /search',
    id: 'search',
    summary: 'Search the entries of all sessions',
    description:
      "Finds messages by their text and by the names, arguments and results of their tools, and events by their type and the values in their data: of each entry the first 64 KiB of text. Entries that were retracted or deleted are not found. An entry is found a second or two after it was stored. Search is off until the project's operator switches it on.",
    querystring: SearchQuery,
    returns: 'A page of entries.',
    data: FoundPage,
    errors: ['search_off'],
    json: async (request) => {
      const search = searchOf(request.project_id, request.query)
      const { order = 'newest', limit = PAGE_LIMIT_DEFAULT, cursor } = request.query
      const { terms: _read, ...filters } = search
      const cursors = new Cursors('search', order, request.query.q, JSON.stringify(filters))
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
      const { indexed_through, indexing } = state
      const next_cursor = page.next ? cursors.write(JSON.stringify(placeOf(page.next))) : ''
      const has_more = next_cursor !== ''
      const items = page.items.map(foundItem)
      return JSON.stringify({ items, has_more, next_cursor, indexed_through, indexing })
    },
  })

export const searchRoutes = (kits: Kits): ModuleRoutes => ({ project: search(kits), schemas: [FoundEntry] })

function searchOf(project_id: string, query: SearchQuery): Search {
  const { q, user, session_id, kind, type, role, from, to } = query
  return {
    project_id,
    terms: termsOf(q),
    user,
    configs: parseFilter('filter_by_configs', query.filter_by_configs),
    session_id,
    kind,
    type,
    role,
    from: from === undefined ? undefined : timeInUtc('Query parameter from', from),
    to: to === undefined ? undefined : timeInUtc('Query parameter to', to),
  }
}

function termsOf(q: string): SearchTerm[] {
  try {
    return parseSearchQuery(q)
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

/** @throws Error if the database could not compare with it */
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

/** A place without what else an entry has. */
function placeOf(place: FoundPlace | RankedPlace): FoundPlace | RankedPlace {
  if ('newest' in place) return { ...place, newest: placeOf(place.newest) as FoundPlace }
  const { created_at, session_id, seq } = place
  return { created_at, session_id, seq }
}

function foundItem({ session_id, seq, kind, type, role, created_at, snippet }: Found): object {
  return {
    session_id,
    seq,
    kind,
    ...(type !== null && { type }),
    ...(role !== null && { role }),
    created_at,
    snippet,
  }
}
