import type { FastifyReply } from 'fastify'
import type { ReadEntry } from '../../log/read_log.js'
import type { Listed } from '../../resources/listed.js'
import { answerPage } from '../answer.js'
import type { Cursors } from '../cursor.js'

const SEPARATOR = '|'

/** Reads the position in a list out of a cursor. */
export function readListCursor(
  cursors: Cursors,
  cursor: string | undefined,
): { created_at: string; id: string } | undefined {
  if (cursor === undefined) return undefined
  const [created_at, id] = cursors.read(cursor).split(SEPARATOR)
  return { created_at: created_at!, id: id! }
}

/** Reads where a page of a log begins out of a cursor: behind that seq, in the page's direction. */
export function readSeqCursor(
  cursors: Cursors,
  cursor: string | undefined,
  time_desc: boolean,
): { above_seq?: number; below_seq?: number } {
  if (cursor === undefined) return {}
  const seq = Number(cursors.read(cursor))
  return time_desc ? { below_seq: seq } : { above_seq: seq }
}

/** The range of seqs that a page is of: from where it begins to the other end of a log that ends at `last_seq`. */
export function seqRange(
  from: { above_seq?: number; below_seq?: number },
  last_seq: number,
): { above_seq: number; below_seq: number } {
  const { above_seq = 0, below_seq = last_seq + 1 } = from
  return { above_seq, below_seq: Math.min(below_seq, last_seq + 1) }
}

/** Answers with a page of a list, given one row more than `limit` where another page follows. */
export function answerList(
  reply: FastifyReply,
  cursors: Cursors,
  rows: Listed[],
  limit: number,
): FastifyReply {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const next_cursor =
    rows.length > limit && last ? cursors.write(`${last.created_at}${SEPARATOR}${last.id}`) : ''
  return answerPage(reply, { items: shown.map((row) => row.json), next_cursor })
}

/** A page of a log as JSON, given its pieces with one entry more than `limit` where another page follows. */
export async function* entriesPage(
  pieces: AsyncGenerator<ReadEntry[]>,
  limit: number,
  cursors: Cursors,
): AsyncGenerator<string> {
  let shown = 0
  let last_seq = 0
  let has_more = false
  yield '{"items":['
  for await (const entries of pieces) {
    const fitting = entries.slice(0, limit - shown)
    has_more = fitting.length < entries.length
    if (fitting.length === 0) break
    yield (shown > 0 ? ',' : '') + fitting.map((entry) => entry.json).join(',')
    shown += fitting.length
    last_seq = fitting.at(-1)!.seq
  }
  yield `],"has_more":${has_more},"next_cursor":"${has_more ? cursors.write(String(last_seq)) : ''}"}`
}
