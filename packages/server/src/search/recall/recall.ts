import { plainArray, textArray } from '@annals/kits/postgres/statement.js'
import type { SearchedEntry, Told } from '@annals/messages/search'
import {
  entriesToRead,
  fusedEntries,
  fusedSessions,
  labelsOf,
  placeOf,
  type Question,
  questionCondition,
  type ReadEntry,
  type RecalledEntry,
  type RecalledSession,
  ranked,
  type ScoredEntry,
  type ScoredRuns,
  sessionsOf,
  type TextOfEntry,
  type WordCounts,
} from '@annals/recall'
import { type Finding, type Search, scopesOf } from '../find_entries.js'
import type { FindNear, Near, VectorsState } from '../vectors/near_entries.js'
import { FIND_RUNS_TO_RECALL, READ_RECALLED } from './recall_queries.js'
import type { RunWords } from './run_words.js'

/**
 * Limits of a search in the index: runs that have some of the words, and those whose lines are scored, which are most of
 * a question's work; more for a caller that wants much.
 */
const RUNS = { hits: 512, scored: 64, scored_max: 128 }
/** How long the database may look for them, about. */
const FIND_MS = 150
/**
 * Entries whose text is read: more where it decides whether they are found. Some more than are shown at first, since what
 * their texts say may change their order.
 */
const READ_ENTRIES = { spare: 6, usual: 48, least: 16, exact: 200 }
/** Characters of texts that are read. */
const READ_LENGTH_MAX = 4 * 1024 * 1024

export interface Asking extends Omit<Finding, 'search' | 'matchesOf'> {
  search: Omit<Search, 'terms'>
  question: Question
  group: 'entry' | 'session'
  counts: WordCounts
  runWords: RunWords
  /** Where the operator has named a model. */
  findNear: FindNear | undefined
  scoreRuns(
    project_id: string,
    answer: string,
    words: readonly SharedArrayBuffer[],
    question: Question,
    labels: string[],
    most: number,
  ): Promise<ScoredRuns>
  textsOf(
    project_id: string,
    question: Question,
    entries: SearchedEntry[],
  ): Promise<Array<(TextOfEntry & Told) | null>>
}

export interface Recalled {
  complete: boolean
  entries: RecalledEntry[]
  sessions: RecalledSession[]
  vectors?: VectorsState
}

type Narrowed = NonNullable<Awaited<ReturnType<typeof scopesOf>>>

/** The entries, or sessions, that answer a question best. */
export async function recall(asking: Asking): Promise<Recalled> {
  const { database, search, state, group, limit, findNear } = asking
  const narrowed = await scopesOf(database, search, state)
  if (!narrowed) return { complete: true, entries: [], sessions: [] }
  const most = 2 * limit + READ_ENTRIES.spare
  const [byWords, near] = await Promise.all([
    recallByWords(asking, narrowed),
    findNear?.(asking, narrowed, labelsOf(search), most),
  ])
  const { complete, entries, sessions } = near ? await fused(asking, byWords, near) : byWords
  const vectors = near && { vectors: near.vectors }
  if (group === 'entry') return { complete, entries: entries.slice(0, limit), sessions: [], ...vectors }
  const shown = sessions.slice(0, limit)
  await addNeighbours(asking, shown)
  return { complete, entries: [], sessions: shown, ...vectors }
}

/** With those whose vectors are near, if they still exist and have what is in quotes. */
async function fused(asking: Asking, byWords: Recalled, { places }: Near): Promise<Recalled> {
  if (places.length === 0) return byWords
  const read = await readEntries(asking, places, asking.search)
  const ranks = new Map(places.map((place, rank) => [placeOf(place), rank]))
  const near = await withTexts(asking, places, read)
  near.sort((a, b) => ranks.get(placeOf(a))! - ranks.get(placeOf(b))!)
  const { complete, entries, sessions } = byWords
  return asking.group === 'entry'
    ? { complete, entries: fusedEntries(entries, near), sessions: [] }
    : { complete, entries: [], sessions: fusedSessions(sessions, near) }
}

async function recallByWords(asking: Asking, narrowed: Narrowed): Promise<Recalled> {
  const { database, search, question, state, group, limit, counts } = asking
  const { project_id } = search
  const labels = labelsOf(search)
  const words = questionCondition(question, labels)
  // The newest segments of the project, or of a user: what they have in them changes slowly.
  const among = narrowed.sessions || search.to ? undefined : `${project_id} ${narrowed.scopes}`
  const [row] = await database.query(FIND_RUNS_TO_RECALL.statement, [
    project_id,
    textArray(words),
    among === undefined ? null : plainArray(counts.read(among, words)),
    narrowed.scopes,
    narrowed.sessions,
    narrowed.configs,
    search.from ?? '-infinity',
    search.to ?? 'infinity',
    RUNS.hits,
    Math.min(Math.max(RUNS.scored, 2 * limit), RUNS.scored_max),
    FIND_MS,
  ])
  const is_exact = question.required.length + question.excluded.length > 0
  const most = is_exact ? READ_ENTRIES.exact : Math.max(READ_ENTRIES.usual, limit + READ_ENTRIES.least)
  const answer = row!.answer!
  const wordsOfRuns = await asking.runWords.of(answer, database, project_id, !state.is_refilling)
  const scored = await asking.scoreRuns(project_id, answer, wordsOfRuns, question, labels, most)
  if (among) counts.add(among, words, scored.counts)
  const readFirst = async (first: number) => {
    const chosen = entriesToRead(scored, group, { first, fuller: Math.ceil(limit / 2), most })
    const read = await readEntries(asking, chosen, search)
    return withTexts(asking, chosen, read)
  }
  const few = is_exact ? most : limit + READ_ENTRIES.spare
  let entries = await readFirst(few)
  const found = group === 'entry' ? entries.length : sessionsOf(scored, entries).length
  const there = group === 'entry' ? scored.entries.length : scored.sessions.length
  // Some may have been retracted, or happened at another time.
  if (few < most && found < Math.min(limit, there)) entries = await readFirst(most)
  return {
    complete: scored.complete,
    entries,
    sessions: group === 'entry' ? [] : sessionsOf(scored, entries),
  }
}

type EntryFilter = Partial<Pick<Search, 'kind' | 'type' | 'role' | 'from' | 'to'>>

async function readEntries(
  { database, search, state }: Asking,
  places: readonly { session_id: string; seq: number }[],
  { kind, type, role, from, to }: EntryFilter,
): Promise<Map<string, ReadEntry>> {
  if (places.length === 0) return new Map()
  const rows = await database.query(READ_RECALLED, [
    search.project_id,
    plainArray(places.map(({ session_id }) => session_id)),
    plainArray(places.map(({ seq }) => seq)),
    kind ?? null,
    type ?? null,
    role ?? null,
    state.user_id,
    search.configs ?? null,
    from ?? null,
    to ?? null,
  ])
  const entries = rows.map((row) => ({ ...(row as unknown as ReadEntry), seq: Number(row.seq) }))
  return new Map(entries.map((entry) => [placeOf(entry), entry]))
}

/** Those that still exist and have the quoted phrases, with their texts, best first. */
async function withTexts(
  { search, question, textsOf }: Asking,
  chosen: readonly ScoredEntry[],
  read: ReadonlyMap<string, ReadEntry>,
): Promise<RecalledEntry[]> {
  const there: ReadEntry[] = []
  let length = 0
  for (const place of chosen) {
    const entry = read.get(placeOf(place))
    if (!entry || length > READ_LENGTH_MAX) continue
    length += entry.data.length
    there.push(entry)
  }
  const texts = await textsOf(search.project_id, question, there.map(searched))
  return ranked(there, chosen, texts)
}

function searched({ type, format, data }: ReadEntry): SearchedEntry {
  return { type, format, data }
}

/** The entries right before and after, where they are not shown themselves. */
async function addNeighbours(asking: Asking, sessions: readonly RecalledSession[]): Promise<void> {
  const shown = sessions.flatMap(({ entries }) => entries)
  const places = new Set(shown.map(placeOf))
  const wanted = shown
    .flatMap(({ session_id, seq }) => [seq - 1, seq + 1].map((seq) => ({ session_id, seq })))
    .filter((place) => place.seq > 0 && !places.has(placeOf(place)))
  const read = [...(await readEntries(asking, wanted, {})).values()]
  const texts = await asking.textsOf(
    asking.search.project_id,
    { ...asking.question, required: [], excluded: [] },
    read.map(searched),
  )
  const found = new Map(read.map((entry, index) => [placeOf(entry), { ...entry, ...texts[index]! }]))
  for (const entry of shown) {
    const before = found.get(placeOf({ ...entry, seq: entry.seq - 1 }))
    const after = found.get(placeOf({ ...entry, seq: entry.seq + 1 }))
    if (before) entry.before = before
    if (after) entry.after = after
  }
}
