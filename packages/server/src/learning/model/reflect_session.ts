import { setImmediate as breathe } from 'node:timers/promises'
import { newId } from '@annals/kits/ids.js'
import type { Database, Queryable, Tenant } from '@annals/kits/postgres/database.js'
import {
  curatePrompt,
  type Delta,
  deltasOf,
  hasOutcomeEvidence,
  hasSucceeded,
  type KnownStatement,
  nextState,
  type Outcome,
  type PassedStatement,
  passGates,
  reflectPrompt,
  type ShownRun,
  showRun,
  statementOf,
  storedOutcome,
  type TouchedStatement,
  wordsHeard,
} from '@annals/learning'
import { logEntries, unreadSeqs } from '../../log/log_entries.js'
import { addVersion } from '../statements/statements.js'
import { APPLY_DELTA, DURABLE, END_ANSWERS, LOCK_CITED_SESSIONS, SET_STATE } from './call_queries.js'
import {
  FIND_CONTRAST,
  LANE,
  READ_ENTRIES_FOR_MODEL,
  READ_KNOWN_STATEMENTS,
  READ_TASK_RUNS,
  SESSION_MOVES,
  seqsBetween,
} from './lane_queries.js'
import { type Asking, askOnce } from './ledger.js'

/** Most candidates in one answer of a model. */
const CANDIDATES_MAX = 5

/** Statements that may repeat a candidate. Lets others take turns: a space has megabytes of statements. */
export type FindNearest = (
  project_id: string,
  candidates: PassedStatement[],
  known: KnownStatement[],
) => Promise<KnownStatement[]>

export interface Turn extends Omit<Asking, 'session_ids'> {
  session_id: string
  seq: number
  outcome: Outcome
  /** The same as it was stored when the turn began, as JSON. */
  outcome_read: string
  is_auto: boolean
  is_of_user: boolean
  nearest: FindNearest
  /** Keeps the lane for another call, and returns its mark. @throws SourceGone where another has it */
  keepLane(): Promise<string>
}

/** Has a model reflect on a session, and applies what comes of it. @throws ModelFailure, BudgetExhausted, SourceGone */
export async function reflectOnSession(turn: Turn): Promise<void> {
  const { database, project_id, space_id, session_id, seq, outcome_read, is_auto, is_of_user } = turn
  const runs = await readRuns(turn)
  const session_ids = runs.map((run) => run.session_id)
  const asking = { ...turn, session_ids }
  const of = { project_id, space_id, session_id, session_ids }
  const reflection = { ...of, seq, outcome_read, is_auto, is_of_user }
  const apply = async (deltas: readonly Delta[], call_ids: readonly string[]) =>
    applyReflection(database, { ...reflection, lane_until: await turn.keepLane(), deltas, call_ids })
  if (runs[0]!.entries.length === 0) return apply([], [])
  await turn.keepLane()
  const reflected = await askOnce(asking, 'reflect', reflectPrompt(runs))
  if (!reflected) return apply([], [])
  if (reflected.answer.statements.length > 0) {
    // Of long entries this takes long: others get their turns in between.
    for (const entry of runs.flatMap(({ heard }) => heard)) {
      wordsHeard(entry)
      await breathe()
    }
  }
  const candidates = reflected.answer.statements
    .slice(0, CANDIDATES_MAX)
    .map((candidate) => passGates(candidate, runs, { is_of_user }))
    .filter((gated): gated is PassedStatement => typeof gated === 'object')
  const near = candidates.length > 0 ? await readNear(turn, candidates) : []
  if (near.length === 0) return apply(deltasOf(candidates, [], undefined), [reflected.call_id])
  await turn.keepLane()
  await database.query(SESSION_MOVES.status, [project_id, space_id, session_id, 'skill_writing'])
  const curated = await askOnce(asking, 'curate', curatePrompt(candidates, near))
  const decisions = curated?.answer.decisions ?? []
  const call_ids = [reflected.call_id, ...(curated ? [curated.call_id] : [])]
  return apply(deltasOf(candidates, near, decisions), call_ids)
}

/** The session, and a run of the same task that ended otherwise, if there is one. */
async function readRuns({ database, project_id, space_id, session_id, seq, outcome }: Turn) {
  const runs = [await readRun({ database, project_id }, session_id, seq, outcome)]
  const success = hasSucceeded(outcome)
  if (outcome.group === undefined || success === undefined) return runs
  const task = [project_id, space_id, session_id, outcome.group, success]
  const [other] = await database.query(FIND_CONTRAST, task)
  if (other)
    runs.push(
      await readRun(
        { database, project_id },
        other.session_id!,
        Number(other.learnt_seq),
        storedOutcome(other.outcome!),
      ),
    )
  return runs
}

async function readRun(
  { database, project_id }: Tenant<Database>,
  session_id: string,
  seq: number,
  outcome: Outcome,
): Promise<ShownRun> {
  const rows = await database.query(READ_ENTRIES_FOR_MODEL, [project_id, session_id, seq])
  const unread = [...unreadSeqs(rows), ...seqsBetween(seq)].sort((a, b) => a - b)
  const run = showRun(session_id, outcome, logEntries(rows), unread)
  await breathe()
  return run
}

async function readNear(
  { database, project_id, space_id, nearest }: Turn,
  candidates: PassedStatement[],
): Promise<KnownStatement[]> {
  const known = await database.query(READ_KNOWN_STATEMENTS, [project_id, space_id])
  return nearest(project_id, candidates, known as unknown as KnownStatement[])
}

interface Reflection
  extends Pick<
    Turn,
    'project_id' | 'space_id' | 'session_id' | 'seq' | 'outcome_read' | 'is_auto' | 'is_of_user'
  > {
  session_ids: readonly string[]
  lane_until: string
  deltas: readonly Delta[]
  call_ids: readonly string[]
}

/** Applies what a model made of a session, all of it and once. Not where another has the lane, or a session is gone. */
function applyReflection(database: Database, reflection: Reflection): Promise<void> {
  const { project_id, space_id, session_id, session_ids, lane_until, call_ids } = reflection
  return database.transaction(async (connection) => {
    await connection.query(DURABLE, [])
    // In the order in which deleting a session takes them.
    const held = await connection.query(LOCK_CITED_SESSIONS, [project_id, session_ids])
    if (held.length < session_ids.length) return
    if ((await connection.query(LANE.lock, [project_id, space_id, lane_until])).length === 0) return
    const ended = await connection.query(END_ANSWERS, [project_id, call_ids])
    // The reflection: a curator's answer may have been applied for another session.
    const is_new = call_ids.length > 0 && ended.some(({ id }) => id === call_ids[0])
    for (const delta of is_new ? reflection.deltas : []) await applyDelta(connection, reflection, delta)
    const session = [project_id, space_id, session_id]
    await connection.query(SESSION_MOVES.complete, [...session, reflection.seq])
    await connection.query(SESSION_MOVES.wait, [...session, reflection.outcome_read])
  })
}

async function applyDelta(connection: Queryable, reflection: Reflection, delta: Delta): Promise<void> {
  const { project_id, space_id, session_ids } = reflection
  const made = { id: newId(), skill_id: newId(), ...statementOf(delta.candidate, session_ids) }
  const [row] = await connection.query(APPLY_DELTA.statement, [
    project_id,
    space_id,
    delta.action === 'add' ? null : delta.id,
    delta.action === 'contradict' ? '-' : '+',
    JSON.stringify(made),
    JSON.stringify(delta.candidate.cites),
  ])
  if (row!.answer == null) return
  const statement = JSON.parse(row!.answer) as TouchedStatement & { id: string }
  const next = nextState(statement, reflection)
  if (next === undefined) return
  if (typeof next === 'object' && !(await isEvident(connection, reflection, next.active_if_evident))) return
  const state = next === 'conflict' ? next : 'active'
  await connection.query(SET_STATE, [project_id, statement.id, state])
  const reason = state === 'active' ? 'Supported by several sessions.' : 'Contradicted by several sessions.'
  await addVersion(connection, project_id, statement.id, 'model', reason)
}

/** Whether runs that called a tool succeeded more often. */
async function isEvident(connection: Queryable, { project_id, space_id }: Reflection, tool: string) {
  const rows = await connection.query(READ_TASK_RUNS, [project_id, space_id, tool])
  const runs = rows.map(({ group, has_succeeded, follows }) => ({
    group: group!,
    has_succeeded: has_succeeded === 't',
    follows: follows === 't',
  }))
  return hasOutcomeEvidence(runs)
}
