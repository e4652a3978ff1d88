import { type WorkThread, workAtOnce, workInOrders } from '@annals/kits/threads/work_thread.js'
import type { Match, SearchedEntry, SearchTerm, Told } from '@annals/messages/search'
import {
  embeddedTexts,
  indexedWords,
  type Question,
  readEmbeddings,
  recalledTexts,
  scoreRuns,
  searchMatches,
  type TextOfEntry,
} from '@annals/recall'

export const SEARCH_WORK = {
  indexedWords,
  searchMatches,
  scoreRuns,
  recalledTexts,
  embeddedTexts,
  readEmbeddings,
}

type SearchWork = typeof SEARCH_WORK

declare module '@annals/kits/threads/work_thread.js' {
  interface ThreadWork extends SearchWork {}
}

/** To look for words in a text costs several times what other work on as many characters does. */
const COST = 4
export const lengthOf = ({ data }: SearchedEntry) => COST * data.length

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

/** Sessions often begin with the same instructions: each text is processed once. */
export function recalledTextsOnThread(thread: WorkThread) {
  return async (
    project_id: string,
    question: Question,
    entries: SearchedEntry[],
  ): Promise<Array<(TextOfEntry & Told) | null>> => {
    const keys = entries.map(({ type, format, data }) => `${type} ${format} ${data}`)
    const different = new Map(keys.map((key, index) => [key, entries[index]!]))
    const values = [...different.values()]
    const texts = await workInOrders(thread, project_id, 'recalledTexts', values, lengthOf, question)
    const found = new Map([...different.keys()].map((key, index) => [key, texts[index]!]))
    return keys.map((key) => found.get(key)!)
  }
}

export function scoresOnThread(thread: WorkThread) {
  return (
    project_id: string,
    answer: string,
    words: readonly SharedArrayBuffer[],
    ...more: [Question, labels: string[], most: number]
  ) => {
    const bytes = words.reduce((sum, { byteLength }) => sum + byteLength, answer.length)
    return workAtOnce(thread, project_id, 'scoreRuns', bytes, answer, words, ...more)
  }
}
