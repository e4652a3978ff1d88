import { isObject, type JsonObject } from '../blob_reading.js'
import { NO_RESULT, type Piece, type PieceIds, type Run, type Shape } from './pieces.js'

/** The neutral form: nobody's API has rules for it, so a list is in order, and nothing else. */
export const ACONTEXT_SHAPE: Shape = {
  joins_all: false,
  begins_with_user: false,
  says_beside_results: true,

  split(items, ids) {
    const runs: Run[] = []
    for (const { role, parts, ...head } of items) {
      const side = role === 'assistant' ? 'model' : 'user'
      let last: Run | undefined
      const given = Array.isArray(parts) ? parts.filter(isObject) : []
      const answered = new Set(ids.results.map(({ id }) => id))
      for (const part of given) {
        const piece = pieceOf(part, ids, answered)
        const speaker = sideOf(piece, side)
        if (last?.side === speaker) last.pieces.push(piece)
        else {
          last = { side: speaker, head: only(head), pieces: [piece] }
          runs.push(last)
        }
      }
    }
    return runs
  },

  turn: (head, pieces) => {
    const [{ source }] = pieces as [(typeof pieces)[number]]
    return [{ source, item: { role: 'assistant', parts: pieces.map(({ piece }) => piece.block), ...head } }]
  },

  results: (results) => {
    const [first] = results
    return first
      ? [{ source: first.source, item: { role: 'user', parts: results.map(({ piece }) => piece.block) } }]
      : []
  },

  said: ({ head, pieces }, source) => [
    { source, item: { role: 'user', parts: pieces.map(({ block }) => block), ...head } },
  ],

  renamed: ({ kind, block }, id, name) => ({
    ...block,
    meta: {
      ...(block.meta as JsonObject),
      ...(kind === 'call' ? { id, ...(name !== undefined && { name }) } : { tool_call_id: id }),
    },
  }),

  noResult: ({ call, name }) => ({
    type: 'tool-result',
    text: NO_RESULT,
    asset: null,
    filename: null,
    meta: { tool_call_id: call, ...(name !== undefined && { name }), is_error: true, no_result: true },
  }),

  textOf: ({ text }) => (typeof text === 'string' ? text : ''),
  mediaOf: () => [],

  text: (text) => ({
    side: 'user',
    head: {},
    pieces: [{ kind: 'content', block: { type: 'text', text, asset: null, filename: null, meta: null } }],
  }),
}

/** Of a message beside its parts: what its `meta` says. */
function only({ meta }: JsonObject): JsonObject {
  return isObject(meta) && Object.keys(meta).length > 0 ? { meta } : {}
}

/** `answered`: the calls that the message has results of. What shows the output of another one says so itself. */
function pieceOf(block: JsonObject, { calls, results }: PieceIds, answered: ReadonlySet<string>): Piece {
  if (block.type === 'tool-call') {
    const ids = calls.pop()
    if (ids) return { kind: 'call', block, call: ids.id, name: ids.name }
  }
  if (block.type === 'tool-result') {
    const ids = results.pop()
    if (ids) return { kind: 'result', block, call: ids.id, ...(ids.name !== undefined && { name: ids.name }) }
  }
  if (block.type === 'thinking' || block.type === 'redacted_thinking') return { kind: 'thinking', block }
  const call = isObject(block.meta) ? block.meta.tool_call_id : undefined
  if (typeof call === 'string' && answered.has(call)) return { kind: 'medium', block, call }
  return { kind: 'content', block }
}

function sideOf({ kind }: Piece, side: Run['side']): Run['side'] {
  if (kind === 'result' || kind === 'medium') return 'user'
  return kind === 'content' ? side : 'model'
}
