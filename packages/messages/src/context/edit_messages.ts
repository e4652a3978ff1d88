import { ClearedMessages } from './cleared_messages.js'
import type { ContextMessage } from './context_message.js'
import { linkResults, type ResultLink } from './link_results.js'

/** The parts that a page of messages is shown without, as existing clients ask for it. */
export type EditStrategy =
  | {
      type: 'remove_tool_result'
      params?: {
        keep_recent_n_tool_results?: number
        keep_tools?: readonly string[]
        /** Only results of more tokens. */
        gt_token?: number
        tool_result_placeholder?: string
      }
    }
  | {
      type: 'remove_tool_call_params'
      params?: { keep_recent_n_tool_calls?: number; keep_tools?: readonly string[]; gt_token?: number }
    }
  | { type: 'token_limit'; params: { limit_tokens: number } }
  | { type: 'middle_out'; params: { token_reduce_to: number } }

const KEPT_DEFAULT = 3
const PLACEHOLDER_DEFAULT = 'Done'

/** A call or a result: the place of its message, and its own in the message. */
interface ToolUse {
  index: number
  nth: number
  name: string | null
  length: number
}

/** Messages in their order, to which strategies are applied one after the other. */
export class EditedMessages {
  readonly cleared: ClearedMessages
  /** Seqs of the messages that are left out. */
  readonly dropped = new Set<number>()
  private readonly links: ResultLink[]
  /** Messages of the same number are left out together: a call and its results. Numbers of what stays are in `kept`. */
  private readonly units: number[]
  private readonly kept = new Set<number>()

  /** @param editable how many messages from the first on are edited; the others are shown as they are */
  constructor(
    private readonly messages: readonly ContextMessage[],
    private readonly editable: number,
  ) {
    this.cleared = new ClearedMessages(messages)
    this.links = linkResults(messages)
    this.units = unitsOf(messages.length, this.links)
    for (const [index, { speaker }] of messages.entries())
      if (speaker === 'instruction' || index >= editable - 1) this.kept.add(this.units[index]!)
  }

  apply(strategy: EditStrategy): void {
    switch (strategy.type) {
      case 'remove_tool_result': {
        const { keep_recent_n_tool_results, tool_result_placeholder, ...which } = strategy.params ?? {}
        const uses = this.links.map(({ result, nth, name }) => {
          return { index: result, nth, name, length: this.messages[result]!.results[nth]!.length }
        })
        for (const { index, nth } of this.oldest(uses, keep_recent_n_tool_results, which))
          this.cleared.clearResult(index, nth, tool_result_placeholder ?? PLACEHOLDER_DEFAULT)
        return
      }
      case 'remove_tool_call_params': {
        const { keep_recent_n_tool_calls, ...which } = strategy.params ?? {}
        const uses = this.messages.flatMap(({ calls }, index) =>
          calls.map(({ name, length }, nth) => ({ index, nth, name, length })),
        )
        for (const { index, nth } of this.oldest(uses, keep_recent_n_tool_calls, which))
          this.cleared.clearInput(index, nth)
        return
      }
      case 'token_limit':
        this.leaveOut(strategy.params.limit_tokens, 0)
        return
      case 'middle_out':
        this.leaveOut(strategy.params.token_reduce_to, Math.floor(this.editable / 2))
    }
  }

  /** All but the newest of those that may be cleared. */
  private oldest(
    uses: ToolUse[],
    count = KEPT_DEFAULT,
    { keep_tools = [], gt_token = 0 }: { keep_tools?: readonly string[]; gt_token?: number },
  ): ToolUse[] {
    const tools = new Set(keep_tools)
    const clearable = uses.filter(
      ({ index, name }) => index < this.editable && !(name !== null && tools.has(name)),
    )
    return clearable
      .slice(0, Math.max(0, clearable.length - count))
      .filter(({ index, length }) => this.cleared.tokensOf(index, length) > gt_token)
  }

  /** Leaves messages out, beginning with one and going on in both directions, until those left have so many tokens. */
  private leaveOut(tokens_max: number, first: number): void {
    const members = new Map<number, number[]>()
    let tokens = 0
    for (let index = 0; index < this.editable; index++) {
      if (this.dropped.has(this.messages[index]!.seq)) continue
      tokens += this.cleared.tokens[index]!
      const unit = this.units[index]!
      if (this.kept.has(unit)) continue
      const joined = members.get(unit)
      if (joined) joined.push(index)
      else members.set(unit, [index])
    }
    for (let away = 0; away < this.editable && tokens > tokens_max; away++) {
      for (const index of away === 0 ? [first] : [first - away, first + away]) {
        const unit = members.get(this.units[index] ?? -1)
        if (!unit || tokens <= tokens_max) continue
        members.delete(this.units[index]!)
        for (const member of unit) {
          this.dropped.add(this.messages[member]!.seq)
          tokens -= this.cleared.tokens[member]!
        }
      }
    }
  }
}

/** For each message, the place of the first with which it is joined by calls and results. */
function unitsOf(length: number, links: readonly ResultLink[]): number[] {
  const joined = Array.from({ length }, (_, index) => index)
  const unitOf = (index: number): number => {
    let at = index
    while (joined[at] !== at) at = joined[at] = joined[joined[at]!]!
    return at
  }
  for (const { call, result } of links) {
    if (call < 0) continue
    const [first, second] = [unitOf(call), unitOf(result)].sort((a, b) => a - b) as [number, number]
    joined[second] = first
  }
  return joined.map((_, index) => unitOf(index))
}
