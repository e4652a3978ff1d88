import { NO_RESULT } from '@annals/messages/fit'
import type { Block, ReadEntry } from '@annals/messages/session'

const ARGUMENTS_MAX = 120
const NOTE_MAX = 600

/**
 * Says of each entry what the record shows of its calls and results: which calls nobody answered, which results answer no
 * call or report an error, and which of parallel calls a result is of. Where entries are `unread`, they may have what is
 * missing: nothing is said of it. All are in order; `users` are where a user speaks, after which nobody answers a call.
 */
export function noteCalls(
  entries: readonly ReadEntry[],
  users: readonly number[],
  unread: readonly number[],
): (entry: ReadEntry) => string | undefined {
  const calls = new Map<number, number>()
  for (const block of entries.flatMap(({ blocks }) => blocks))
    if (block.kind === 'call' && !block.is_repeat)
      calls.set(block.call.seq, (calls.get(block.call.seq) ?? 0) + 1)
  const first_unread = unread[0] ?? Number.POSITIVE_INFINITY
  const isReadAfter = (seq: number) => !(next(unread, seq) < next(users, seq))
  const noteOf = (block: Block, seq: number): string[] => {
    if (block.kind === 'call') {
      const is_open = !block.is_repeat && block.call.verdict === 'open'
      return is_open && isReadAfter(seq) ? [`${block.call.name}: ${NO_RESULT}`] : []
    }
    if (block.kind !== 'result') return []
    const { call, result } = block
    const failed = result.is_failed ? ['The tool reported an error.'] : []
    if (!call) return seq < first_unread ? ['It answers no open call.', ...failed] : failed
    if (calls.get(call.seq)! < 2) return failed
    return [`Result of ${call.name} ${call.arguments.slice(0, ARGUMENTS_MAX)}`, ...failed]
  }
  return ({ seq, blocks }) => {
    const notes = blocks.flatMap((block) => noteOf(block, seq))
    return notes.length > 0 ? notes.join('\n').slice(0, NOTE_MAX).toWellFormed() : undefined
  }
}

/** The first of ascending numbers after one. */
function next(seqs: readonly number[], seq: number): number {
  let [low, high] = [0, seqs.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (seqs[middle]! <= seq) low = middle + 1
    else high = middle
  }
  return seqs[low] ?? Number.POSITIVE_INFINITY
}
