import { indexedLabel, type SearchedEntry, type Snippet, type Told } from '@annals/messages/search'
import { formsOf, type Question, SCORE, type TextOfEntry } from '@annals/recall'
import { plainArray, textArray } from '../../postgres/statement.js'
import { type Finding, type Search, scopesOf } from '../find_entries.js'
import { FIND_RUNS_TO_RECALL, READ_RECALLED } from './recall_queries.js'
import type { ScoredRuns } from './score_runs.js'

/** What a search looks at in the index, at most: runs that have some of the words, and those whose lines are scored. */
const RUNS = { hits: 2_000, scored: 128 }
/** How long the database may look for them, about. */
const FIND_MS = 150
/** Entries whose text is read: more where it decides whether they are found. */
const READ_ENTRIES = { usual: 48, least: 16, exact: 200 }
/** Characters of texts that are read. */
const READ_LENGTH_MAX = 4 * 1024 * 1024
const ENTRIES_OF_SESSION = 3

/** A question and its filters. */
export interface Asking extends Omit<Finding, 'search' | 'matchesOf'> {
  search: Omit<Search, 'terms'>
  question: Question
  group: 'entry' | 'session'
  scoreRuns(
    project_id: string,
    answer: string,
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

/** An entry as the log has it. */
export interface ReadEntry extends SearchedEntry {
  session_id: string
  seq: number
  kind: 'event' | 'message'
  role: string | null
  created_at: string
  occurred_at?: string | null | undefined
}

/** One with the part of its text that has most of what is asked for. */
export interface ShownEntry extends ReadEntry, Told {
  snippet: Snippet
}

export interface RecalledEntry extends ShownEntry {
  score: number
  /** Has the words of the question as they were asked for, one after the other. */
  is_phrase: boolean
  before?: ShownEntry
  after?: ShownEntry
}

export interface RecalledSession {
  session_id: string
  score: number
  entries: RecalledEntry[]
}

export interface Recalled {
  complete: boolean
  entries: RecalledEntry[]
  sessions: RecalledSession[]
}

/** The entries, or sessions, that answer a question best. */
export async function recall(asking: Asking): Promise<Recalled> {
  const { database, search, question, state, group, limit } = asking
  const { project_id, kind, type, role } = search
  const nothing = { complete: true, entries: [], sessions: [] }
  const narrowed = await scopesOf(database, search, state)
  if (!narrowed) return nothing
  const labels = labelsOf(search)
  const all = question.words.map(
    (word) =>
      `(${formsOf(word)
        .map(({ form }) => quoted(form, word.is_prefix))
        .join('|')})`,
  )
  const every = [
    ...labels.map((label) => quoted(label.trimEnd(), !label.endsWith(' '))),
    ...question.required.flatMap(({ words, is_prefix }) =>
      words.map((word, index) => quoted(word, is_prefix && index === words.length - 1)),
    ),
  ]
  const [row] = await database.query(FIND_RUNS_TO_RECALL.statement, [
    project_id,
    textArray(all.map((one) => [one, ...every].join('&'))),
    [...all, ...every].join('&'),
    narrowed.scopes,
    narrowed.sessions,
    narrowed.configs,
    search.from ?? '-infinity',
    search.to ?? 'infinity',
    RUNS.hits,
    RUNS.scored,
    FIND_MS,
  ])
  const is_exact = question.required.length + question.excluded.length > 0
  const most = is_exact ? READ_ENTRIES.exact : Math.max(READ_ENTRIES.usual, limit + READ_ENTRIES.least)
  const scored = await asking.scoreRuns(project_id, row!.answer!, question, labels, most)
  const chosen = group === 'entry' ? scored.entries : entriesOfSessions(scored, most)
  const read = await readEntries(asking, chosen, { kind, type, role, from: search.from, to: search.to })
  const entries = await withTexts(asking, chosen, read)
  if (group === 'entry') return { complete: scored.complete, entries: entries.slice(0, limit), sessions: [] }
  const sessions = sessionsOf(scored, entries).slice(0, limit)
  await addNeighbours(asking, sessions)
  return { complete: scored.complete, entries: [], sessions }
}

/** What the line of an entry must begin with: its label, or the sign of its kind. */
function labelsOf({ kind, type, role }: Asking['search']): string[] {
  return [
    ...(type === undefined ? [] : [`${indexedLabel(type, null)} `]),
    ...(role === undefined ? [] : [`${indexedLabel(null, role)} `]),
    ...(kind === undefined ? [] : [kind === 'event' ? '=' : '@']),
  ]
}

/** Words have no quotes and no backslashes. */
function quoted(word: string, is_prefix: boolean): string {
  return `'${word}'${is_prefix ? ':*' : ''}`
}

type Place = { session_id: string; seq: number; score: number }

/** The best of each session first, then the second best of each: so many that each session has one. */
function entriesOfSessions({ sessions }: ScoredRuns, most: number): Place[] {
  const places: Place[] = []
  for (let rank = 0; rank < ENTRIES_OF_SESSION; rank++)
    for (const { entries } of sessions) {
      const entry = entries[rank]
      if (entry && places.length < most) places.push(entry)
    }
  return places
}

interface EntryFilter {
  kind?: string | undefined
  type?: string | undefined
  role?: string | undefined
  from?: string | undefined
  to?: string | undefined
}

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

function placeOf({ session_id, seq }: { session_id: string; seq: number }): string {
  return `${session_id} ${seq}`
}

/** Those that are there and have what is in quotes, with their texts: the question as a phrase first, then near words among equals. */
async function withTexts(
  { search, question, textsOf }: Asking,
  chosen: readonly Place[],
  read: ReadonlyMap<string, ReadEntry>,
): Promise<RecalledEntry[]> {
  const scores = new Map(chosen.map((place) => [placeOf(place), place.score]))
  const there: ReadEntry[] = []
  let length = 0
  for (const place of chosen) {
    const entry = read.get(placeOf(place))
    if (!entry || length > READ_LENGTH_MAX) continue
    length += entry.data.length
    there.push(entry)
  }
  const texts = await textsOf(search.project_id, question, there.map(searched))
  const times = there.map(({ created_at }) => Date.parse(created_at))
  const [oldest, newest] = [Math.min(...times), Math.max(...times)]
  const entries = there.flatMap((entry, index): RecalledEntry[] => {
    const text = texts[index]
    if (!text) return []
    const age = newest === oldest ? 0 : (newest - times[index]!) / (newest - oldest)
    const score = scores.get(placeOf(entry))! * (1 + SCORE.near * text.nearness) * (1 - SCORE.old * age)
    return [
      {
        ...entry,
        snippet: text.snippet,
        is_tool_result: text.is_tool_result,
        score,
        is_phrase: text.is_phrase,
      },
    ]
  })
  return phrasesFirst(entries, ({ is_phrase }) => is_phrase)
}

function searched({ type, format, data }: ReadEntry): SearchedEntry {
  return { type, format, data }
}

/** Sessions with what was read of them; each gains what its best entry gained when it was read. */
function sessionsOf({ sessions }: ScoredRuns, entries: readonly RecalledEntry[]): RecalledSession[] {
  const ofSession = new Map<string, RecalledEntry[]>()
  for (const entry of entries)
    ofSession.set(entry.session_id, [...(ofSession.get(entry.session_id) ?? []), entry])
  const found = sessions.flatMap(({ session_id, score, entries: scored }): RecalledSession[] => {
    const read = ofSession.get(session_id)
    if (!read) return []
    const before = scored.find(({ seq }) => seq === read[0]!.seq)!.score
    const gained = read[0]!.score - before
    return [{ session_id, score: score + gained, entries: read.slice(0, ENTRIES_OF_SESSION) }]
  })
  return phrasesFirst(found, ({ entries }) => entries[0]!.is_phrase)
}

/** Best first. Whoever asks with a phrase that was said means it: it goes before loose matches, however many words these have. */
function phrasesFirst<One extends { score: number }>(all: One[], isPhrase: (one: One) => boolean): One[] {
  const loose = Math.max(0, ...all.filter((one) => !isPhrase(one)).map(({ score }) => score))
  for (const one of all) if (isPhrase(one)) one.score += loose
  return all.sort((a, b) => b.score - a.score)
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
