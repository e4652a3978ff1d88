import type { Embeddings } from '@annals/kits/outgoing/embeddings.js'
import { textArray } from '@annals/kits/postgres/statement.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import type { ScoredEntry } from '@annals/recall'
import type { Finding, Search, scopesOf } from '../find_entries.js'
import { FIND_NEAR_ENTRIES } from './vector_queries.js'

/** `filling`: some of what was there at first has no vector yet. */
export type VectorsState = 'used' | 'filling' | 'unavailable'

export interface Near {
  /** The nearest first. */
  places: ScoredEntry[]
  vectors: VectorsState
}

/** Finds entries whose vectors are near. Never fails: words alone answer a question, too. */
export type FindNear = (
  asked: Pick<Finding, 'database' | 'state'> & { search: Omit<Search, 'terms'> },
  narrowed: NonNullable<Awaited<ReturnType<typeof scopesOf>>>,
  labels: readonly string[],
  most: number,
) => Promise<Near>

export function nearQuestion(embeddings: Embeddings, question: string): FindNear {
  return async ({ database, search, state }, { sessions, configs }, labels, most) => {
    const { project_id, from, to } = search
    const asked = await embeddings.ofQuestion(project_id, question)
    if (!asked) return { places: [], vectors: 'unavailable' }
    const { name, vector } = asked
    const answer = await call(
      database,
      FIND_NEAR_ENTRIES,
      ...[project_id, name, vector.values, vector.sketch, state.user_id, sessions, configs],
      labels.length === 0 ? null : textArray(labels),
      ...[from ?? '-infinity', to ?? 'infinity', most],
    ).catch(() => undefined)
    if (!answer) return { places: [], vectors: 'unavailable' }
    const { near, is_filled } = JSON.parse(answer) as { near: [string, number][]; is_filled: boolean }
    const places = near.map(([session_id, seq]) => ({ session_id, seq, score: 0 }))
    return { places, vectors: is_filled ? 'used' : 'filling' }
  }
}
