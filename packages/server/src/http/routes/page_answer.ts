import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { ReadEntry } from '../../log/read_log.js'
import type { Listed } from '../../resources/listed.js'
import { answer, answerPage } from '../answer.js'
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

/**
 * Answers with a page of a log, read in pieces with one entry more than `limit` where another page follows.
 * A page of one piece is sent whole; a larger one is streamed as it is read, so that it is never in memory
 * at once. An error in the middle of a streamed page cuts the connection: the JSON stays unfinished.
 */
export async function answerEntries(
  reply: FastifyReply,
  cursors: Cursors,
  pieces: AsyncGenerator<ReadEntry[]>,
  limit: number,
): Promise<FastifyReply> {
  const first = await pieces.next()
  const entries = first.done ? [] : first.value
  if (first.done || entries.length > limit) return answer(reply, pageOf(entries, limit, cursors))
  const second = await pieces.next()
  if (second.done) return answer(reply, pageOf(entries, limit, cursors))
  return reply
    .code(200)
    .header('content-type', 'application/json; charset=utf-8')
    .send(Readable.from(streamPage([entries, second.value], pieces, limit, cursors)))
}

function pageOf(entries: ReadEntry[], limit: number, cursors: Cursors): string {
  const shown = entries.slice(0, limit)
  return `{"items":[${shown.map((entry) => entry.json).join(',')}]${pageEnd(entries.length > limit, shown.at(-1), cursors)}}`
}

function pageEnd(has_more: boolean, last: ReadEntry | undefined, cursors: Cursors): string {
  const next_cursor = has_more && last ? cursors.write(String(last.seq)) : ''
  return `,"has_more":${has_more},"next_cursor":"${next_cursor}"`
}

async function* streamPage(
  known: ReadEntry[][],
  rest: AsyncGenerator<ReadEntry[]>,
  limit: number,
  cursors: Cursors,
): AsyncGenerator<string> {
  yield '{"code":0,"error":"","msg":"ok","data":{"items":['
  let count = 0
  let last: ReadEntry | undefined
  const piece = (entries: ReadEntry[]) => {
    const shown = entries.slice(0, Math.max(limit - count, 0))
    const text = shown.map((entry) => entry.json).join(',')
    const separator = count > 0 && shown.length > 0 ? ',' : ''
    last = shown.at(-1) ?? last
    count += entries.length
    return separator + text
  }
  for (const entries of known) yield piece(entries)
  for await (const entries of rest) yield piece(entries)
  yield `]${pageEnd(count > limit, last, cursors)}}}`
}
