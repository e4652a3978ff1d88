import {
  entryText,
  indexedWords,
  type Match,
  matchTerms,
  type SearchedEntry,
  type SearchTerm,
} from '@annals/messages/search'
import { workInOrders } from '../threads/work_in_orders.js'
import type { WorkThread } from '../threads/work_thread.js'

export const SEARCH_WORK = {
  indexedWords(entries: SearchedEntry[]): string[] {
    return entries.map((entry) => indexedWords(entryText(entry)))
  },

  searchMatches(entries: SearchedEntry[], terms: SearchTerm[]): Array<Match | null> {
    return entries.map((entry) => matchTerms(entryText(entry), terms) ?? null)
  },
}

type SearchWork = typeof SEARCH_WORK

declare module '../threads/work_thread.js' {
  interface ThreadWork extends SearchWork {}
}

const lengthOf = ({ data }: SearchedEntry) => data.length

export function wordsOnThread(thread: WorkThread) {
  return (project_id: string, entries: SearchedEntry[]): Promise<string[]> =>
    workInOrders(thread, project_id, 'indexedWords', entries, lengthOf)
}

export function matchesOnThread(thread: WorkThread) {
  return (project_id: string, terms: SearchTerm[], entries: SearchedEntry[]): Promise<Array<Match | null>> =>
    workInOrders(thread, project_id, 'searchMatches', entries, lengthOf, terms)
}
