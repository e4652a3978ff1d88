import { setImmediate as turn } from 'node:timers/promises'
import type { MemoryShare } from '@annals/kits/fairness/fair_queue.js'
import { TEXT_FACTOR } from '@annals/kits/http/answer/answer.js'
import { parseId } from '@annals/kits/ids.js'
import type { LogPosition } from '@annals/kits/lists/log_position.js'
import type { Queryable } from '@annals/kits/postgres/database.js'
import type { WorkThread } from '@annals/kits/threads/work_thread.js'
import {
  type ContextCut,
  type ContextMessage,
  type ContextPlan,
  type ContextRules,
  isShortened,
  MESSAGE_PART_TYPE,
  MESSAGE_PARTS_MAX,
  planContext,
  repeatCut,
  type ShownMessage,
  type StoredSeq,
  storedSeq,
} from '@annals/messages/context'
import type { FitMessage } from '@annals/messages/fit'
import type { ReadCompaction, ReadEntry } from '../read/entry_columns.js'
import { findIds, LogReader, type NewestMessages, UNLIMITED } from '../read/read_log.js'
import { contextMessages } from './page_renderer.js'

/** Limits of a context before it is cut: the rest of the session is taken to be longer than allowed. */
const MESSAGES_MAX = 10_000
const BYTES_MAX = 32 * 1024 * 1024
/** Calls and results. One message of a megabyte may have thousands, and the plan looks at each on the event loop. */
const TOOL_USES_MAX = 10_000
/** Reading more of them takes a turn of the event loop, and planning with them another. */
const TURN_USES_MAX = 1_000
/** Where results are cleared, so many messages are read at least: that tells which ones, also before a short context. */
const CLEARED_MESSAGES_MIN = 32
/** As many are read as seem to be missing, and some more. */
const MARGIN = 1.1
/** How many times as many as there are may be read then: at most, since others may be longer, and at least. */
const GROWTH_MAX = 16
const GROWTH_MIN = 0.25

export interface ContextParts {
  database: Queryable
  thread: WorkThread
  memory: MemoryShare
  /** Bytes that reading one piece of a log takes. */
  read_bytes: number
  showVersion?: (version: string | undefined) => void
}

export interface ContextSession {
  project_id: string
  session_id: string
}

/** A cut, and the compaction that the context then began with; 0: none. */
export interface PinnedCut extends ContextCut {
  compaction_seq: number
}

interface ReadMessage extends ShownMessage {
  created_at: string | undefined
}

/** A context that can be cut no further begins where it did, however long it is. */
function isSameCut(one: PinnedCut, other: PinnedCut): boolean {
  const { from_seq, asked_seq, cleared_through_seq, compaction_seq } = other
  return (
    one.from_seq === from_seq &&
    one.asked_seq === asked_seq &&
    one.cleared_through_seq === cleared_through_seq &&
    one.compaction_seq === compaction_seq
  )
}

export class ContextReader {
  private bytes = 0
  private uses = 0
  private readonly log: LogReader
  private instructions: ReadMessage[] | Promise<ReadMessage[]> = []
  /** The newest compaction: the context begins with it. */
  private compaction: ReadCompaction | undefined
  private exceptions: ReadMessage[] = []

  /** `seen`: where an earlier context ended whose cut is asked for; `isCompacted`: whether compactions count. */
  constructor(
    private readonly parts: ContextParts,
    private readonly session: ContextSession,
    seen: LogPosition,
    private readonly isCompacted = true,
  ) {
    this.log = new LogReader(parts.database, session, seen, undefined, parts.showVersion)
  }

  /**
   * The context's plan, the position of the newest message, and the messages that it shows, oldest first. `is_kept`: it
   * begins where an earlier one did.
   * @throws AnnalsError session_not_found, seq_ahead, log_diverged
   */
  async read(
    rules: ContextRules,
    cut: PinnedCut | undefined,
  ): Promise<{ plan: ContextPlan & PinnedCut; newest: LogPosition; shown: FitMessage[]; is_kept: boolean }> {
    await this.parts.memory.hold(this.parts.read_bytes)
    const kept = cut && (await this.readCut(rules, cut))
    const { plan, messages } = kept ?? (await this.readNewest(rules))
    const { seq = 0, created_at } = messages.at(-1) ?? {}
    const shown = messages.filter(({ seq }) => seq >= plan.from_seq || seq === plan.asked_seq)
    // Also those between what the user asked and the step that it begins with.
    const ahead = await this.instructionsAhead(plan.from_seq || UNLIMITED)
    const all = [...ahead, ...shown].sort((a, b) => a.seq - b.seq)
    if (this.uses > TURN_USES_MAX) await turn()
    const cut_now = { ...plan, compaction_seq: this.compaction?.seq ?? 0 }
    return {
      plan: cut_now,
      newest: { seq, created_at },
      is_kept: kept !== undefined || (cut !== undefined && isSameCut(cut_now, cut)),
      shown: this.withCompaction(all).map(({ stored: { id, parent_id, format, blob }, seq, tokens }) => ({
        id,
        parent_id,
        seq,
        format,
        blob,
        edit: plan.edits.get(seq),
        tokens: plan.edited_tokens.get(seq) ?? tokens,
      })),
    }
  }

  /** The summary and the exceptions stand where what is compacted would; the instructions before it stay ahead. */
  private withCompaction(all: ShownMessage[]): ShownMessage[] {
    if (!this.compaction) return all
    const { id, to_seq, summary } = this.compaction
    const said = summary.map((message): ShownMessage => {
      const known = { seq: to_seq, tokens: 0, speaker: 'user', calls: [], results: [], length: 0 } as const
      return { ...known, calls: [], results: [], stored: { id, parent_id: null, ...message } }
    })
    const ahead = all.filter((message) => message.seq <= to_seq)
    return [...ahead, ...said, ...this.exceptions, ...all.filter((message) => message.seq > to_seq)]
  }

  private async begin({ instructions, compaction }: Pick<NewestMessages, 'instructions' | 'compaction'>) {
    const known = await this.know(instructions)
    this.compaction = compaction
    const exceptions = await this.know(await this.log.readMessagesAt(compaction?.except_seqs ?? []))
    this.exceptions = exceptions.filter(({ speaker }) => speaker !== 'instruction')
    return known
  }

  private async tokensAhead(below_seq: number): Promise<number> {
    const ahead = [...(await this.instructionsAhead(below_seq)), ...this.exceptions]
    return tokensOf(ahead) + (this.compaction?.tokens ?? 0)
  }

  /** The context that begins where an earlier one did, unless it has become too long. */
  private async readCut(rules: ContextRules, cut: PinnedCut) {
    if (cut.from_seq === 0) return undefined
    const instructions = this.log.readInstructions(this.isCompacted).then((read) => this.begin(read))
    // Callers that wait for them get the error.
    instructions.catch(() => {})
    this.instructions = instructions
    const asked = cut.asked_seq === 0 ? [] : await this.readRange(cut.asked_seq - 1, cut.asked_seq + 1)
    const followers = await this.readRange(cut.from_seq - 1, UNLIMITED)
    const instruction_tokens = await this.tokensAhead(cut.from_seq)
    if (!asked || !followers || cut.compaction_seq !== (this.compaction?.seq ?? 0)) return undefined
    const messages = [...asked, ...followers]
    const plan = repeatCut({ messages, instruction_tokens }, rules, cut)
    return plan && { plan, messages }
  }

  private async readNewest(rules: ContextRules) {
    const { tokens_max, tokens_target, results_kept } = rules
    this.bytes = 0
    this.uses = 0
    const newest = await this.log.readNewestMessages(
      tokens_max,
      tokens_target,
      results_kept === undefined ? 1 : CLEARED_MESSAGES_MIN,
      this.isCompacted,
    )
    this.instructions = await this.begin(newest)
    let messages = await this.know(newest.messages.toReversed())
    let may_grow = !newest.are_all
    const is_all_wanted = newest.total_tokens <= tokens_max
    // Only reading shows how much remains of cleared entries, and how much follows a compaction.
    const is_longer = !is_all_wanted && results_kept === undefined && !this.compaction
    for (;;) {
      const below_seq = messages[0]?.seq ?? UNLIMITED
      may_grow &&= below_seq > 1 && !this.isFull(messages.length)
      const instruction_tokens = await this.tokensAhead(below_seq)
      const plan = planContext({ messages, may_grow, is_longer, instruction_tokens }, rules)
      if (plan) return { plan, messages }
      const limit = is_all_wanted ? UNLIMITED : missingMessages(messages, rules)
      const older = await this.readOlder(messages, below_seq, limit)
      may_grow = older.length === limit
      messages = [...older, ...messages]
    }
  }

  /** Messages before others, oldest first: so many, unless there are fewer, or more than a context is made of. */
  private async readOlder(messages: ReadMessage[], below_seq: number, limit: number): Promise<ReadMessage[]> {
    const older: ReadMessage[] = []
    for await (const piece of this.walk({
      above_seq: this.compaction?.to_seq ?? 0,
      below_seq,
      limit,
      time_desc: true,
    })) {
      older.unshift(...(await this.know(piece.toReversed())))
      if (this.isFull(messages.length + older.length)) break
    }
    return older
  }

  /** Messages between two seqs, oldest first; undefined where they are more than a context is made of. */
  private async readRange(above_seq: number, below_seq: number): Promise<ReadMessage[] | undefined> {
    const messages: ReadMessage[] = []
    for await (const piece of this.walk({ above_seq, below_seq, limit: UNLIMITED, time_desc: false })) {
      messages.push(...(await this.know(piece)))
      if (this.isFull(messages.length)) return undefined
    }
    return messages
  }

  private walk(page: { above_seq: number; below_seq: number; limit: number; time_desc: boolean }) {
    return this.log.read('context_message', { kind: 'message', ...page })
  }

  private isFull(messages: number): boolean {
    return messages >= MESSAGES_MAX || this.uses >= TOOL_USES_MAX || this.bytes >= BYTES_MAX
  }

  private async instructionsAhead(below_seq: number): Promise<ReadMessage[]> {
    return (await this.instructions).filter(({ seq }) => seq < below_seq)
  }

  /** A message whose long texts an adapter has stored in parts, with these; nothing where a part is not there any more. */
  private async whole(
    { format }: StoredSeq,
    ids: unknown,
  ): Promise<{ blob: string; tokens: number } | undefined> {
    const { database, thread, memory, read_bytes } = this.parts
    if (
      !Array.isArray(ids) ||
      ids.length > MESSAGE_PARTS_MAX ||
      !ids.every((id) => typeof id === 'string' && parseId(id))
    )
      return undefined
    const places = await findIds(database, this.session, ids)
    const seqs = places.flatMap((place) => (place?.type === MESSAGE_PART_TYPE ? [place.seq] : []))
    if (seqs.length < ids.length) return undefined
    const texts: string[] = []
    for await (const piece of this.log.readSeqs(seqs))
      for (const { json } of piece) {
        this.bytes += json.length
        await memory.hold(read_bytes + TEXT_FACTOR * this.bytes)
        const { retracted_by, data } = JSON.parse(json) as PartItem
        if (retracted_by != null || typeof data.text !== 'string') return undefined
        texts.push(data.text)
      }
    return thread.run(this.session.project_id, 'joinedMessage', format, texts)
  }

  /** Takes note of messages, oldest first. */
  private async know(entries: ReadEntry[]): Promise<ReadMessage[]> {
    const { memory, thread, read_bytes } = this.parts
    for (const { json } of entries) this.bytes += json.length
    await memory.hold(read_bytes + TEXT_FACTOR * this.bytes)
    const stored = entries.map(storedSeq)
    for (let at = entries.length - 1; at >= 0; at--) {
      const { json, meta } = entries[at]!
      const isShown = this.bytes < BYTES_MAX && meta && isShortened(json)
      if (isShown) Object.assign(stored[at]!, await this.whole(stored[at]!, JSON.parse(meta)))
    }
    const known = await contextMessages(thread, this.session.project_id, stored)
    for (const { calls, results } of known) this.uses += calls.length + results.length
    if (this.uses > TURN_USES_MAX) await turn()
    return known.map((message, i) =>
      Object.assign(message, { stored: stored[i]!, created_at: entries[i]!.created_at }),
    )
  }
}

/** As the log has it: the text of a part, unless it was retracted. */
type PartItem = { retracted_by?: number | null; data: { text?: unknown } }

/** About how many messages more it takes to reach the length that a context is cut down to. */
function missingMessages(messages: readonly ContextMessage[], { tokens_target }: ContextRules): number {
  const { length } = messages
  const tokens = Math.max(tokensOf(messages), 1)
  // One turn may be longer than that: nobody knows where it begins.
  if (tokens >= tokens_target) return length
  const missing = (MARGIN * (tokens_target - tokens) * length) / tokens
  return Math.ceil(Math.min(Math.max(missing, GROWTH_MIN * length), GROWTH_MAX * length))
}

function tokensOf(messages: readonly ContextMessage[]): number {
  return messages.reduce((sum, { tokens }) => sum + tokens, 0)
}
