import { type Delta, hasOutcomeEvidence, oneLine, skillName } from '@annals/learning'
import { newId } from '../../ids.js'
import type { Database, Queryable } from '../../postgres/database.js'
import { addVersion } from '../statements/statements.js'
import { DURABLE, END_ANSWERS } from './call_queries.js'
import { APPLY_DELTA, LOCK_CITED_SESSIONS, SET_STATE } from './delta_queries.js'
import { LANE, READ_TASK_RUNS, SESSION_MOVES } from './lane_queries.js'

/** Sessions, or users in a space of the project, that make a statement active, or put one in doubt. */
const SUPPORT_MIN = 2

/** What a model made of a session, and how the space takes it. */
export interface Reflection {
  project_id: string
  space_id: string
  session_id: string
  /** All sessions that the model was shown. */
  session_ids: readonly string[]
  lane_until: string
  /** Up to where the session was read. */
  seq: number
  is_auto: boolean
  is_of_user: boolean
  deltas: readonly Delta[]
  /** The calls that led to them. */
  call_ids: readonly string[]
}

interface Touched {
  id: string
  kind: string
  state: string
  author: string
  marker: string | null
  supports: number
  contradicts: number
  supporters: number
  contradictors: number
}

/** Applies what a model made of a session, all of it and once. Not where another has the lane, or a session is gone. */
export function applyReflection(database: Database, reflection: Reflection): Promise<void> {
  const { project_id, space_id, session_id, session_ids, lane_until, call_ids } = reflection
  return database.transaction(async (connection) => {
    await connection.query(DURABLE, [])
    if ((await connection.query(LANE.lock, [project_id, space_id, lane_until])).length === 0) return
    const held = await connection.query(LOCK_CITED_SESSIONS, [project_id, session_ids])
    if (held.length < session_ids.length) return
    const ended = await connection.query(END_ANSWERS, [project_id, call_ids])
    const is_new = ended.length === call_ids.length
    for (const delta of is_new ? reflection.deltas : []) await applyDelta(connection, reflection, delta)
    const session = [project_id, space_id, session_id]
    await connection.query(SESSION_MOVES.complete, [...session, reflection.seq])
    await connection.query(SESSION_MOVES.wait, session)
  })
}

async function applyDelta(connection: Queryable, reflection: Reflection, delta: Delta): Promise<void> {
  const { project_id, space_id } = reflection
  const { kind, text, tool, cites } = delta.candidate
  const about = tool === null ? 'such tasks' : `the tool ${oneLine(tool)}`
  const made = {
    id: newId(),
    skill_id: newId(),
    skill: skillName(tool ?? 'general'),
    description: `What recorded sessions have shown about ${about}. Use it before calling the tool, and when a call fails.`,
    kind,
    text,
    marker: kind === 'procedure' ? tool : null,
  }
  const [row] = await connection.query(APPLY_DELTA.statement, [
    project_id,
    space_id,
    delta.action === 'add' ? null : delta.id,
    delta.action === 'contradict' ? '-' : '+',
    JSON.stringify(made),
    JSON.stringify(cites),
  ])
  if (row!.answer == null) return
  const statement = JSON.parse(row!.answer) as Touched
  const state = await nextState(connection, reflection, statement)
  if (state === undefined) return
  await connection.query(SET_STATE, [project_id, statement.id, state])
  const reason = state === 'active' ? 'Supported by several sessions.' : 'Contradicted by several sessions.'
  await addVersion(connection, project_id, statement.id, 'model', reason)
}

/** The state that a statement changes to, if it does. What rules or persons wrote never becomes active by itself. */
async function nextState(
  connection: Queryable,
  { project_id, space_id, is_auto, is_of_user }: Reflection,
  statement: Touched,
): Promise<'active' | 'conflict' | undefined> {
  const { state, author, kind, marker, supports, contradicts, supporters, contradictors } = statement
  const isEnough = (sessions: number, users: number) =>
    sessions >= SUPPORT_MIN && (is_of_user || users >= SUPPORT_MIN)
  if (state === 'active') return isEnough(contradicts, contradictors) ? 'conflict' : undefined
  if (!is_auto || state !== 'proposed' || author !== 'model' || contradicts > 0) return undefined
  if (!isEnough(supports, supporters)) return undefined
  if (kind !== 'procedure') return 'active'
  if (marker === null) return undefined
  const rows = await connection.query(READ_TASK_RUNS, [project_id, space_id, marker])
  const runs = rows.map(({ group, has_succeeded, follows }) => ({
    group: group!,
    has_succeeded: has_succeeded === 't',
    follows: follows === 't',
  }))
  return hasOutcomeEvidence(runs) ? 'active' : undefined
}
