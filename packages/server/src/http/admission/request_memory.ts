import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { type MemoryBudget, MemoryShare, NO_PROJECT, outOfMemory } from '../../fairness/memory_budget.js'
import { MERGED_BYTES_MAX } from '../../limits.js'
import { PIECE_BYTES_MAX } from '../../log/read/read_log.js'
import type { AppServer } from '../service_context.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** What the request holds of the budget of memory. */
    readonly memory: MemoryShare
    /** The same, null until it is asked for: most requests hold nothing worth counting. */
    memoryShare: MemoryShare | null
  }
}

/**
 * What a connection counts, with one request that is small: its socket, its parser, headers, and of the body and the
 * answer what is there at a time, up to SMALL_BYTES. So small requests need not be counted one by one.
 */
export const CONNECTION_BYTES = 16_384
/** A body or an answer up to this size counts nothing of its own. */
export const SMALL_BYTES = 16_384
/**
 * Requests of one connection that may wait behind the one that is being answered. The parser hands over all that has
 * arrived in one turn of the event loop, which thousands would hold.
 */
const SENT_AHEAD_MAX = 256
/** Whose the connections are. */
const CONNECTIONS = 'connections'
/**
 * What a text takes in memory, in bytes for each of its characters or bytes: two where it is not Latin, or where a
 * second form of it is there for a moment.
 */
export const TEXT_FACTOR = 2
/** The same for what is read from the database: as it came, as rows, and as the answer that it becomes. */
const READ_FACTOR = 4

const sharesOf = new WeakMap<Socket, Set<MemoryShare>>()

/** Bytes that reading a log takes: those of the largest piece, which may be one entry. */
export function logReadBytes({ server }: FastifyRequest): number {
  return READ_FACTOR * Math.max(PIECE_BYTES_MAX, server.initialConfig.bodyLimit!)
}

/** Bytes that reading a list takes, each of whose rows may have the largest object. */
export function listReadBytes(rows: number): number {
  return READ_FACTOR * MERGED_BYTES_MAX * rows
}

/** Counts connections, what is sent ahead on them, and answers; gives requests their share. */
export function countMemory(app: AppServer, budget: MemoryBudget): void {
  countConnections(app.server, budget)
  app.decorateRequest('memoryShare', null)
  app.decorateRequest('memory', {
    getter(this: FastifyRequest) {
      this.memoryShare ??= openShare(budget, this.raw.socket, this.project_id || NO_PROJECT)
      return this.memoryShare
    },
  })
  app.addHook<unknown>('onSend', (request, _reply, payload, done) => {
    if (typeof payload !== 'string' || holdAnswer(request, payload)) done()
    else done(outOfMemory())
  })
  app.addHook('onResponse', (request, _reply, done) => {
    if (request.memoryShare) closeShare(request.memoryShare, request.raw.socket)
    done()
  })
}

/** Holds an answer that is there as a whole. Gives false where it cannot be had; what was written is answered anyway. */
function holdAnswer(request: FastifyRequest, payload: string): boolean {
  const bytes = payload.length > SMALL_BYTES ? TEXT_FACTOR * payload.length : 0
  if (bytes === 0 && !request.memoryShare) return true
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (isRead && !request.memory.tryHold(bytes)) {
    request.memory.keep(0)
    return false
  }
  request.memory.keep(bytes)
  return true
}

function countConnections(server: Server, budget: MemoryBudget): void {
  server.on('connection', (socket: Socket) => {
    // Not by the rule for owners: else whoever holds much of the budget would keep others from connecting at all.
    if (budget.heldBy(CONNECTIONS) >= budget.places_max / 2) return void socket.destroy()
    budget.take(CONNECTIONS, CONNECTION_BYTES)
    socket.once('close', () => {
      budget.giveBack(CONNECTIONS, CONNECTION_BYTES)
      // An answer behind one that was never taken is not told that its connection has gone.
      for (const share of sharesOf.get(socket) ?? []) share.close()
    })
  })
}

/** Counts a request that came before the one ahead of it was answered. Gives false where there is no room for it. */
export function holdSentAhead(
  budget: MemoryBudget,
  { socket }: IncomingMessage,
  response: ServerResponse,
  owner: string | undefined,
): boolean {
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
  // A connection that has gone closes no share any more.
  if (socket.destroyed) closeShare(share, socket)
  return share
}

function closeShare(share: MemoryShare, socket: Socket): void {
  share.close()
  sharesOf.get(socket)?.delete(share)
}
