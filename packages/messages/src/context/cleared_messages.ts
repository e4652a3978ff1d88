import { estimateTokens } from '../token_estimate.js'
import type { ContextMessage } from './context_message.js'
import type { MessageEdit } from './edit_blob.js'

/** Cleared parts of messages: results that a text replaces, and arguments of calls. */
export class ClearedMessages {
  /** By seq. */
  readonly edits = new Map<number, MessageEdit>()
  /** Tokens of each message as it is shown; an estimate where something is cleared. */
  readonly tokens: number[]

  constructor(private readonly messages: readonly ContextMessage[]) {
    this.tokens = messages.map((message) => message.tokens)
  }

  /** Tokens of each message that is shown without something, by its seq. */
  editedTokens(): Map<number, number> {
    if (this.edits.size === 0) return new Map()
    const edited = this.messages.flatMap(
      ({ seq }, at): Array<[number, number]> => (this.edits.has(seq) ? [[seq, this.tokens[at]!]] : []),
    )
    return new Map(edited)
  }

  /** Puts a text in the place of a result, which is named by its message's place and its own in the message. */
  clearResult(index: number, nth: number, text: string): void {
    const { results } = this.editOf(index)
    if (results[nth] !== null) return
    results[nth] = text
    this.drop(index, this.messages[index]!.results[nth]!.length, estimateTokens(text))
  }

  /** Empties the arguments of a call. */
  clearInput(index: number, nth: number): void {
    const { inputs } = this.editOf(index)
    if (inputs[nth]) return
    inputs[nth] = true
    this.drop(index, this.messages[index]!.calls[nth]!.length)
  }

  /** An estimate of the tokens of so many characters of a message. */
  tokensOf(index: number, length: number): number {
    const message = this.messages[index]!
    return message.length === 0 ? 0 : Math.floor((message.tokens * length) / message.length)
  }

  private editOf(index: number): MessageEdit {
    const { seq, results, calls } = this.messages[index]!
    const edit = this.edits.get(seq) ?? { results: results.map(() => null), inputs: calls.map(() => false) }
    this.edits.set(seq, edit)
    return edit
  }

  private drop(index: number, length: number, added = 0): void {
    this.tokens[index] = Math.max(0, this.tokens[index]! - this.tokensOf(index, length) + added)
  }
}
