import { isObject } from '../blob_reading.js'
import type { MessageFormat } from '../formats.js'
import type { Piece, SourcePiece } from './pieces.js'

/**
 * The calls and results of a provider's own tools that belong together: both stand in one turn, in this order. With
 * `go_on`, the result may come in a later turn, if nobody speaks in between: Claude's code goes on once the tools that it
 * called have answered, as OpenAI's programs do; Anthropic runs what Claude called beside the caller's tools once these
 * have answered, and goes on with a turn that it paused. At the end of a list, such a call waits.
 * @param turns the pieces of the model's turns; undefined where somebody else speaks
 */
export function hostedPairs(
  turns: ReadonlyArray<readonly SourcePiece[] | undefined>,
  format: MessageFormat,
): Set<Piece> {
  const go_on = format !== 'gemini'
  const paired = new Set<Piece>()
  const known = new Set<string>()
  let open = new Map<string, Piece>()
  let waiting = new Set<string>()
  for (const pieces of turns) {
    if (!go_on || pieces === undefined) open = new Map()
    waiting = new Set()
    for (const { piece } of pieces ?? []) {
      const { kind, call: id = '' } = piece
      // Where a run was stored twice, Claude's ids would be, too.
      if (kind === 'hosted_call' && !(go_on && known.has(id))) open.set(id, piece)
      const caller = callerOf(piece) ?? ''
      if (kind === 'call') waiting.add(open.has(caller) ? caller : '')
      const call = kind === 'hosted_result' ? open.get(id) : undefined
      if (!call) continue
      paired.add(call).add(piece)
      known.add(id)
      open.delete(id)
    }
  }
  if (!go_on) return paired
  const last = format === 'anthropic' ? waitingIn(turns.at(-1) ?? [], paired) : new Set()
  for (const [id, piece] of open) {
    const goes_on = waiting.has(id) || open.has(callerOf(piece) ?? '')
    if (last.has(piece) || (waiting.size > 0 && goes_on)) paired.add(piece)
  }
  return paired
}

/** What waits in the last turn: beside calls of the caller's tools any call, else those that the turn ends with. */
function waitingIn(pieces: readonly SourcePiece[], paired: ReadonlySet<Piece>): Set<Piece> {
  const isOpen = ({ piece }: SourcePiece) => piece.kind === 'hosted_call' && !paired.has(piece)
  const has_calls = pieces.some(({ piece }) => piece.kind === 'call')
  const from = has_calls ? 0 : pieces.findLastIndex((one) => !isOpen(one)) + 1
  return new Set(pieces.slice(from).flatMap((one) => (isOpen(one) ? one.piece : [])))
}

/** The id of the call that a tool was called by, if it was not the model itself. */
function callerOf({ block: { caller } }: Piece): string | undefined {
  const id = isObject(caller) ? (caller.tool_id ?? caller.caller_id) : undefined
  return typeof id === 'string' ? id : undefined
}

/** The piece without the call that it was made by, if that is not in the list. */
export function withKnownCaller(piece: Piece, known: ReadonlySet<string>): Piece {
  const caller = callerOf(piece)
  if (caller === undefined || known.has(caller)) return piece
  const { caller: _, ...block } = piece.block
  return { ...piece, block }
}
