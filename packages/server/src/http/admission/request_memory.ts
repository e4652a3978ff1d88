import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { type MemoryBudget, MemoryShare, NO_PROJECT } from '../../fairness/memory_budget.js'
import { MERGED_BYTES_MAX, PIECE_BYTES_MAX } from '../../limits.js'
import type { AppServer } from '../app_server.js'
import { endWithConnection } from './connections.js'

declare module 'fastify' {
  interface FastifyRequest {
    readonly memory: MemoryShare
    /** The same, null until it is needed: most requests hold nothing worth counting. */
    memoryShare: MemoryShare | null
  }
}

/**
 * What a connection with one small request takes: its socket, its parser, headers, and up to SMALL_BYTES of the body
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
    // Not by the rule for owners: otherwise whoever holds much of the budget could keep others from connecting at
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
