import { AnnalsError } from '@annals/kits/errors.js'
import { type MemoryBudget, MemoryShare } from '@annals/kits/fairness/fair_queue.js'
import { insist } from '@annals/kits/lifecycle/background.js'
import { PIECE_BYTES_MAX } from '@annals/kits/limits.js'
import type { Database, Row } from '@annals/kits/postgres/database.js'
import { plainArray } from '@annals/kits/postgres/statement.js'
import type { WorkThread } from '@annals/kits/threads/work_thread.js'
import {
  compactPrompt,
  type ModelAddress,
  ModelFailure,
  type ShownStretch,
  summaryText,
} from '@annals/learning'
import type { Compaction } from '@annals/messages/context'
import { FIND_FENCES } from '../../log/append/append_queries.js'
import { type AppendParts, appendWithin } from '../../log/append_within_quota.js'
import { compactionEvent } from '../../log/compaction_event.js'
import { CallParted, type CompactionPlan, planCompaction } from '../../log/read/plan_compaction.js'
import { LogReader, readLastSeq } from '../../log/read/read_log.js'
import { ContextReader } from '../../log/render/context_reader.js'
import { contextMessages } from '../../log/render/page_renderer.js'
import { type Asking, askOnce, SourceGone } from '../model/ledger.js'
import type { AskModel } from '../model/openai_model.js'
import {
  END_SUMMARY_ANSWERS,
  GROWTH_SHARE,
  READ_AUTO_COMPACTION,
  READ_EXCEPTIONS_FOR_SUMMARY,
  READ_MESSAGES_FOR_SUMMARY,
  READ_TOKENS_BETWEEN,
  SUMMARY_TURN,
} from './auto_compaction_queries.js'

/** Of what a context may have, the newest turns that stay as they are have at most this part. */
const KEPT_SHARE = 2
/** Most characters of a summary: a quarter of the context's limit in tokens, and no more than a model writes at once. */
const SUMMARY_SHARE = 4
const SUMMARY_CHARS_MAX = 16_000
/** As received, as rows, as values and on the thread. */
const READ_BYTES = 4 * PIECE_BYTES_MAX

export interface SummaryParts extends AppendParts {
  database: Database
  thread: WorkThread
  memory: MemoryBudget
  address: ModelAddress | undefined
  project_tokens_max: number
  lane_s: number
  signal: AbortSignal
}

export interface SummaryTask {
  project_id: string
  session_id: string
  ask: AskModel
  /** The state after a failure; undefined if the model did not cause it. */
  failureOf(error: unknown, attempts: number): { attempts: number; next_s: number | null } | undefined
}

/**
 * Has the model write a summary of the beginning of a session, and appends it as a compaction; of a long one in several
 * turns, each of which goes on from the summary before. What is compacted is decided once and stored, and the answer is
 * stored before it is used: so whoever takes over after a kill asks for the same, and is not answered twice. The event has
 * the id of the call, and is appended only if nothing was retracted or compacted since it was planned.
 */
export async function takeSummaryTurn(parts: SummaryParts, task: SummaryTask): Promise<void> {
  const { database, lane_s, signal } = parts
  const owned = [task.project_id, task.session_id]
  const [taken] = await database.query(SUMMARY_TURN.take, [...owned, lane_s])
  if (!taken) return
  let held_until = taken.held_until!
  const holding = () => [...owned, held_until]
  const keep = async () => {
    const [kept] = await database.query(SUMMARY_TURN.keep, [...holding(), lane_s])
    if (!kept) throw new SourceGone()
    held_until = kept.held_until!
  }
  const decide = async ({ to_seq, except_seq }: Decided) => {
    const decided = await database.query(SUMMARY_TURN.decide, [...holding(), to_seq, except_seq])
    if (decided.length === 0) throw new SourceGone()
  }
  const written = async () => {
    await database.query(END_SUMMARY_ANSWERS, owned)
    await database.query(SUMMARY_TURN.written, holding())
  }
  const attempts = Number(taken.attempts)
  const memory = new MemoryShare(parts.memory, task.project_id)
  try {
    const turn = await beginTurn(parts, task, { memory, keep, decide, written })
    if (!turn) return
    const is_done = await turn.write(decidedOf(taken))
    if (is_done) {
      await database.query(END_SUMMARY_ANSWERS, owned)
      await database.query(SUMMARY_TURN.end, [...holding(), null])
    } else await database.query(SUMMARY_TURN.fail, [...holding(), 0, 0])
  } catch (error) {
    const failure = task.failureOf(asFailure(error), attempts)
    if (!failure) throw error
    await database.query(SUMMARY_TURN.fail, [...holding(), failure.attempts, failure.next_s])
  } finally {
    memory.close()
    await insist(() => database.query(SUMMARY_TURN.leave, holding()), lane_s * 1_000, signal)
  }
}

interface Decided {
  to_seq: number
  except_seq: number | null
}

function decidedOf({ to_seq, except_seq }: Row): Decided | undefined {
  if (to_seq == null) return undefined
  return { to_seq: Number(to_seq), except_seq: except_seq == null ? null : Number(except_seq) }
}

/** A refusal of the log, such as of a quota, is tried as often as an answer that cannot be used. */
function asFailure(error: unknown): unknown {
  if (!(error instanceof AnnalsError)) return error
  if (error.error === 'session_not_found') return new SourceGone()
  return ['overloaded', 'unavailable'].includes(error.error) ? error : new ModelFailure(error.message, false)
}

interface Held {
  memory: MemoryShare
  keep(): Promise<void>
  decide(decided: Decided): Promise<void>
  written(): Promise<void>
}

async function beginTurn(parts: SummaryParts, task: SummaryTask, held: Held) {
  const [project] = await parts.database.query(READ_AUTO_COMPACTION, [task.project_id])
  const model: ModelAddress | undefined = project?.model ? JSON.parse(project.model) : parts.address
  if (!project || project.tokens_max == null || !model) return undefined
  return new SummaryTurn(parts, task, held, {
    model,
    tokens_max: Number(project.tokens_max),
    tokens_a_day: Number(project.tokens_a_day ?? parts.project_tokens_max),
    max_bytes: project.max_bytes == null ? undefined : Number(project.max_bytes),
    proof: project.proof == null ? undefined : project.proof === 't',
  })
}

interface Project {
  model: ModelAddress
  tokens_max: number
  tokens_a_day: number
  max_bytes: number | undefined
  proof: boolean | undefined
}

/** The part of a session that one turn compacts, and the text that the model is shown. */
interface Part {
  plan: CompactionPlan
  stretch: Stretch
}

type Stretch = ShownStretch & { earlier: string[] }

class SummaryTurn {
  constructor(
    private readonly parts: SummaryParts,
    private readonly task: SummaryTask,
    private readonly held: Held,
    private readonly project: Project,
  ) {}

  /** Returns whether all that was decided is done. */
  async write(known: Decided | undefined): Promise<boolean> {
    const { database } = this.parts
    const { project_id, session_id } = this.task
    await readLastSeq(database, project_id, session_id)
    await this.held.memory.hold(READ_BYTES)
    const { compaction } = await new LogReader(database, this.task).readInstructions(true)
    const decided = known ?? (await this.decide(compaction?.to_seq ?? 0))
    const part = decided && (await this.readPart(decided, compaction))
    if (!part) return true
    await this.held.keep()
    const { tokens_max, model, tokens_a_day } = this.project
    const chars_max = Math.min(Math.floor(tokens_max / SUMMARY_SHARE), SUMMARY_CHARS_MAX)
    const asking: Asking = {
      ...{ database, ask: this.task.ask, address: model, project_id, signal: this.parts.signal },
      ...{ space_id: null, session_ids: [session_id], space_max: 0, project_max: tokens_a_day },
    }
    const { earlier, entries } = part.stretch
    const asked = await askOnce(asking, 'compact', compactPrompt(earlier, entries, chars_max))
    // Somebody retracted an earlier compaction of this part.
    if (!asked) return true
    const text = summaryText(asked.answer.summary, chars_max)
    if (!(await this.append(asked.call_id, part.plan, text))) return false
    await this.held.written()
    return part.plan.to_seq >= decided.to_seq
  }

  /** How much of the session is compacted: as much as a context that is cut would leave out, if it is worth a summary. */
  private async decide(compacted_seq: number): Promise<Decided | undefined> {
    const { database, thread } = this.parts
    const { tokens_max } = this.project
    const { project_id, session_id } = this.task
    const parts = {
      database,
      thread,
      memory: this.held.memory,
      read_bytes: READ_BYTES,
    }
    const rules = {
      tokens_max,
      tokens_target: Math.floor(tokens_max / KEPT_SHARE),
      tools_excluded: new Set<string>(),
      inputs_cleared: false,
    }
    const reader = new ContextReader(parts, { project_id, session_id }, { seq: 0 })
    const { plan } = await reader.read(rules, undefined)
    const decided = { to_seq: plan.from_seq - 1, except_seq: plan.asked_seq || null }
    if (decided.to_seq <= compacted_seq) return undefined
    const between = [project_id, session_id, compacted_seq + 1, decided.to_seq]
    const [row] = await database.query(READ_TOKENS_BETWEEN, between)
    if (Number(row!.tokens) < tokens_max / GROWTH_SHARE) return undefined
    await this.held.decide(decided)
    return decided
  }

  /** The next part to compact: as much as a prompt has room for, without parting a call from its result. */
  private async readPart(
    { to_seq, except_seq }: Decided,
    compaction: Compaction | undefined,
  ): Promise<Part | undefined> {
    const from_seq = (compaction?.to_seq ?? 0) + 1
    const exceptions = await this.readExceptions(compaction?.except_seqs ?? [])
    let rows = await this.readMessages(from_seq, to_seq)
    let must_fit = false
    while (rows.length > 0) {
      const stretch = await this.show(compaction, exceptions, rows, must_fit)
      const last_seq = Math.max(stretch.last_seq, must_fit ? Number(rows.at(-1)!.seq) : 0)
      // The user's question of a turn that goes on stays, too, until the user says something else.
      const kept = rows.filter(({ seq }) => Number(seq) === except_seq && Number(seq) <= last_seq)
      const except = kept.length > 0 ? kept : stretch.has_question ? [] : exceptions
      if (except === exceptions) stretch.earlier.length = compaction?.summary.length ?? 0
      const plan = await this.plan(last_seq, except)
      if (!(plan instanceof CallParted)) return { plan, stretch }
      const { before, after } = plan.near
      const ahead = rows.filter(({ seq }) => Number(seq) <= before)
      must_fit ||= ahead.length === 0
      if (ahead.length === 0 && (after === undefined || after > to_seq)) return undefined
      rows = ahead.length > 0 ? ahead : await this.readMessages(from_seq, after!)
      if (must_fit && Number(rows.at(-1)?.seq) < after!)
        throw new ModelFailure('One step of the session is too long for a summary.', false)
    }
    return undefined
  }

  private readMessages(from_seq: number, to_seq: number): Promise<Row[]> {
    const { project_id, session_id } = this.task
    return this.parts.database.query(READ_MESSAGES_FOR_SUMMARY, [project_id, session_id, from_seq, to_seq])
  }

  private async readExceptions(seqs: readonly number[]): Promise<Row[]> {
    if (seqs.length === 0) return []
    const { project_id, session_id } = this.task
    return this.parts.database.query(READ_EXCEPTIONS_FOR_SUMMARY, [project_id, session_id, plainArray(seqs)])
  }

  private show(
    compaction: Compaction | undefined,
    exceptions: Row[],
    rows: Row[],
    must_fit: boolean,
  ): Promise<Stretch> {
    const summary = compaction?.summary ?? []
    return this.parts.thread.run(this.task.project_id, 'showStretch', summary, exceptions, rows, must_fit)
  }

  /** @throws AnnalsError */
  private async plan(to_seq: number, except: Row[]): Promise<CompactionPlan | CallParted> {
    const { database, thread } = this.parts
    const { project_id, session_id } = this.task
    const know = (messages: Parameters<typeof contextMessages>[2]) =>
      contextMessages(thread, project_id, messages)
    const asked = { to_seq, except: except.map(({ id }) => id!) }
    const plan = await planCompaction({ database, project_id, session_id, know }, asked, undefined)
    if (plan instanceof AnnalsError && !(plan instanceof CallParted)) throw plan
    return plan
  }

  /** Returns whether it was appended: not if something was retracted or compacted meanwhile. */
  private async append(call_id: string, plan: CompactionPlan, content: string): Promise<boolean> {
    const { database, thread } = this.parts
    const { project_id, session_id } = this.task
    const { model, max_bytes, proof } = this.project
    const summary = { blob: { role: 'user', content } }
    const text = JSON.stringify({ to_seq: plan.to_seq, summary, by: 'annals', model: model.name })
    const taken = await thread.run(project_id, 'takeSummary', text)
    const entry = { ...compactionEvent(call_id, taken, plan), id_given: true }
    const [head] = await database.query(FIND_FENCES, [project_id, plainArray([session_id])])
    try {
      const entries = [entry]
      // Nobody knows here what consumers the project has: the flush writes marks for those that there are.
      const unmarked_until = Number.NEGATIVE_INFINITY
      const fence = head?.requires_fence === 't' ? Number(head.fence) : undefined
      const append = { project_id, session_id, kind: 'event' as const, entries, fence, proof, unmarked_until }
      await appendWithin(this.parts, { ...append, unrevised_since: plan.seen_seq }, max_bytes)
      return true
    } catch (error) {
      if (error instanceof AnnalsError && error.error === 'seq_conflict') return false
      throw error
    }
  }
}
