import { setImmediate as breathe } from 'node:timers/promises'
import {
  curatePrompt,
  type Delta,
  deltasOf,
  hasSucceeded,
  type KnownStatement,
  type Outcome,
  type PassedStatement,
  passGates,
  reflectPrompt,
  type ShownRun,
  showRun,
} from '@annals/learning'
import { logEntries } from '../../log/log_entries.js'
import type { Database, Row, Tenant } from '../../postgres/database.js'
import { applyReflection } from './apply_deltas.js'
import {
  FIND_CONTRAST,
  READ_ENTRIES_FOR_MODEL,
  READ_KNOWN_STATEMENTS,
  SESSION_MOVES,
} from './lane_queries.js'
import { type Asking, askOnce } from './ledger.js'

/** Of what a model says at once. */
const CANDIDATES_MAX = 5

/** The statements that may say what candidates say. Others get their turns meanwhile: a space has megabytes of them. */
export type FindNearest = (
  project_id: string,
  candidates: PassedStatement[],
  known: KnownStatement[],
) => Promise<KnownStatement[]>

export interface Turn extends Omit<Asking, 'session_ids'> {
  session_id: string
  /** Up to where it is read. */
  seq: number
  outcome: Outcome
  is_auto: boolean
  is_of_user: boolean
  nearest: FindNearest
  /** Keeps the lane for another call, and gives its mark. @throws SourceGone where another has it */
  keepLane(): Promise<string>
}

/** Has a model reflect on a session, and applies what comes of it. @throws ModelFailure, BudgetExhausted, SourceGone */
export async function reflectOnSession(turn: Turn): Promise<void> {
  const { database, project_id, space_id, session_id, seq, is_auto, is_of_user } = turn
  const runs = await readRuns(turn)
  const session_ids = runs.map((run) => run.session_id)
  const asking = { ...turn, session_ids }
  const reflection = { project_id, space_id, session_id, session_ids, seq, is_auto, is_of_user }
  const apply = async (deltas: readonly Delta[], call_ids: readonly string[]) =>
    applyReflection(database, { ...reflection, lane_until: await turn.keepLane(), deltas, call_ids })
  if (runs[0]!.entries.length === 0) return apply([], [])
  await turn.keepLane()
  const reflected = await askOnce(asking, 'reflect', reflectPrompt(runs))
  if (!reflected) return apply([], [])
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
        outcomeOfRow(other),
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
  const run = showRun(session_id, outcome, logEntries(rows))
  await breathe()
  return run
}

/** Of the stored outcome, what has the type that it should: an import may bring anything. */
export function outcomeOfRow({ outcome }: Row): Outcome {
  const { reward, group } = JSON.parse(outcome!) as Record<string, unknown>
  return {
    ...(typeof reward === 'number' && { reward }),
    ...(typeof group === 'string' && { group }),
  }
}

async function readNear(
  { database, project_id, space_id, nearest }: Turn,
  candidates: PassedStatement[],
): Promise<KnownStatement[]> {
  const known = await database.query(READ_KNOWN_STATEMENTS, [project_id, space_id])
  return nearest(project_id, candidates, known as unknown as KnownStatement[])
}
