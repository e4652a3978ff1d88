import {
  entryText,
  type Match,
  matchTerms,
  readEntry,
  type SearchedEntry,
  type SearchTerm,
  type Snippet,
  type Told,
} from '@annals/messages/search'
import { lineOf } from './line.js'
import type { Question } from './question.js'
import type { RecalledEntry } from './recalled.js'
import { type TextOfEntry, textReader } from './text.js'

/** The words of entries, as the index has them. */
export function indexedWords(entries: SearchedEntry[]): string[] {
  return entries.map((entry) => lineOf(entryText(entry)))
}

/** Characters of an entry that its vector is of: models take no long texts, and what a long one is about is said early. */
const EMBEDDED_LENGTH_MAX = 8_000

/** Events that say nothing by themselves: what an import kept as it was, and what notes a change of other entries. */
const KEPT = /^(?:source|annals)\./

/** The texts of entries that vectors are made of; empty where nothing is said. */
export function embeddedTexts(entries: SearchedEntry[]): string[] {
  return entries.map((entry) =>
    KEPT.test(entry.type ?? '') ? '' : entryText(entry).trim().slice(0, EMBEDDED_LENGTH_MAX).toWellFormed(),
  )
}

/** How entries match; null for those that do not. */
export function searchMatches(entries: SearchedEntry[], terms: SearchTerm[]): Array<(Match & Told) | null> {
  return entries.map((entry) => told(entry, (text) => matchTerms(text, terms)))
}

/** What entries have of a question; null for those that have not what is in quotes. */
export function recalledTexts(
  entries: SearchedEntry[],
  question: Question,
): Array<(TextOfEntry & Told) | null> {
  const read = textReader(question)
  return entries.map((entry) => told(entry, read))
}

function told<Found extends object>(
  entry: SearchedEntry,
  find: (text: string) => Found | null | undefined,
): (Found & Told) | null {
  const { text, is_tool_result } = readEntry(entry)
  const found = find(text)
  return found ? { ...found, is_tool_result } : null
}

/** What is shown of an entry that was found. */
interface FoundInLog extends Told {
  seq: number
  kind: 'event' | 'message'
  type: string | null
  role: string | null
  created_at: string
  occurred_at?: string | null | undefined
  snippet: Snippet
}

/** An entry as a search answers it. */
export function foundItem({
  seq,
  kind,
  type,
  role,
  is_tool_result,
  created_at,
  occurred_at,
  snippet,
}: FoundInLog): object {
  return {
    seq,
    kind,
    ...(type !== null && { type }),
    ...(role !== null && { role: is_tool_result ? 'tool' : role }),
    created_at,
    ...(occurred_at && { occurred_at }),
    snippet,
  }
}

/** The same for one that answers a question. */
export function recalledItem({ score, before, after, ...entry }: RecalledEntry): object {
  return {
    session_id: entry.session_id,
    ...foundItem(entry),
    score: Number(score.toFixed(3)),
    ...(before && { before: foundItem(before) }),
    ...(after && { after: foundItem(after) }),
  }
}

/** A snippet without the words, and the digits beside them, that it was cut through. */
export function uncut(text: string): string {
  const words = text.split(/\s/)
  const isCutOff = (word: string) => word.includes('…') || /^[\d-]+$/.test(word)
  let from = 0
  let to = words.length
  if (text.startsWith('…')) while (from < to && isCutOff(words[from]!)) from++
  if (text.endsWith('…')) while (to > from && isCutOff(words[to - 1]!)) to--
  return `${from > 0 ? '… ' : ''}${words.slice(from, to).join(' ')}${to < words.length ? ' …' : ''}`
}

/**
 * Found items for a masked reader: words that a snippet cuts through would no longer be recognized, and hits would not be
 * where they were.
 */
export function uncutItems<Items>(items: Items): Items {
  return JSON.parse(JSON.stringify(items), (name, value) => {
    if (name === 'snippet') return { text: uncut(value.text), hits: [] }
    return name === 'title' && typeof value === 'string' ? uncut(value) : value
  })
}

/** Found entries by session, in the order of the first of each. */
export function bySession<Entry extends { session_id: string }>(
  found: readonly Entry[],
): { session_id: string; entries: Entry[] }[] {
  const sessions = new Map<string, Entry[]>()
  for (const entry of found)
    sessions.set(entry.session_id, [...(sessions.get(entry.session_id) ?? []), entry])
  return [...sessions].map(([session_id, entries]) => ({ session_id, entries }))
}

/** Characters of a title, which must not end within one. */
const TITLE_LENGTH_MAX = 120

/** A title on one line. */
export function shortTitle(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, ' ')
  return line.length > TITLE_LENGTH_MAX
    ? `${line.slice(0, TITLE_LENGTH_MAX - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
    : line
}
