import type { OmittedReason, Piece, Run } from './pieces.js'
import { isItemId, withoutReasoningIds } from './responses_shape.js'

/**
 * Items of the Responses API by their ids. The API refuses a list that has one twice, as logs do where a run was stored
 * again: the first stays. A later one is another message or call without the id, where it can be without, else left out.
 */
export class UniqueItems {
  private readonly known = new Set<string>()
  /** Reasoning was left out ahead of what the model says at this moment. */
  private is_less = false

  /** What the model said at this moment is not in the list from its beginning: it may have begun with reasoning. */
  loseBeginning(): void {
    this.is_less = true
  }

  take(piece: Piece, side: Run['side']): { shown?: Piece; reason?: OmittedReason } {
    const { id, type, role } = piece.block
    if (side === 'user') this.is_less = false
    if (piece.kind === 'thinking' && isTold(piece.block)) return this.takeTold(piece, side)
    if (typeof id !== 'string') return { shown: piece }
    const is_foreign = !isItemId(type ?? (role === undefined ? undefined : 'message'), id)
    const isKnown = this.known.has(id)
    this.known.add(id)
    if (!isKnown && !this.is_less && !is_foreign) return { shown: piece }
    if (piece.kind === 'thinking') {
      this.is_less ||= isKnown || is_foreign
      if (is_foreign) return { reason: 'not_in_format' }
      return isKnown ? { reason: 'duplicate_item' } : { shown: piece }
    }
    if (side === 'user' && type !== 'item_reference') {
      const { id: _, ...block } = piece.block
      return { shown: { ...piece, block } }
    }
    const shown = withoutReasoningIds(piece)
    return shown ? { shown } : { reason: isKnown || is_foreign ? 'duplicate_item' : 'reasoning' }
  }

  /**
   * Reasoning with its text. Services that are not OpenAI give it, and OpenAI refuses it: only what is encrypted beside the
   * text can be OpenAI's.
   */
  private takeTold(piece: Piece, side: Run['side']): { shown?: Piece; reason?: OmittedReason } {
    const { content: _, ...block } = piece.block
    if (typeof block.encrypted_content === 'string') return this.take({ ...piece, block }, side)
    this.is_less = true
    return { reason: 'not_in_format' }
  }
}

function isTold({ content }: Piece['block']): boolean {
  return Array.isArray(content) && content.length > 0
}
