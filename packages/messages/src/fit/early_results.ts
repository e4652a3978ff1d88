import type { Piece, SourceRun } from './pieces.js'

/**
 * The runs with each result that was stored before its call directly after that. Two writers of one log may be so fast
 * that the answer overtakes the question. A result that somebody else than the model and its tools spoke after stays: the
 * next call of its id is another one.
 */
export function withResultsAfterCalls(runs: readonly SourceRun[]): SourceRun[] {
  const called = new Set<string>()
  const early = new Map<string, SourceRun>()
  const moved = new Set<Piece>()
  const after = new Map<SourceRun, SourceRun[]>()
  let answer: SourceRun['source'] | undefined
  for (const at of runs) {
    const { source, run } = at
    const media = mediaByCall(run.pieces)
    for (const piece of run.pieces) {
      const { kind, call = '' } = piece
      if (kind === 'content' && run.side === 'user' && source !== answer) early.clear()
      if (kind === 'result') answer = source
      if (kind === 'result' && !called.has(call))
        early.set(call, { source, run: { ...run, pieces: [piece, ...(media.get(call) ?? [])] } })
      if (kind !== 'call') continue
      called.add(call)
      const result = early.get(call)
      if (!result) continue
      early.delete(call)
      for (const one of result.run.pieces) moved.add(one)
      const results = after.get(at)
      if (results) results.push(result)
      else after.set(at, [result])
    }
  }
  if (moved.size === 0) return [...runs]
  return runs.flatMap((at) => {
    const pieces = at.run.pieces.filter((piece) => !moved.has(piece))
    const rest = pieces.length > 0 ? [{ ...at, run: { ...at.run, pieces } }] : []
    return [...rest, ...(after.get(at) ?? [])]
  })
}

function mediaByCall(pieces: readonly Piece[]): Map<string, Piece[]> {
  const media = new Map<string, Piece[]>()
  for (const piece of pieces) {
    if (piece.kind !== 'medium' || piece.call === undefined) continue
    const same = media.get(piece.call)
    if (same) same.push(piece)
    else media.set(piece.call, [piece])
  }
  return media
}
