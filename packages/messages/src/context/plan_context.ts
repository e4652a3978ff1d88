import { ClearedMessages } from './cleared_messages.js'
import type { ContextMessage } from './context_message.js'
import type { MessageEdit } from './edit_blob.js'
import { linkResults, type ResultLink } from './link_results.js'

/** How a context is cut. */
export interface ContextRules {
  tokens_max: number
  /** Down to where a context is cut that has passed `tokens_max`. */
  tokens_target: number
  /** So many of the newest results stay whole; undefined: all. */
  results_kept?: number | undefined
  /** Tools whose results are never cleared. */
  tools_excluded: ReadonlySet<string>
  /** Also empties the arguments of the calls whose results are cleared. */
  inputs_cleared: boolean
}

/** Where a context was cut: what a later call repeats, so that the prefix stays the same. */
export interface ContextCut {
  /** The first message of those that follow each other up to the newest. */
  from_seq: number
  /** A user's message further ahead that is shown as well, because one turn alone is longer than allowed; else 0. */
  asked_seq: number
  /** Results up to here are cleared, those of excluded tools aside; 0: none. */
  cleared_through_seq: number
}

export interface ContextPlan extends ContextCut {
  /** An estimate where results are cleared. */
  tokens: number
  edits: Map<number, MessageEdit>
  /** Tokens of the messages that `edits` names, by their seqs. */
  edited_tokens: Map<number, number>
}

/** The newest messages of a session, oldest first, and what is known of those ahead of them. */
export interface ContextWindow {
  messages: readonly ContextMessage[]
  /** Whether older messages can still be read. */
  may_grow: boolean
  /** The whole session is known to have more than `tokens_max`: only what it is cut down to has to be in the window. */
  is_longer: boolean
  /** Tokens of the instructions ahead of the window: they stay in every context. */
  instruction_tokens: number
}

/**
 * Plans a context: which messages of the window, and what is cleared of them. A conversation is cut once down to
 * `tokens_target` and keeps that cut until it passes `tokens_max`, which is what a provider's prompt cache wants. The
 * cut falls ahead of a user's message, or, within a turn that is too long by itself, ahead of a step of the assistant's;
 * never between a call and its result.
 * @returns undefined where the window has to grow before it can be said
 */
export function planContext(window: ContextWindow, rules: ContextRules): ContextPlan | undefined {
  const links = linkResults(window.messages)
  const cleared_through_seq = clearedThrough(window.messages, links, rules)
  const costs = new Costs(window, clear(window.messages, links, rules, cleared_through_seq))
  const place = findCut(window, links, rules, costs)
  return place && costs.plan(place.from, place.asked, cleared_through_seq)
}

/**
 * The same cut again, of a window that begins with it; undefined where the context has passed `tokens_max` since then.
 */
export function repeatCut(
  { messages, ...window }: Omit<ContextWindow, 'may_grow' | 'is_longer'>,
  rules: ContextRules,
  cut: ContextCut,
): ContextPlan | undefined {
  const asked = cut.asked_seq === 0 ? -1 : messages.findIndex(({ seq }) => seq === cut.asked_seq)
  const from = messages.findIndex(({ seq }) => seq >= cut.from_seq)
  if (from < 0) return undefined
  const cleared = clear(messages, linkResults(messages), rules, cut.cleared_through_seq)
  const plan = new Costs({ messages, ...window }, cleared).plan(from, asked, cut.cleared_through_seq)
  return plan.tokens <= rules.tokens_max ? { ...plan, ...cut } : undefined
}

/** The seq of the newest result that is cleared. */
function clearedThrough(
  messages: readonly ContextMessage[],
  links: ResultLink[],
  rules: ContextRules,
): number {
  if (rules.results_kept === undefined) return 0
  const clearable = links.filter(({ name }) => !isExcluded(name, rules))
  const newest = clearable[clearable.length - 1 - rules.results_kept]
  return newest ? messages[newest.result]!.seq : 0
}

function isExcluded(name: string | null, { tools_excluded }: ContextRules): boolean {
  return name !== null && tools_excluded.has(name)
}

function clear(
  messages: readonly ContextMessage[],
  links: ResultLink[],
  rules: ContextRules,
  cleared_through_seq: number,
): ClearedMessages {
  const cleared = new ClearedMessages(messages)
  for (const { result, nth, call, nthCall, name } of links) {
    const { seq, results } = messages[result]!
    if (seq > cleared_through_seq || isExcluded(name, rules)) continue
    const { length, attached } = results[nth]!
    const text = placeholder(seq, attached?.characters ?? length, attached?.media)
    if (attached || length > text.length) cleared.clearResult(result, nth, text)
    if (rules.inputs_cleared && call >= 0) cleared.clearInput(call, nthCall)
  }
  return cleared
}

/** The placeholder for a cleared result. */
export function placeholder(seq: number, length: number, media = 0): string {
  const attached = media === 0 ? '' : `, ${media} ${media === 1 ? 'attachment' : 'attachments'}`
  return `[result cleared: seq ${seq}, ${length} characters${attached}]`
}

/** The cost of contexts that begin at a message of the window, with the instructions before it. */
class Costs {
  private readonly from_on: number[]
  private readonly instructions: number[]

  constructor(
    private readonly window: Omit<ContextWindow, 'may_grow' | 'is_longer'>,
    private readonly cleared: ClearedMessages,
  ) {
    const { messages, instruction_tokens } = window
    const { tokens } = cleared
    this.from_on = Array<number>(messages.length + 1).fill(0)
    for (let i = messages.length - 1; i >= 0; i--) this.from_on[i] = this.from_on[i + 1]! + tokens[i]!
    this.instructions = [instruction_tokens]
    for (const [i, { speaker }] of messages.entries())
      this.instructions.push(this.instructions[i]! + (speaker === 'instruction' ? tokens[i]! : 0))
  }

  of(from: number, asked = -1): number {
    return this.from_on[from]! + this.instructions[from]! + (asked < 0 ? 0 : this.cleared.tokens[asked]!)
  }

  plan(from: number, asked: number, cleared_through_seq: number): ContextPlan {
    const { messages } = this.window
    const from_seq = messages[from]?.seq ?? 0
    const asked_seq = messages[asked]?.seq ?? 0
    return {
      from_seq,
      asked_seq,
      // What is cleared ahead of the context depends on how much was read, and shows nowhere.
      cleared_through_seq: cleared_through_seq < (asked_seq || from_seq) ? 0 : cleared_through_seq,
      tokens: this.of(from, asked),
      edits: this.cleared.edits,
      edited_tokens: this.cleared.editedTokens(),
    }
  }
}

/** The first message of the context, and a user's message ahead of it that stays, or -1. */
function findCut(
  { messages, may_grow, is_longer }: ContextWindow,
  links: ResultLink[],
  { tokens_max, tokens_target }: ContextRules,
  costs: Costs,
): { from: number; asked: number } | undefined {
  if (costs.of(0) <= (may_grow && is_longer ? tokens_target : tokens_max))
    return may_grow ? undefined : { from: 0, asked: -1 }
  const isWhole = wholeFrom(messages.length, links, may_grow)
  const begins = (speaker: ContextMessage['speaker']) => {
    const found: number[] = []
    for (let i = 0; i < messages.length; i++)
      if (messages[i]!.speaker === speaker && isWhole[i]) found.push(i)
    return found
  }
  const turns = begins('user')
  const turn = turns.find((from) => costs.of(from) <= tokens_target)
  if (turn !== undefined) return { from: turn, asked: -1 }
  const asked = turns.at(-1) ?? -1
  if (asked >= 0 && costs.of(asked) <= tokens_max) return { from: asked, asked: -1 }
  if (asked < 0 && may_grow) return undefined
  // What the assistant says in several messages, such as its reasoning ahead of a call, is one step.
  const steps = begins('assistant').filter((i) => i > asked && messages[i - 1]?.speaker !== 'assistant')
  const step = steps.find((from) => costs.of(from, asked) <= tokens_target) ?? steps.at(-1)
  if (step === undefined || step === asked + 1) return { from: Math.max(asked, 0), asked: -1 }
  return { from: step, asked }
}

/**
 * Whether no result at a message or after it belongs to a call ahead of it. A call that is not in the window may be
 * ahead of it, unless there is nothing.
 */
function wholeFrom(length: number, links: ResultLink[], may_grow: boolean): boolean[] {
  const changes = Array<number>(length + 1).fill(0)
  for (const { call, result } of links) {
    if (call === result || (call < 0 && !may_grow)) continue
    changes[Math.min(call, result) + 1]!++
    changes[Math.max(call, result) + 1]!--
  }
  let crossing = 0
  return changes.slice(0, length).map((change) => {
    crossing += change
    return crossing === 0
  })
}
