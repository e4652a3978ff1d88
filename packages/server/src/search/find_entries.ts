import type { Queryable } from '@annals/kits/postgres/database.js'
import { plainArray, textArray } from '@annals/kits/postgres/statement.js'
import {
  indexedLabel,
  type Match,
  type SearchedEntry,
  type SearchTerm,
  searchCondition,
  type Told,
} from '@annals/messages/search'
import { FIND_ENTRIES } from './find_entries_queries.js'
import { FIND_SESSIONS, READ_FOUND } from './search_queries.js'
import type { SearchState } from './search_state.js'

/** A search's words and filters. Times are RFC 3339. */
export interface Search {
  project_id: string
  terms: SearchTerm[]
  user?: string | undefined
  /** A JSON object as text, not empty. */
  configs?: string | undefined
  session_id?: string | undefined
  kind?: 'event' | 'message' | undefined
  type?: string | undefined
  role?: string | undefined
  from?: string | undefined
  to?: string | undefined
  /** Whether events come too that views fold. */
  noise?: boolean | undefined
}

/** An entry's place in time, after which a page continues. `seq` null: the page includes the entry. */
export interface FoundPlace {
  created_at: string
  session_id: string | null
  seq: number | null
}

/** An entry that may match: phrases have not been checked yet. */
export interface Candidate extends FoundPlace {
  session_id: string
  seq: number
  bytes: number
}

export interface FoundEntry extends Candidate, Match, Told {
  kind: 'event' | 'message'
  type: string | null
  role: string | null
  occurred_at?: string | null | undefined
}

/** How entries match, null for those that do not. */
export type MatchesOf = (
  project_id: string,
  terms: SearchTerm[],
  entries: SearchedEntry[],
) => Promise<Array<(Match & Told) | null>>

export interface Finding {
  database: Queryable
  search: Search
  state: SearchState
  limit: number
  matchesOf: MatchesOf
}

/** How long a statement of a search may take, about. */
const STATEMENT_MS = 150
const PIECE_BYTES = 1024 * 1024

/** The part of a search that the index answers; undefined if nothing can match. */
export async function scopesOf(
  database: Queryable,
  { project_id, user, configs, session_id }: Omit<Search, 'terms'>,
  { user_id }: SearchState,
): Promise<{ scopes: string | null; sessions: string | null; configs: string | null } | undefined> {
  if (user !== undefined && user_id === null) return undefined
  const sessions = session_id === undefined ? null : plainArray([session_id])
  const scopes = user_id === null ? null : textArray([`u${user_id}`])
  const narrowed = { scopes, sessions, configs: configs ?? null }
  if (configs === undefined || session_id !== undefined) return narrowed
  const [found] = await database.query(FIND_SESSIONS, [project_id, configs, user_id])
  if (found?.sessions === '{}') return undefined
  return { ...narrowed, sessions: found?.sessions ?? null }
}

/**
 * Finds entries that may match, the newest first, after a place: `first` of them, and then ever more at once, up to
 * `most`. It may end before it has so many: `next` is where it goes on, undefined where there is nothing more.
 */
export async function* findCandidates(
  { database, search, state }: Finding,
  after: FoundPlace | undefined,
  [first, most = first]: [first: number, most?: number],
): AsyncGenerator<{ candidates: Candidate[]; next: FoundPlace | undefined }> {
  const narrowed = await scopesOf(database, search, state)
  if (!narrowed) return
  let place = after ?? { created_at: 'infinity', session_id: null, seq: null }
  const { terms, kind = null, type = null, role = null } = search
  const labels = [
    ...(type === null ? [] : [indexedLabel(type, null)]),
    ...(role === null ? [] : [indexedLabel(null, role)]),
  ]
  const { together, alike, unlike, longest } = searchCondition(terms, labels)
  for (let limit = first; ; limit = Math.min(2 * limit, most)) {
    const [row] = await database.query(FIND_ENTRIES.statement, [
      search.project_id,
      together,
      textArray(alike),
      textArray(unlike),
      longest,
      narrowed.scopes,
      narrowed.sessions,
      kind,
      type,
      role,
      narrowed.configs,
      search.from ?? '-infinity',
      place.created_at,
      place.session_id,
      place.seq,
      limit,
      STATEMENT_MS,
      search.to ?? 'infinity',
    ])
    const { hits, at } = JSON.parse(row!.answer!) as {
      hits: Array<[string, number, string, number]>
      at: [string, string, number] | null
    }
    const candidates = hits.map(([session_id, seq, created_at, bytes]) => ({
      session_id,
      seq,
      created_at,
      bytes,
    }))
    const rest = at ? { created_at: at[0], session_id: at[1], seq: at[2] } : undefined
    const next = candidates.length === limit ? candidates.at(-1) : rest
    yield { candidates, next }
    if (!next) return
    place = next
  }
}

/**
 * Of entries that may match, those that do, with what is shown of them; piece by piece, with the last entry that was read
 * and the bytes of all.
 */
export async function* readFound(
  { database, search, matchesOf }: Finding,
  candidates: readonly Candidate[],
): AsyncGenerator<{ found: FoundEntry[]; last: Candidate; bytes: number }> {
  const { project_id, terms } = search
  for (const { piece, bytes } of piecesOf(candidates)) {
    const rows = await database.query(READ_FOUND, [
      project_id,
      plainArray(piece.map(({ session_id }) => session_id)),
      plainArray(piece.map(({ seq }) => seq)),
      String(search.noise ?? true),
    ])
    const entries = rows.map((row) => row as unknown as SearchedEntry & FoundEntry)
    const texts = entries.map(({ type, format, data }) => ({ type, format, data }))
    const matches = await matchesOf(project_id, terms, texts)
    const places = new Map(piece.map((candidate) => [`${candidate.session_id} ${candidate.seq}`, candidate]))
    const found = entries.flatMap(({ session_id, seq, kind, type, role, occurred_at }, index) => {
      const match = matches[index]
      const place = places.get(`${session_id} ${seq}`)
      return match && place ? [{ ...place, ...match, kind, type, role, occurred_at }] : []
    })
    yield { found, last: piece.at(-1)!, bytes }
  }
}

function* piecesOf(candidates: readonly Candidate[]): Generator<{ piece: Candidate[]; bytes: number }> {
  let piece: Candidate[] = []
  let bytes = 0
  for (const candidate of candidates) {
    if (piece.length > 0 && bytes + candidate.bytes > PIECE_BYTES) {
      yield { piece, bytes }
      piece = []
      bytes = 0
    }
    piece.push(candidate)
    bytes += candidate.bytes
  }
  if (piece.length > 0) yield { piece, bytes }
}
