import { type Consumer, leaveForLater, Unanswered } from '@annals/kits/changes/consumer.js'
import { switchConsumer } from '@annals/kits/changes/project_consumers.js'
import { type Background, each, Loop } from '@annals/kits/lifecycle/background.js'
import type { Kits } from '@annals/kits/module.js'
import { type Embeddings, EmbeddingsFailure, openEmbeddings } from '@annals/kits/outgoing/embeddings.js'
import { plainArray, textArray } from '@annals/kits/postgres/statement.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import { type WorkThread, workAtOnce, workInOrders } from '@annals/kits/threads/work_thread.js'
import { indexedLabel } from '@annals/messages/search'
import { happenedAt, searchedEntry } from '../search_consumer.js'
import { ERASE_VECTORS, FORGET_VECTORS } from '../search_queries.js'
import { lengthOf } from '../search_work.js'
import { ADD_VECTORS, FIND_PROJECTS_OF_VECTORS, SET_MODEL_OF_VECTORS } from './vector_queries.js'

const CONSUMER = 'vectors'
/** Two batches. */
const ENTRIES_MAX = 128
const POLL_MS = 10_000

/** Undefined where the operator names no model. */
export function embeddingsOf({ config, thread, metrics }: Kits): Embeddings | undefined {
  const embeddings = openEmbeddings(config, (owner, answer, count) =>
    workAtOnce(thread, owner, 'readEmbeddings', answer.length, answer, count),
  )
  if (embeddings) metrics.watchEmbeddings(embeddings)
  return embeddings
}

/** Makes vectors of entries. Nobody has to wait for a model but projects whose entries it has. */
export function vectorsConsumer(embeddings: Embeddings | undefined, thread: WorkThread): Consumer {
  return {
    name: CONSUMER,
    sessions_max: ENTRIES_MAX,
    readsEntries: true,
    entries_max: ENTRIES_MAX,
    restMs: () => embeddings?.restMs() ?? Number.POSITIVE_INFINITY,
    erase: [ERASE_VECTORS],
    forget: [FORGET_VECTORS],
    consume: async ({ project_id, sessions, signal }) => {
      const entries = sessions.flatMap(({ session_id, entries }) =>
        entries.map((entry) => ({ ...entry, session_id })),
      )
      if (entries.length === 0) return undefined
      const searched = entries.map(searchedEntry)
      const texts = await workInOrders(thread, project_id, 'embeddedTexts', searched, lengthOf)
      const { name, vectors } = await embeddings!.of(project_id, texts, signal).catch((error) => {
        throw error instanceof EmbeddingsFailure && error.is_away ? new Unanswered(error.message) : error
      })
      leaveForLater(sessions, vectors.length)
      const made = vectors.flatMap((vector, index) => (vector ? [{ ...entries[index]!, ...vector }] : []))
      const values = [
        plainArray(made.map(({ session_id }) => session_id)),
        plainArray(made.map(({ seq }) => seq)),
        plainArray(made.map(happenedAt)),
        textArray(made.map(({ type, role }) => indexedLabel(type, role))),
        plainArray(made.map(({ sketch }) => sketch)),
        textArray(made.map(({ values }) => values)),
      ]
      return async (connection) => {
        if ((await call(connection, ADD_VECTORS, project_id, name, ...values)) !== 'true')
          throw new Error('The vectors of the project are of another model.')
      }
    },
  }
}

/** Sees to it that projects that search have vectors of the model, and no others. What an older one made is made anew. */
export function keepVectors(
  { database, signal, ...more }: Background,
  embeddings: Embeddings | undefined,
): Loop {
  let seen: string | null | undefined
  const poll = async () => {
    const name = (await embeddings?.name(signal)) ?? null
    const found = await database.query(FIND_PROJECTS_OF_VECTORS, [name, name !== seen])
    await each(found, signal, ({ id, is_wanted }) =>
      database.transaction(async (connection) => {
        const model = is_wanted === 't' ? name : null
        if ((await connection.query(SET_MODEL_OF_VECTORS, [id!, model])).length === 0) return
        await switchConsumer({ database: connection, project_id: id! }, CONSUMER, model !== null && 'anew')
      }),
    )
    seen = name
  }
  return new Loop({
    ...more,
    signal,
    failure: 'vectors will be looked at again',
    poll,
    poll_ms: POLL_MS,
    first_ms: 0,
  })
}
