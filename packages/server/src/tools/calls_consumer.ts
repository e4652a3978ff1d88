import type { Consumer } from '@annals/kits/changes/consumer.js'
import type { Queryable } from '@annals/kits/postgres/database.js'
import { plainArray } from '@annals/kits/postgres/statement.js'
import type { IndexState } from '@annals/messages/session'
import { CALLS_CONSUMER, ERASE_CALLS, FORGET_CALLS, INDEX_CALLS, READ_INDEX_STATE } from './tool_queries.js'
import type { IndexCalls } from './tool_work.js'

/** Records tool calls. From each cursor, it continues with the session's rows in the tables. */
export function callsConsumer(database: Queryable, indexCalls: IndexCalls): Consumer {
  return {
    name: CALLS_CONSUMER,
    // As a round reads 2,000 entries.
    sessions_max: 100,
    readsEntries: true,
    erase: ERASE_CALLS,
    forget: FORGET_CALLS,
    consume: async ({ project_id, sessions }) => {
      const read: Array<{ session_id: string; piece: Awaited<ReturnType<IndexCalls>> }> = []
      for (const { session_id, after_seq, entries } of sessions) {
        if (entries.length === 0) continue
        const state = await readState(database, project_id, session_id, after_seq)
        read.push({ session_id, piece: await indexCalls(project_id, state, entries) })
      }
      return async (connection) => {
        for (const { session_id, piece } of read) {
          const { calls, retracted, question, question_seq, stream } = piece
          const owned = [project_id, session_id]
          if (retracted.length > 0)
            await connection.query(INDEX_CALLS.retract, [...owned, plainArray(retracted)])
          if (calls.length > 0) await connection.query(INDEX_CALLS.calls, [...owned, JSON.stringify(calls)])
          await connection.query(INDEX_CALLS.reading, [...owned, question, question_seq, stream])
        }
      }
    },
  }
}

async function readState(
  database: Queryable,
  project_id: string,
  session_id: string,
  last_seq: number,
): Promise<IndexState> {
  const [row] = last_seq === 0 ? [] : await database.query(READ_INDEX_STATE, [project_id, session_id])
  const { question = null, question_seq = null, stream = '', calls = '[]' } = row ?? {}
  return {
    last_seq,
    calls: JSON.parse(calls!),
    question: question ?? null,
    question_seq: question_seq === null ? null : Number(question_seq),
    stream: stream ?? '',
  }
}
