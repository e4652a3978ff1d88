import type { MessageFormat } from '../formats.js'
import { itemKind } from '../response_items.js'
import type { Omitted, Piece, SourcePiece, SourceRun } from './pieces.js'

interface Rest {
  runs: SourceRun[]
  omitted: Omitted[]
  left: SourcePiece[]
}

/** Formats whose provider has compactions of its own, which stand for what is before them. */
const COMPACTS: ReadonlySet<MessageFormat> = new Set(['anthropic', 'responses'])

/**
 * The runs from the provider's own newest compaction on. Anthropic refuses anything before it, and two of them. OpenAI
 * takes what is before and needs none of it; but what `responses.compact` returns are the user's messages and then the
 * compaction, so those directly before it stay, and so do instructions.
 */
export function withoutCompacted(runs: SourceRun[], format: MessageFormat): Rest {
  const at = COMPACTS.has(format) ? runs.findLastIndex(({ run }) => run.pieces.some(isCompaction)) : -1
  if (at < 0) return { runs, omitted: [], left: [] }
  const shown: SourceRun[] = []
  const left: SourcePiece[] = []
  const window = format === 'responses' ? windowBefore(runs, at) : at
  for (const [index, { source, run }] of runs.slice(0, at + 1).entries()) {
    const first = index === at ? run.pieces.findLastIndex(isCompaction) : run.pieces.length
    const stays = index >= window || (format === 'responses' && run.pieces.every(isInstruction))
    const pieces = stays && index < at ? run.pieces : run.pieces.slice(first)
    if (pieces.length > 0) shown.push({ source, run: { ...run, pieces } })
    if (pieces.length < run.pieces.length)
      for (const piece of run.pieces.slice(0, first)) left.push({ piece, source })
  }
  const ids = new Set(left.map(({ source }) => source.id))
  return {
    runs: [...shown, ...runs.slice(at + 1)],
    omitted: [...ids].map((id) => ({ id, reason: 'compacted' })),
    left,
  }
}

/** Whether a block or an item stands for what is before it. One without content is of a compaction that failed. */
export function isCompaction({ block }: Piece): boolean {
  if (block.type !== 'compaction') return false
  return [block.content, block.encrypted_content].some((said) => typeof said === 'string' && said !== '')
}

/** Where the user's messages begin that stand directly before a compaction. */
function windowBefore(runs: readonly SourceRun[], at: number): number {
  let from = at
  while (from > 0 && runs[from - 1]!.run.pieces.every((piece) => isSaidByUser(piece, runs[from - 1]!))) from--
  return from
}

function isSaidByUser({ block, kind, raw }: Piece, { run }: SourceRun): boolean {
  if (run.side !== 'user' || kind !== 'content') return false
  return raw !== undefined || block.role !== undefined || block.type === 'message'
}

function isInstruction({ block }: Piece): boolean {
  if (block.role === 'system' || block.role === 'developer') return true
  return block.type !== 'compaction_trigger' && itemKind(String(block.type)) === 'setting'
}
