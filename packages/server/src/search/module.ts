import { ODD, ORPHAN } from '@annals/kits/lifecycle/table.js'
import type { Module } from '@annals/kits/module.js'
import { functionsIn } from '@annals/kits/postgres/stored_function.js'
import { FIND_ENTRIES } from './find_entries_queries.js'
import { FIND_RUNS_TO_RECALL } from './recall/recall_queries.js'
import { Refill } from './recall/refill.js'
import { searchConsumer } from './search_consumer.js'
import * as indexes from './search_queries.js'
import { wordsOnThread } from './search_work.js'
import * as vectors from './vectors/vector_queries.js'
import { embeddingsOf, keepVectors, vectorsConsumer } from './vectors/vectors.js'

const DERIVED = { counted: false, exported: false, is_derived: true } as const

export const SEARCH_MODULE: Module = {
  name: 'search',
  open: (kits) => {
    const { thread, background } = kits
    const embeddings = embeddingsOf(kits)
    return {
      routes: async () => (await import('./search_routes.js')).searchRoutes(kits, embeddings),
      consumers: [searchConsumer(wordsOnThread(thread)), vectorsConsumer(embeddings, thread)],
      background: () => {
        const loops = [new Refill(background, wordsOnThread(thread)), keepVectors(background, embeddings)]
        return { ended: () => Promise.all(loops.map((loop) => loop.ended())) }
      },
    }
  },
  functions: [FIND_ENTRIES, FIND_RUNS_TO_RECALL, ...functionsIn(indexes, vectors)],
  tables: [
    {
      ...DERIVED,
      name: 'search_entries',
      kind: 'search_entry',
      key: ['session_id', 'seq'],
      columns: { session_id: 'uuid', seq: 'bigint' },
      erased_with: 'session',
      checks: {
        search_entry_stray: {
          session: 't.session_id',
          place: "'search_entries, seq ' || t.seq",
          where: `NOT EXISTS (SELECT FROM entries e
            WHERE e.project_id = $1 AND e.session_id = t.session_id AND e.seq = t.seq AND e.created_at >= t.first_at OFFSET 0)
            OR NOT EXISTS (SELECT FROM entries e
              WHERE e.project_id = $1 AND e.session_id = t.session_id AND e.seq = t.last_seq AND e.created_at = t.last_at OFFSET 0)`,
          detail: "'the log does not have its entries up to seq ' || t.last_seq",
          means: 'the index of words has entries that the log does not have',
          todo: ORPHAN,
        },
        search_entry_misplaced: {
          session: 't.session_id',
          place: "'search_entries, seq ' || t.seq",
          where: `t.segment IS DISTINCT FROM (SELECT s.segment FROM search_segments s
            WHERE s.project_id = $1 AND s.begins_at <= t.last_at ORDER BY s.segment DESC LIMIT 1)`,
          detail:
            "concat('segment ', t.segment, ' is not that of ', to_json(t.first_at), ' to ', to_json(t.last_at))",
          means: 'searches may show an entry at a wrong place, or twice',
          todo: ODD,
        },
      },
    },
    {
      ...DERIVED,
      name: 'search_vectors',
      kind: 'search_vector',
      key: ['session_id', 'seq'],
      columns: { session_id: 'uuid', seq: 'bigint' },
      erased_with: 'session',
      checks: {
        search_vector_stray: {
          session: 't.session_id',
          place: "'search_vectors, seq ' || t.seq",
          where: `NOT EXISTS (SELECT FROM entries e
            WHERE e.project_id = $1 AND e.session_id = t.session_id AND e.seq = t.seq OFFSET 0)`,
          detail: "'the log does not have its entry'",
          means: 'there is a vector of an entry that the log does not have',
          todo: ORPHAN,
        },
      },
    },
    {
      ...DERIVED,
      name: 'search_segments',
      kind: 'search_segment',
      key: ['segment'],
      columns: { segment: 'integer', begins_at: 'time' },
      erased_with: 'project',
      checks: {},
    },
    {
      ...DERIVED,
      name: 'search_refills',
      kind: 'search_refill',
      key: ['session_id'],
      columns: { session_id: 'uuid' },
      erased_with: 'project',
      checks: {},
    },
  ],
}
