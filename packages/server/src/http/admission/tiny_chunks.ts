import { IncomingMessage } from 'node:http'
import { closeConnection } from './close_connection.js'

/** Number of tiny chunks that a body may have: clients that write bit by bit, as data is created, send fewer. */
const CHUNKS_MAX = 1_800
/** A body's chunks are tiny if they are smaller on average. */
const CHUNK_BYTES_MIN = 16
/** Number of tiny chunks of one body in a turn of the event loop that has CHUNKS_MAX of all bodies. */
const CHUNKS_IN_FULL_TURN_MAX = 32

/** The turn of the event loop, and the chunks of tiny ones in it. */
let turn = { chunks: 0 }

/**
 * A request that closes its connection when its body comes in tiny chunks. The platform's parser calls back for each
 * chunk, for all that have arrived in the same turn of the event loop: a megabyte in single bytes would hold it for
 * most of a second. This holds before authentication, and also for a body that nobody reads. There is no response:
 * while one is written, the parser would go on.
 */
export class BoundedChunks extends IncomingMessage {
  private chunks = 0
  private chunk_bytes = 0
  private turn = turn
  private chunks_in_turn = 0

  override push(chunk: Buffer | null): boolean {
    if (chunk === null) return super.push(null)
    this.chunks += 1
    this.chunk_bytes += chunk.length
    const isTiny = this.chunk_bytes < this.chunks * CHUNK_BYTES_MIN
    if (!isTiny || !this.isOneTooMany()) return super.push(chunk)
    closeConnection(this.socket)
    return false
  }

  /** Called by the platform for a body that nobody read: discards it. The platform's own method would not count it. */
  _dump(): void {
    this.removeAllListeners('data')
    this.resume()
  }

  private isOneTooMany(): boolean {
    if (turn.chunks === 0) setImmediate(beginTurn)
    turn.chunks += 1
    if (this.turn !== turn) this.chunks_in_turn = 0
    this.turn = turn
    this.chunks_in_turn += 1
    const isFullTurn = turn.chunks > CHUNKS_MAX && this.chunks_in_turn > CHUNKS_IN_FULL_TURN_MAX
    if (this.chunks <= CHUNKS_MAX && !isFullTurn) return false
    // Otherwise, each came in a network packet of its own.
    return this.headers['transfer-encoding'] !== undefined
  }
}

function beginTurn(): void {
  turn = { chunks: 0 }
}
