import type { Match, SearchedEntry, SearchTerm } from '@annals/messages/search'
import type { Row } from '../../postgres/database.js'
import { workAtOnce, workInOrders } from './work_in_orders.js'
import type { WorkThread } from './work_thread.js'

const lengthOf = ({ data }: SearchedEntry) => data.length

/** Gives the words of entries. */
export function wordsOnThread(thread: WorkThread) {
  return (project_id: string, entries: SearchedEntry[]): Promise<string[]> =>
    workInOrders(thread, project_id, 'indexedWords', entries, lengthOf)
}

/** Says how entries match. */
export function matchesOnThread(thread: WorkThread) {
  return (project_id: string, terms: SearchTerm[], entries: SearchedEntry[]): Promise<Array<Match | null>> =>
    workInOrders(thread, project_id, 'searchMatches', entries, lengthOf, terms)
}

/** Finds errors of tools in rows of entries. */
export function findErrorsOnThread(thread: WorkThread) {
  return (project_id: string, rows: Row[], known_seq: number) => {
    const length = rows.reduce((sum, { data }) => sum + (data?.length ?? 0), 0)
    return workAtOnce(thread, project_id, 'findErrors', length, rows, known_seq)
  }
}
