import {
  entryText,
  type Match,
  matchTerms,
  readEntry,
  type SearchedEntry,
  type SearchTerm,
  type Told,
} from '@annals/messages/search'
import { lineOf, type Question, readText, type TextOfEntry } from '@annals/recall'
import { type WorkThread, workAtOnce, workInOrders } from '../threads/work_thread.js'
import { scoreRuns } from './recall/score_runs.js'

export const SEARCH_WORK = {
  indexedWords(entries: SearchedEntry[]): string[] {
    return entries.map((entry) => lineOf(entryText(entry)))
  },

  searchMatches(entries: SearchedEntry[], terms: SearchTerm[]): Array<(Match & Told) | null> {
    return entries.map((entry) => {
      const { text, is_tool_result } = readEntry(entry)
      const match = matchTerms(text, terms)
      return match ? { ...match, is_tool_result } : null
    })
  },

  scoreRuns,

  recalledTexts(entries: SearchedEntry[], question: Question): Array<(TextOfEntry & Told) | null> {
    return entries.map((entry) => {
      const { text, is_tool_result } = readEntry(entry)
      const found = readText(text, question)
      return found ? { ...found, is_tool_result } : null
    })
  },
}

type SearchWork = typeof SEARCH_WORK

declare module '../threads/work_thread.js' {
  interface ThreadWork extends SearchWork {}
}

/** To look for words in a text costs several times what other work on as many characters does. */
const COST = 4
const lengthOf = ({ data }: SearchedEntry) => COST * data.length

export function wordsOnThread(thread: WorkThread) {
  return (project_id: string, entries: SearchedEntry[]): Promise<string[]> =>
    workInOrders(thread, project_id, 'indexedWords', entries, lengthOf)
}

export function matchesOnThread(thread: WorkThread) {
  return (
    project_id: string,
    terms: SearchTerm[],
    entries: SearchedEntry[],
  ): Promise<Array<(Match & Told) | null>> =>
    workInOrders(thread, project_id, 'searchMatches', entries, lengthOf, terms)
}

export function recalledTextsOnThread(thread: WorkThread) {
  return (
    project_id: string,
    question: Question,
    entries: SearchedEntry[],
  ): Promise<Array<(TextOfEntry & Told) | null>> =>
    workInOrders(thread, project_id, 'recalledTexts', entries, lengthOf, question)
}

export function scoresOnThread(thread: WorkThread) {
  return (project_id: string, answer: string, ...more: [Question, labels: string[], most: number]) =>
    workAtOnce(thread, project_id, 'scoreRuns', answer.length, answer, ...more)
}
