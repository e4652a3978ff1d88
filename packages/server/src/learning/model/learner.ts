import { FairSemaphore } from '@annals/kits/fairness/fair_queue.js'
import { type Background, insist, Loop } from '@annals/kits/lifecycle/background.js'
import { type ModelAddress, ModelFailure, storedOutcome } from '@annals/learning'
import { FIND_DUE_SUMMARIES } from '../compaction/auto_compaction_queries.js'
import type { SummaryParts, SummaryTask } from '../compaction/summary_turn.js'
import {
  BEGIN_SESSION,
  FIND_DUE_SPACES,
  FIND_PROJECTS_WITH_MODEL,
  LANE,
  READ_LEARNING,
  SESSION_MOVES,
} from './lane_queries.js'
import { BudgetExhausted, SourceGone } from './ledger.js'
import type { AskModel } from './openai_model.js'
import { type FindNearest, reflectOnSession } from './reflect_session.js'

const POLL_MS = 2_000
/** Sessions of a space before it is looked for others. */
const SESSIONS_A_TURN = 20
/** Most spaces processed at once; a hung model loses its place. */
const SPACES_MAX = 16
const HANGS_MS = 2_000
/** Spaces with work under way, whether they have a place or wait for a model: of a project, and of all. */
const RUNNING_OF_PROJECT_MAX = 4
const RUNNING_MAX = 256
/** Work between two calls takes no longer. */
const LANE_MARGIN_S = 5
const ATTEMPTS_MAX = 3
const RETRY_S = { first: 4, max: 600 }
const BUDGET_S = 60

export interface LearnerOptions extends Background {
  ask: AskModel
  nearest: FindNearest
  ms_max: number
  /** The model of projects without one of their own. */
  address: ModelAddress | undefined
  project_tokens_max: number
  /** Has the model write the summary of a session. */
  summarise(
    parts: Omit<SummaryParts, 'thread' | 'memory' | 'appender' | 'usage'>,
    task: SummaryTask,
  ): Promise<void>
  poll_ms?: number
}

interface Space {
  project_id: string
  space_id: string
}

/** A space with sessions to reflect on, or a session that waits for a summary. */
type Task = Space | { project_id: string; session_id: string }

/**
 * Has models reflect on sessions, and write summaries of them, at each node.
 *
 *   the poll ──▶ it is a session's turn ──▶ this node takes the lane of its space ──▶ its sessions, one after the other
 *   ──▶ reflect ──▶ gates ──▶ curate ──▶ applied in one transaction ──▶ the lane is left
 *
 * A session that waits for a summary has a lane of its own: see compaction/summary_turn.ts.
 * A lane ends by the database's clock, so a node that was killed leaves its work to others. No connection is held while
 * a model thinks, and no place for long. If it is away, the space waits, longer each time.
 */
export class Learner {
  private readonly loop: Loop<Task>
  /** Spaces and sessions whose model was away: how often in a row, and performance.now() until which they wait. */
  private readonly waits = new Map<string, { times: number; until: number }>()
  private readonly places = new FairSemaphore({
    places_max: SPACES_MAX,
    wait_ms_max: POLL_MS,
    refusal: () => new SourceGone(),
  })

  constructor(private readonly options: LearnerOptions) {
    const { poll_ms = POLL_MS } = options
    this.loop = new Loop<Task>({
      ...options,
      failure: 'learning will be tried again',
      poll: () => this.look(),
      poll_ms,
      run: (task) => this.work(task),
    })
  }

  /** Resolves when nothing is under way any more, which `signal` brings about. */
  ended(): Promise<void> {
    return this.loop.ended()
  }

  private async look(): Promise<void> {
    const { database, address } = this.options
    const own = await database.query(FIND_PROJECTS_WITH_MODEL, [])
    if (!address && own.length === 0) return
    const projects = address ? null : own.map(({ id }) => id!)
    const under_way = new Map<string, number>()
    const count = (project_id: string) => {
      const spaces = (under_way.get(project_id) ?? 0) + 1
      under_way.set(project_id, spaces)
      return spaces
    }
    const { tasks } = this.loop
    for (const { project_id } of tasks.values()) count(project_id)
    const known = [...tasks.keys(), ...this.waitingTasks()]
    const due = [projects, known, RUNNING_OF_PROJECT_MAX, RUNNING_MAX]
    let room = RUNNING_MAX - tasks.size
    const plan = (id: string, task: Task) => {
      if (room <= 0 || count(task.project_id) > RUNNING_OF_PROJECT_MAX) return
      room -= 1
      this.loop.plan(id, task, 0)
    }
    // An agent waits for the next context; nobody waits for learning.
    for (const { project_id, session_id } of await database.query(FIND_DUE_SUMMARIES, due))
      plan(session_id!, { project_id: project_id!, session_id: session_id! })
    for (const { project_id, learning_space_id } of await database.query(FIND_DUE_SPACES, due))
      plan(learning_space_id!, { project_id: project_id!, space_id: learning_space_id! })
  }

  private waitingTasks(): string[] {
    const now = performance.now()
    for (const [id, { until }] of this.waits) if (until + RETRY_S.max * 1_000 < now) this.waits.delete(id)
    return [...this.waits].filter(([, { until }]) => until > now).map(([id]) => id)
  }

  private async work(task: Task): Promise<void> {
    try {
      await this.places.run(task.project_id, () =>
        'space_id' in task ? this.takeLane(task) : this.summarise(task),
      )
    } catch (error) {
      if (!(error instanceof SourceGone)) throw error
    }
  }

  /** Asks for a project that has a place, which it loses while a model hangs. */
  private askFor(project_id: string): AskModel {
    return async (address, request) => {
      let has_place = true
      const hangs = setTimeout(() => {
        has_place = false
        this.places.giveBack(project_id, 1)
      }, HANGS_MS)
      try {
        return await this.options.ask(address, request)
      } finally {
        clearTimeout(hangs)
        // The rest is short, and must not wait: its lane ends.
        if (!has_place) this.places.take(project_id, 1)
      }
    }
  }

  private async summarise({ project_id, session_id }: { project_id: string; session_id: string }) {
    const { address, project_tokens_max, ms_max, database, signal } = this.options
    const lane_s = ms_max / 1_000 + LANE_MARGIN_S
    await this.options.summarise(
      { database, signal, address, project_tokens_max, lane_s },
      {
        ...{ project_id, session_id, ask: this.askFor(project_id) },
        failureOf: (error, attempts) => {
          const failure = this.failureOf(error, session_id, attempts)
          if (failure) this.loop.warn(error, { project_id, session_id })
          return failure
        },
      },
    )
  }

  private async takeLane(space: Space): Promise<void> {
    const { database, signal } = this.options
    const lane_s = this.options.ms_max / 1_000 + LANE_MARGIN_S
    const owned = [space.project_id, space.space_id]
    const [taken] = await database.query(LANE.take, [...owned, lane_s])
    if (!taken) return
    let lane_until = taken.lane_until!
    const keepLane = async () => {
      const [kept] = await database.query(LANE.keep, [...owned, lane_until, lane_s])
      if (!kept) throw new SourceGone()
      lane_until = kept.lane_until!
      return lane_until
    }
    try {
      for (let sessions = 0; sessions < SESSIONS_A_TURN && !signal.aborted; sessions++)
        if (!(await this.takeTurn(space, keepLane))) break
    } finally {
      // A lane that is not left keeps the space waiting until it ends by itself.
      await insist(() => database.query(LANE.leave, [...owned, lane_until]), lane_s * 1_000, signal)
    }
  }

  /** Returns whether the next session may follow. */
  private async takeTurn({ project_id, space_id }: Space, keepLane: () => Promise<string>): Promise<boolean> {
    const { database, address, project_tokens_max } = this.options
    const owned = [project_id, space_id]
    const [space] = await database.query(READ_LEARNING, owned)
    const model: ModelAddress | undefined = space?.model ? JSON.parse(space.model) : address
    if (!space || !model) return false
    const is_off = space.mode === 'off'
    const [session] = await database.query(BEGIN_SESSION, [...owned, is_off ? 'completed' : 'distilling'])
    if (!session) return false
    const { session_id, learnt_seq, attempts } = session
    if (is_off) {
      await database.query(SESSION_MOVES.fail, [...owned, session_id!, 'completed', null, 0, null])
      return true
    }
    try {
      await reflectOnSession({
        ...this.options,
        ask: this.askFor(project_id),
        address: model,
        project_id,
        space_id,
        session_id: session_id!,
        seq: Number(learnt_seq),
        outcome: storedOutcome(session.outcome!),
        outcome_read: session.outcome!,
        is_auto: space.mode === 'auto',
        is_of_user: space.user_id !== null,
        space_max: Number(space.space_max ?? Number.MAX_SAFE_INTEGER),
        project_max: Number(space.project_max ?? project_tokens_max),
        keepLane,
      })
      this.waits.delete(space_id)
      return true
    } catch (error) {
      const failure = this.failureOf(error, space_id, Number(attempts))
      if (!failure) throw error
      const { status, next_s, may_go_on } = failure
      const failed = [status, (error as Error).message, failure.attempts, next_s]
      await database.query(SESSION_MOVES.fail, [...owned, session_id!, ...failed])
      return may_go_on
    }
  }

  /**
   * The next step after a failure that is shown to the project. One of the input is tried three times, then no more; while the
   * model is away, it is tried on and on, with growing pauses.
   */
  private failureOf(error: unknown, id: string, attempts: number) {
    if (error instanceof BudgetExhausted)
      return { status: 'queued', attempts, next_s: BUDGET_S, may_go_on: false }
    if (!(error instanceof ModelFailure)) return undefined
    if (error.is_away) {
      const times = (this.waits.get(id)?.times ?? 0) + 1
      const next_s = Math.min(RETRY_S.first * 2 ** Math.min(times - 1, 20), RETRY_S.max)
      this.waits.set(id, { times, until: performance.now() + next_s * 1_000 })
      return { status: times < ATTEMPTS_MAX ? 'queued' : 'failed', attempts, next_s, may_go_on: false }
    }
    const is_last = attempts + 1 >= ATTEMPTS_MAX
    return {
      status: is_last ? 'failed' : 'queued',
      attempts: attempts + 1,
      next_s: is_last ? null : RETRY_S.first * 2 ** attempts,
      may_go_on: true,
    }
  }
}
