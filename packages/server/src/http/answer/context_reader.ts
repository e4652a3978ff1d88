import type { MessageFormat, StoredText } from '@annals/messages'
import {
  type ContextCut,
  type ContextMessage,
  type ContextPlan,
  type ContextRules,
  planContext,
  repeatCut,
} from '@annals/messages/context'
import type { MemoryShare } from '../../fairness/memory_budget.js'
import { READ_INSTRUCTIONS } from '../../log/read/context_queries.js'
import { LogReader, type ReadEntry, UNLIMITED } from '../../log/read/read_log.js'
import type { Queryable } from '../../postgres/database.js'
import { TEXT_FACTOR } from '../admission/request_memory.js'
import type { WorkThread } from '../work_thread/work_thread.js'
import { contextTurns, type ShownMessage, storedSeq } from './message_turns.js'
import { contextMessages } from './page_renderer.js'

/** What a context is made of at most, before it is cut: the rest of the session is taken to be longer than allowed. */
const MESSAGES_MAX = 10_000
const BYTES_MAX = 32 * 1024 * 1024
/** Calls and results. One message of a megabyte may have thousands, and the plan looks at each on the event loop. */
const TOOL_USES_MAX = 10_000
/** Messages that are read first; then twice as many each time. */
const FIRST_MESSAGES = 32
const INSTRUCTIONS_MAX = 64
const INSTRUCTION_BYTES_MAX = 1024 * 1024

export interface ContextParts {
  database: Queryable
  thread: WorkThread
  memory: MemoryShare
  /** Bytes that reading one piece of a log takes. */
  read_bytes: number
}

export interface ContextSession {
  project_id: string
  session_id: string
  last_seq: number
}

/** Reads as much of a session, from its end, as its context is made of. */
export class ContextReader {
  private bytes = 0
  private uses = 0
  private instructions: ShownMessage[] = []

  constructor(
    private readonly parts: ContextParts,
    private readonly session: ContextSession,
  ) {}

  /** The context's plan, and the messages that it shows in a format, oldest first. */
  async read(
    rules: ContextRules,
    cut: ContextCut | undefined,
    format: MessageFormat,
  ): Promise<{ plan: ContextPlan; shown: StoredText[] }> {
    await this.parts.memory.hold(this.parts.read_bytes)
    this.instructions = await this.readInstructions()
    const kept = cut && (await this.readCut(rules, cut))
    const { plan, messages } = kept ?? (await this.readNewest(rules))
    const shown = messages.filter(
      ({ seq, speaker }) => seq >= plan.from_seq || seq === plan.asked_seq || speaker === 'instruction',
    )
    const ahead = this.instructionsAhead(messages[0]?.seq ?? UNLIMITED)
    const all = [...ahead, ...shown].sort((a, b) => a.seq - b.seq)
    return { plan, shown: contextTurns(all, plan.edits, format) }
  }

  /** The context that begins where an earlier one did, unless it has become too long. */
  private async readCut(rules: ContextRules, cut: ContextCut) {
    const asked = cut.asked_seq === 0 ? [] : await this.readRange(cut.asked_seq - 1, cut.asked_seq + 1)
    const followers = await this.readRange(cut.from_seq - 1, this.session.last_seq + 1)
    if (!asked || !followers) return undefined
    const messages = [...asked, ...followers]
    const instruction_tokens = tokensOf(this.instructionsAhead(cut.from_seq))
    const plan = repeatCut({ messages, may_grow: true, instruction_tokens }, rules, cut)
    return plan && { plan, messages }
  }

  private async readNewest(rules: ContextRules) {
    let messages: ShownMessage[] = []
    let below_seq = this.session.last_seq + 1
    this.bytes = 0
    this.uses = 0
    for (let limit = FIRST_MESSAGES; ; limit *= 2) {
      const older: ShownMessage[] = []
      let read = 0
      for await (const piece of this.walk({ above_seq: 0, below_seq, limit, time_desc: true })) {
        older.unshift(...(await this.know(piece.toReversed())))
        read += piece.length
        below_seq = piece.at(-1)!.seq
        if (this.isFull(messages.length + older.length)) break
      }
      messages = [...older, ...messages]
      const may_grow = read === limit && below_seq > 1 && !this.isFull(messages.length)
      const instruction_tokens = tokensOf(this.instructionsAhead(below_seq))
      const plan = planContext({ messages, may_grow, instruction_tokens }, rules)
      if (plan) return { plan, messages }
    }
  }

  /** Messages between two seqs, oldest first; undefined where they are more than a context is made of. */
  private async readRange(above_seq: number, below_seq: number): Promise<ShownMessage[] | undefined> {
    const messages: ShownMessage[] = []
    for await (const piece of this.walk({ above_seq, below_seq, limit: UNLIMITED, time_desc: false })) {
      messages.push(...(await this.know(piece)))
      if (this.isFull(messages.length)) return undefined
    }
    return messages
  }

  private walk(page: { above_seq: number; below_seq: number; limit: number; time_desc: boolean }) {
    const log = new LogReader(this.parts.database, this.session)
    return log.read('message', { kind: 'message', ...page })
  }

  private isFull(messages: number): boolean {
    return messages >= MESSAGES_MAX || this.uses >= TOOL_USES_MAX || this.bytes >= BYTES_MAX
  }

  /** The instructions ahead of a message, oldest first. */
  private instructionsAhead(below_seq: number): ShownMessage[] {
    return this.instructions.filter(({ seq }) => seq < below_seq)
  }

  private async readInstructions(): Promise<ShownMessage[]> {
    const { project_id, session_id } = this.session
    const bounds = [INSTRUCTIONS_MAX, INSTRUCTION_BYTES_MAX]
    const rows = await this.parts.database.query(READ_INSTRUCTIONS, [project_id, session_id, ...bounds])
    const entries = rows.map((row) => ({
      seq: Number(row.seq),
      json: row.json!,
      id: row.id!,
      parent_id: row.parent_id!,
      format: row.format!,
      tokens: Number(row.tokens),
    }))
    return this.know(entries.reverse())
  }

  /** Takes note of messages, oldest first. */
  private async know(entries: ReadEntry[]): Promise<ShownMessage[]> {
    const { memory, thread, read_bytes } = this.parts
    for (const { json } of entries) this.bytes += json.length
    await memory.hold(read_bytes + TEXT_FACTOR * this.bytes)
    const stored = entries.map(storedSeq)
    const known = await contextMessages(thread, this.session.project_id, stored)
    for (const { calls, results } of known) this.uses += calls.length + results.length
    return known.map((message, i) => ({ ...message, stored: stored[i]! }))
  }
}

function tokensOf(messages: readonly ContextMessage[]): number {
  return messages.reduce((sum, { tokens }) => sum + tokens, 0)
}
