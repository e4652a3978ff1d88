import type { Consumer } from '@annals/kits/changes/consumer.js'
import { newId } from '@annals/kits/ids.js'
import type { Queryable, Row } from '@annals/kits/postgres/database.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import { outcomeOf, type RuleFindings, skillOf } from '@annals/learning'
import { LEARNING_CONSUMER } from '../sessions/space_session_queries.js'
import { LEARN_BY_RULES, LOCK_LEARNING_SPACES, READ_ENTRIES_FOR_RULES } from './rule_queries.js'

/** Most entries that rules read at once. */
const PIECE = { entries: 500, bytes: 256 * 1024 }

/** Applies rules to entries after a seq. It may take the work elsewhere: entries are of any size. */
export type FindErrors = (project_id: string, rows: Row[], known_seq: number) => Promise<RuleFindings>

interface Learner {
  session_id: string
  spaces: { id: string; learnt_seq: number; outcome: string | null }[]
  last_seq: number
  has_model: boolean
}

/**
 * Reads the sessions that spaces learn from, as they grow, and stores what rules find. It has no cursor but that of
 * each space, and writes a finding once however often it reads it. `has_model`: projects have one unless they say otherwise.
 */
export function learnByRules(has_model: boolean, findErrors: FindErrors): Consumer {
  return {
    name: LEARNING_CONSUMER,
    sessions_max: 20,
    readsEntries: false,
    isBehind: `EXISTS (SELECT FROM space_sessions x
      WHERE x.project_id = $1 AND x.session_id = h.session_id AND (x.learnt_seq < h.last_seq OR x.due_at IS NULL AND x.status NOT IN ('completed', 'failed')))`,
    erase: [],
    consume: async ({ project_id, sessions, signal }) => {
      const ids = sessions.map(({ session_id }) => session_id)
      return async (connection) => {
        const unread: string[] = []
        for (const learner of learnersOf(
          await connection.query(LOCK_LEARNING_SPACES, [project_id, ids, has_model]),
        )) {
          signal.throwIfAborted()
          if (!(await learn(connection, project_id, learner, findErrors))) unread.push(learner.session_id)
        }
        return unread
      }
    },
  }
}

function learnersOf(rows: Row[]): Iterable<Learner> {
  const learners = new Map<string, Learner>()
  for (const { session_id, learning_space_id, learnt_seq, last_seq, outcome, has_model } of rows) {
    const learner = learners.get(session_id!) ?? {
      session_id: session_id!,
      spaces: [],
      last_seq: Number(last_seq),
      has_model: has_model === 't',
    }
    learner.spaces.push({ id: learning_space_id!, learnt_seq: Number(learnt_seq), outcome: outcome! })
    learners.set(session_id!, learner)
  }
  return learners.values()
}

async function learn(
  connection: Queryable,
  project_id: string,
  { session_id, spaces, last_seq, has_model }: Learner,
  findErrors: FindErrors,
): Promise<boolean> {
  const known_seqs = spaces.map(({ learnt_seq }) => learnt_seq)
  const known_seq = Math.min(...known_seqs)
  // No farther than another space's position: that one has counted the entries before, with their outcomes.
  const next_seq = Math.min(...known_seqs.filter((seq) => seq > known_seq))
  const piece = [
    project_id,
    session_id,
    known_seq,
    Math.min(PIECE.entries, next_seq - known_seq),
    PIECE.bytes,
  ]
  const rows = await connection.query(READ_ENTRIES_FOR_RULES, piece)
  const seq = Math.max(Number(rows.at(-1)?.seq ?? 0), known_seq)
  const is_whole = seq >= last_seq
  const { errors, tools, outcome } = await findErrors(project_id, rows, known_seq)
  for (const space of spaces.filter(({ learnt_seq }) => learnt_seq <= seq)) {
    // With ids of each space's own.
    const findings = JSON.stringify(
      errors.map(({ tool, ...finding }) => ({
        ...finding,
        ...skillOf(tool),
        id: newId(),
        skill_id: newId(),
      })),
    )
    const told = space.outcome === null ? outcome : { ...JSON.parse(space.outcome), ...outcome }
    const told_json = told === undefined ? null : JSON.stringify(outcomeOf(told))
    const learnt = [space.id, session_id, seq, is_whole, findings, JSON.stringify(tools), told_json]
    await call(connection, LEARN_BY_RULES, project_id, ...learnt, has_model)
  }
  return is_whole
}
