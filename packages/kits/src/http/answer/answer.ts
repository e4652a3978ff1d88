import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { memberTexts } from '@annals/messages/json'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type AnnalsError, errorText, retryAfterOf } from '../../errors.js'
import { type MemoryBudget, MemoryShare, NO_PROJECT, outOfMemory } from '../../fairness/fair_queue.js'
import { MERGED_BYTES_MAX, PIECE_BYTES_MAX } from '../../limits.js'
import { endWithConnection } from '../admission/connections.js'
import type { AppServer } from '../app_server.js'

/** Answers with a resource that is already JSON text. */
export function answer(reply: FastifyReply, data: string, status?: number): FastifyReply {
  return reply.send(inEnvelope(reply, data, status))
}

/** The text of an answer: the resource, unchanged, in the envelope. Sets what else the answer has. */
export function inEnvelope(reply: FastifyReply, data: string, status = 200): string {
  reply.code(status).header('content-type', 'application/json; charset=utf-8')
  return `{"code":0,"error":"","msg":"ok","data":${data}}`
}

export function itemsOf(items: string[]): string {
  return `{"items":[${items.join(',')}]}`
}

/** A page of a list. It has a cursor though no more follows where what comes later is listed after it. */
export function pageText(
  items: readonly string[],
  next_cursor: string,
  has_more = next_cursor !== '',
): string {
  return `{"items":[${items.join(',')}],"has_more":${has_more},"next_cursor":"${next_cursor}"}`
}

export function answerError(reply: FastifyReply, error: AnnalsError): FastifyReply {
  const { status, text } = errorText(error)
  reply.removeHeader('etag')
  const retry_after = retryAfterOf(error.error)
  if (retry_after !== undefined && !reply.hasHeader('retry-after'))
    reply.header('retry-after', String(retry_after))
  if (status === 401) reply.header('www-authenticate', 'Bearer')
  return reply.code(status).header('content-type', 'application/json; charset=utf-8').send(text)
}

/** The JSON text of a field of the body; `otherwise` if it was not sent. */
export function sentField(request: FastifyRequest, name: string, otherwise: string): string {
  const text = memberTexts(request.bodyText).get(name) ?? 'null'
  return text === 'null' ? otherwise : text
}

/** A resource as JSON text, with other values for some of its fields, and without those that are undefined. */
export function withFields(json: string, values: Record<string, string | undefined>): string {
  const fields = new Map([...memberTexts(json), ...Object.entries(values)])
  const shown = [...fields].filter(([, text]) => text !== undefined)
  return `{${shown.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`
}

/** Characters written at once. A slow client's progress shows in pieces of this size. */
export const PIECE_LENGTH_MAX = 65_536

/**
 * Pieces after which other requests get their turn: while the socket accepts them, nothing else would end this one's.
 */
const PIECES_A_TURN = 4

/**
 * Reserves memory for each complete answer, and sends those longer than a piece in pieces, each when the client has
 * taken the previous one. No stream writes more or less than the length that was announced for it: the client would take
 * the surplus, or the next answer instead of what is missing.
 */
export function sendInPieces(app: AppServer): void {
  app.addHook<unknown>('onSend', (request, reply, payload, done) => {
    if (payload instanceof Readable && request.method !== 'HEAD' && reply.statusCode !== 304) {
      const length = reply.getHeader('content-length')
      return done(null, length === undefined ? payload : Readable.from(exactly(payload, Number(length))))
    }
    if (typeof payload !== 'string') return done()
    if (!holdAnswer(request, payload.length)) return done(outOfMemory())
    if (payload.length <= PIECE_LENGTH_MAX || request.method === 'HEAD') return done()
    reply.header('content-length', Buffer.byteLength(payload))
    done(null, piecesStream(request, [payload]))
  })
}

/**
 * Reserves memory for a complete answer of so many characters. Returns false if there is none; an answer that is already written is sent
 * anyway.
 */
export function holdAnswer(request: FastifyRequest, length: number): boolean {
  const bytes = length > SMALL_BYTES ? TEXT_FACTOR * length : 0
  if (bytes === 0 && !request.memoryShare) return true
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (isRead && !request.memory.tryHold(bytes)) {
    request.memory.keep(0)
    return false
  }
  request.memory.keep(bytes)
  return true
}

export type Answer = string | Buffer

/**
 * Texts or bytes as a stream of pieces, which fails when the caller's key is revoked: a client may read slowly. The first
 * piece is sent like an answer of one piece: no error may say that what was written with the key is not stored.
 */
export function piecesStream(
  request: FastifyRequest,
  texts: AsyncIterable<Answer> | Iterable<Answer>,
): Readable {
  return Readable.from(whileAuthorized(request, texts))
}

async function* whileAuthorized(
  request: FastifyRequest,
  texts: AsyncIterable<Answer> | Iterable<Answer>,
): AsyncGenerator<Buffer> {
  let written = 0
  for await (const text of texts) {
    for (const piece of typeof text === 'string' ? answerPieces(text) : bytePieces(text)) {
      if (written > 0 && request.isStillAuthorized && !(await request.isStillAuthorized()))
        throw new Error('the key of the request was revoked')
      yield piece
      written += 1
      if (written % PIECES_A_TURN === 0) await setImmediate()
    }
  }
}

/** The pieces, if they are so many bytes together: an error ends the connection, or is the answer if it has not begun. */
async function* exactly(pieces: AsyncIterable<Buffer | string>, bytes: number): AsyncGenerator<Buffer> {
  let missing = bytes
  for await (const piece of pieces) {
    const written = typeof piece === 'string' ? Buffer.from(piece) : piece
    missing -= written.length
    if (missing < 0) throw new Error('an answer has more bytes than were announced')
    yield written
  }
  if (missing > 0) throw new Error('an answer has fewer bytes than were announced')
}

export function* answerPieces(text: string): Generator<Buffer> {
  for (let from = 0; from < text.length; ) {
    let to = from + PIECE_LENGTH_MAX
    if (to < text.length && isHighSurrogate(text.charCodeAt(to - 1))) to -= 1
    yield Buffer.from(text.slice(from, to))
    from = to
  }
}

function* bytePieces(bytes: Buffer): Generator<Buffer> {
  for (let from = 0; from < bytes.length; from += PIECE_LENGTH_MAX)
    yield bytes.subarray(from, from + PIECE_LENGTH_MAX)
}

/** Whether a code unit is the first of a surrogate pair. */
function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

/** Bytes of a buffer: most pages of 1,000 entries fit. */
const BUFFER_BYTES = 1024 * 1024
/** Buffers that wait for the next answers. */
const KEPT_MAX = 16
/** UTF-8 of one UTF-16 code unit. */
const BYTES_A_UNIT_MAX = 3

const kept: Buffer[] = []

/**
 * A long answer, collected as bytes in a buffer that later answers use again. As texts, answers on their way to their
 * clients would survive V8's young generation, and lie in its heap as garbage for long afterwards. What does not fit
 * stays text.
 */
export class AnswerBytes {
  private readonly buffer = kept.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES)
  private readonly rest: string[] = []
  private filled = 0
  private rest_bytes = 0

  constructor(response: ServerResponse) {
    // It comes when nothing of the answer waits to be written any more.
    response.once('close', () => {
      if (kept.length < KEPT_MAX) kept.push(this.buffer)
    })
  }

  get length(): number {
    return this.filled + this.rest_bytes
  }

  get parts(): Array<Buffer | string> {
    return [this.buffer.subarray(0, this.filled), ...this.rest]
  }

  add(text: string): void {
    const room = BUFFER_BYTES - this.filled
    const fits =
      this.rest.length === 0 && (BYTES_A_UNIT_MAX * text.length <= room || Buffer.byteLength(text) <= room)
    if (fits) {
      this.filled += this.buffer.write(text, this.filled)
    } else {
      this.rest.push(text)
      this.rest_bytes += Buffer.byteLength(text)
    }
  }
}

/** An answer up to this length is sent at once, with its length; a longer one is streamed as it is produced. */
const WHOLE_LENGTH_MAX = 1024 * 1024

/**
 * Answers with a resource whose JSON text comes in chunks, so that it is never in memory as a whole. The memory of
 * one chunk is reserved before the first is read, until the client has read the answer. An error before the first
 * chunks were sent is answered as an error; a later one closes the connection and leaves the JSON unfinished.
 */
export async function answerChunks(
  reply: FastifyReply,
  chunks: AsyncGenerator<string>,
): Promise<FastifyReply> {
  await reply.request.memory.hold(logReadBytes(reply.request))
  return sendChunks(reply, chunks)
}

export async function sendChunks(reply: FastifyReply, chunks: AsyncGenerator<string>): Promise<FastifyReply> {
  const { request } = reply
  let text = '{"code":0,"error":"","msg":"ok","data":'
  let bytes: AnswerBytes | undefined
  let { length } = text
  let isWhole = false
  while (!isWhole && length <= WHOLE_LENGTH_MAX) {
    const next = await chunks.next()
    isWhole = next.done === true
    const more = next.done ? '}' : next.value
    length += more.length
    if (text.length + more.length > PIECE_LENGTH_MAX) {
      bytes ??= new AnswerBytes(reply.raw)
      bytes.add(text)
      text = more
    } else text += more
  }
  if (isWhole && !holdAnswer(request, length)) throw outOfMemory()
  reply.code(200).header('content-type', 'application/json; charset=utf-8')
  // The rest may show that it has no tag.
  if (!isWhole) reply.removeHeader('etag')
  if (!isWhole) return reply.send(piecesStream(request, followedBy([...(bytes?.parts ?? []), text], chunks)))
  if (!bytes) return reply.send(text)
  bytes.add(text)
  if (request.method === 'HEAD') return reply.send(bytes.parts.join(''))
  return reply.header('content-length', bytes.length).send(piecesStream(request, bytes.parts))
}

async function* followedBy(parts: Answer[], rest: AsyncGenerator<string>): AsyncGenerator<Answer> {
  yield* parts
  yield* rest
  yield '}'
}

declare module 'fastify' {
  interface FastifyRequest {
    readonly memory: MemoryShare
    /** The same, null until it is needed: most requests hold nothing worth counting. */
    memoryShare: MemoryShare | null
  }
}

/**
 * Memory of a connection with one small request: its socket, its parser, headers, and up to SMALL_BYTES of the body
 * and the answer. So small requests need not be counted individually.
 */
const CONNECTION_BYTES = 16_384
/** A body or an answer up to this size is not counted on its own. */
export const SMALL_BYTES = 16_384
/**
 * Requests of one connection that may wait behind the one being answered. The parser delivers everything that has
 * arrived in one turn of the event loop, and thousands would hold it.
 */
const SENT_AHEAD_MAX = 256
const CONNECTIONS = 'connections'
/**
 * Memory for each character or byte of a text: two if it is not Latin, or if a second form of it exists for a moment.
 */
export const TEXT_FACTOR = 2
/** The same for data from the database: as received, as rows, and as the answer. */
const READ_FACTOR = 4

const sharesOf = new WeakMap<Socket, Set<MemoryShare>>()

/** Bytes needed to read a log: those of the largest piece, which may be a single entry. */
export function logReadBytes({ server }: FastifyRequest): number {
  return READ_FACTOR * Math.max(PIECE_BYTES_MAX, server.initialConfig.bodyLimit!)
}

/** Bytes needed to read rows of a list; by default each may have the largest object. */
export function listReadBytes(rows: number, row_bytes_max = MERGED_BYTES_MAX): number {
  return READ_FACTOR * row_bytes_max * rows
}

/** Counts connections and requests sent ahead on them; gives requests their share, from which answers are held. */
export function countMemory(app: AppServer, budget: MemoryBudget): void {
  countConnections(app.server, budget)
  app.decorateRequest('memoryShare', null)
  app.decorateRequest('memory', {
    getter(this: FastifyRequest) {
      this.memoryShare ??= openShare(budget, this.raw.socket, this.project_id || NO_PROJECT)
      return this.memoryShare
    },
  })
}

/** A request that was answered holds nothing any more. */
export function releaseMemory({ memoryShare, raw }: FastifyRequest): void {
  if (memoryShare) closeShare(memoryShare, raw.socket)
}

function countConnections(server: Server, budget: MemoryBudget): void {
  server.on('connection', (socket: Socket) => {
    // Not by the rule for owners: otherwise one that holds much of the budget could keep others from connecting at
    // all.
    if (budget.heldBy(CONNECTIONS) >= budget.places_max / 2) return void socket.destroy()
    budget.take(CONNECTIONS, CONNECTION_BYTES)
    socket.once('close', () => {
      budget.giveBack(CONNECTIONS, CONNECTION_BYTES)
      // An answer queued behind one that was never read is not told that its connection has gone.
      for (const share of sharesOf.get(socket) ?? []) share.close()
    })
  })
}

/** Counts a request that arrived before the previous one was answered. Returns false if there is no room for it. */
export function holdSentAhead(
  budget: MemoryBudget,
  { socket }: IncomingMessage,
  response: ServerResponse,
  owner: string | undefined,
): boolean {
  endWithConnection(socket, response)
  if ((sharesOf.get(socket)?.size ?? 0) >= SENT_AHEAD_MAX) return false
  const share = openShare(budget, socket, owner ?? NO_PROJECT)
  if (!share.tryHold(CONNECTION_BYTES)) return false
  response.once('close', () => closeShare(share, socket))
  return true
}

function openShare(budget: MemoryBudget, socket: Socket, owner: string): MemoryShare {
  const share = new MemoryShare(budget, owner)
  const shares = sharesOf.get(socket) ?? new Set()
  sharesOf.set(socket, shares.add(share))
  // A closed connection no longer closes any share.
  if (socket.destroyed) closeShare(share, socket)
  return share
}

function closeShare(share: MemoryShare, socket: Socket): void {
  share.close()
  sharesOf.get(socket)?.delete(share)
}
