import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { AnnalsError } from '../../errors.js'
import { piecesStream } from './answer_pieces.js'

export interface AnsweredBytes {
  sha256: string
  bytes: number
  media_type: string
  filename?: string | undefined
}

const RANGE = /^bytes=(?:(\d{1,15})-(\d{0,15})|-(\d{1,15}))$/

/**
 * Answers with bytes, or the one range of them that the request asks for (RFC 9110, 14). `read` gives those from a position
 * to before another. A browser saves them and neither shows nor runs them. @throws AnnalsError range_not_satisfiable
 */
export function answerBytes(
  reply: FastifyReply,
  { sha256, bytes, media_type, filename }: AnsweredBytes,
  read: (from: number, to: number) => AsyncIterable<Buffer>,
): FastifyReply {
  const { method, headers } = reply.request
  reply.header('accept-ranges', 'bytes')
  const range = method === 'GET' ? rangeOf(headers.range, bytes) : undefined
  if (range === 'none') {
    reply.header('content-range', `bytes */${bytes}`)
    throw new AnnalsError(
      'range_not_satisfiable',
      `The blob has ${bytes} bytes. Ask for a range that begins within them.`,
    )
  }
  const { from, to } = range ?? { from: 0, to: bytes }
  if (range) reply.code(206).header('content-range', `bytes ${from}-${to - 1}/${bytes}`)
  reply.headers({
    'content-type': media_type,
    'content-length': to - from,
    'content-disposition': disposition(filename ?? sha256),
    'content-security-policy': "default-src 'none'; sandbox",
    etag: `"${sha256}"`,
  })
  // Without a stream, the framework would say that there are no bytes.
  if (method === 'HEAD') return reply.send(Readable.from([]))
  return reply.send(piecesStream(reply.request, read(from, to)))
}

/** The range, `none` if it lies behind the end; undefined where the whole is to be answered. */
function rangeOf(
  header: string | undefined,
  bytes: number,
): { from: number; to: number } | 'none' | undefined {
  const [, first, last, suffix] = RANGE.exec(header ?? '') ?? []
  if (suffix !== undefined) {
    const length = Math.min(Number(suffix), bytes)
    return length === 0 ? 'none' : { from: bytes - length, to: bytes }
  }
  if (first === undefined) return undefined
  const from = Number(first)
  const to = last ? Math.min(Number(last) + 1, bytes) : bytes
  // A range that ends before it begins is no range.
  if (last && Number(last) < from) return undefined
  return from >= bytes ? 'none' : { from, to }
}

/** As a file to save, under its name in UTF-8 (RFC 6266). */
function disposition(filename: string): string {
  const encoded = encodeURIComponent(filename.toWellFormed()).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename*=UTF-8''${encoded}`
}
