import { isObject } from '../blob_reading.js'
import type { Piece, SourcePiece } from './pieces.js'

/**
 * The calls and results of a provider's own tools that belong together: both stand in one turn, in this order. With
 * `go_on`, the result may come in a later turn: Claude's code goes on once the tools that it called have answered, if
 * nobody speaks in between. At the end of a list, such a call waits, and so does code beside a call of the caller's tools:
 * the API runs it once that is answered.
 * @param turns the pieces of the model's turns; undefined where somebody else speaks
 */
export function hostedPairs(
  turns: ReadonlyArray<readonly SourcePiece[] | undefined>,
  go_on: boolean,
): Set<Piece> {
  const paired = new Set<Piece>()
  const known = new Set<string>()
  let open = new Map<string, Piece>()
  let waiting = new Set<string>()
  for (const pieces of turns) {
    if (!go_on || waiting.size === 0 || pieces === undefined) open = new Map()
    waiting = new Set()
    for (const { piece } of pieces ?? []) {
      const { kind, call: id = '' } = piece
      // Where a run was stored twice, Claude's ids would be, too.
      if (kind === 'hosted_call' && !(go_on && known.has(id))) open.set(id, piece)
      if (kind === 'call') waiting.add(callerOf(piece) ?? '')
      const call = kind === 'hosted_result' ? open.get(id) : undefined
      if (!call) continue
      paired.add(call).add(piece)
      known.add(id)
      open.delete(id)
    }
  }
  if (!go_on || waiting.size === 0) return paired
  for (const [id, piece] of open) {
    const caller = callerOf(piece) ?? ''
    if (waiting.has(id) || runsCode(piece) || open.has(caller)) paired.add(piece)
  }
  return paired
}

function runsCode({ block: { name } }: Piece): boolean {
  return typeof name === 'string' && name.endsWith('code_execution')
}

/** The id of the call that a tool was called by, if it was not the model itself. */
function callerOf({ block: { caller } }: Piece): string | undefined {
  return isObject(caller) && typeof caller.tool_id === 'string' ? caller.tool_id : undefined
}

/** The piece without the call that it was made by, if that is not in the list. */
export function withKnownCaller(piece: Piece, known: ReadonlySet<string>): Piece {
  const caller = callerOf(piece)
  if (caller === undefined || known.has(caller)) return piece
  const { caller: _, ...block } = piece.block
  return { ...piece, block }
}
